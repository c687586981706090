# SPDX-License-Identifier: Apache-2.0
"""Which inventories of a class have room for an amount: the capacity rule over rows of a table."""

import numpy as np

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates.inventories import Inventories
from placement_rpc.objects.fields import MAX_INT

Rows = slice | np.ndarray


def meets_units(inventories: Inventories, rows: Rows, amount: int) -> np.ndarray:
    """Return an array of bool: whether an amount keeps to the units of each inventory."""
    if amount > MAX_INT:
        return np.zeros(len(inventories.max_unit[rows]), bool)
    meets = np.asarray(rule.within_max_unit(amount, inventories.max_unit[rows]))
    if not inventories.is_simple:
        meets &= rule.reaches_min_unit(amount, inventories.min_unit[rows])
        # Most steps are 1, and a remainder costs more than all other conditions together.
        steps = inventories.step_size[rows]
        stepped = np.flatnonzero(meets & (steps != 1))
        meets[stepped] = rule.is_on_step(amount, steps[stepped])
    return meets


def fits(inventories: Inventories, rows: Rows, amount: int) -> np.ndarray:
    """Return an array of bool: whether each inventory can give an amount (DESIGN rule 1)."""
    meets = meets_units(inventories, rows, amount)
    if amount <= MAX_INT:
        meets &= rule.has_room(inventories.capacity[rows], inventories.used[rows], amount)
    return meets


def most(inventories: Inventories, rows: Rows) -> np.ndarray:
    """Return the greatest amount that each inventory can give, all groups of a request together.

    The units of each group's own amount are another matter: see :func:`meets_units`.
    """
    return np.asarray(rule.most_of(
        inventories.capacity[rows], inventories.used[rows], inventories.max_unit[rows]))
