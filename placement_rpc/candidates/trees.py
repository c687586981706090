# SPDX-License-Identifier: Apache-2.0
"""The order of trees: contiguous, parents before their children, depth first."""

from typing import NamedTuple

import numpy as np


class BrokenTree(Exception):
    """The parents of providers are not those of trees: one is missing, or there is a loop."""


class Forest(NamedTuple):
    """Trees in depth-first order.

    :param order: array of int64: position in the given arrays of each provider, in the new order
    :param parent: array of int32: for each in the new order the place of its parent in it, -1 for
        a root
    :param end: array of int32: the place after the last one of its subtree
    """

    order: np.ndarray
    parent: np.ndarray
    end: np.ndarray


def depth_first(ids: np.ndarray, parent_ids: np.ndarray) -> Forest:
    """Order providers so that each subtree is contiguous; roots and siblings come by their ids.

    The work is done for all providers of a level of the trees at once.

    :param ids: array of int64, without duplicates
    :param parent_ids: array of int64 of the same length, 0 for a root
    :raises BrokenTree: if a parent is missing, or if there is a loop
    """
    count = len(ids)
    if not count:
        nothing = np.empty(0, np.int32)
        return Forest(np.empty(0, np.int64), nothing, nothing)
    parent = _positions_of_parents(ids, parent_ids)
    levels = _levels(ids, parent)
    size = np.ones(count, np.int32)
    for level in reversed(levels[1:]):
        np.add.at(size, parent[level], size[level])
    place = np.empty(count, np.int32)
    for number, level in enumerate(levels):
        before = np.cumsum(size[level], dtype=np.int32) - size[level]
        if number:
            # From the sizes of all that come before in the level, those of other parents go.
            parents = parent[level]
            is_first = np.append(True, parents[1:] != parents[:-1])
            first = np.maximum.accumulate(np.where(is_first, np.arange(len(level)), 0))
            before += place[parents] + 1 - before[first]
        place[level] = before
    order = np.empty(count, np.int64)
    order[place] = np.arange(count)
    parents = parent[order]
    return Forest(order, np.where(parents < 0, np.int32(-1), place[parents]),
                  np.arange(count, dtype=np.int32) + size[order])


def _positions_of_parents(ids, parent_ids):
    """Return the position of the parent of each provider, -1 for a root."""
    by_id = np.argsort(ids, kind="stable")
    known = ids[by_id]
    has_parent = parent_ids > 0
    at = np.minimum(known.searchsorted(parent_ids), len(ids) - 1)
    missing = np.flatnonzero(has_parent & (known[at] != parent_ids))
    if len(missing):
        raise BrokenTree(f"provider {parent_ids[missing[0]]}, the parent of "
                         f"{ids[missing[0]]}, is missing")
    return np.where(has_parent, by_id[at], -1)


def _levels(ids, parent):
    """Return the positions of the roots, of their children, and so on, each by parent and id."""
    count = len(ids)
    children = np.lexsort((ids, parent))
    number = np.bincount(parent + 1, minlength=count + 1)
    first = np.cumsum(number) - number
    level = children[:number[0]]
    number, first = number[1:], first[1:]
    levels, reached = [], 0
    while len(level):
        levels.append(level)
        reached += len(level)
        many = number[level]
        level = children[np.repeat(first[level] - (np.cumsum(many) - many), many)
                         + np.arange(many.sum())]
    if reached < count:
        inside = np.ones(count, bool)
        inside[np.concatenate(levels) if levels else []] = False
        raise BrokenTree(f"the parents of provider {ids[inside].min()} are a loop")
    return levels
