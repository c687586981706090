# SPDX-License-Identifier: Apache-2.0
"""Remove from a candidate index what no provider has any more."""

import numpy as np

from placement_rpc.candidates.index import CandidateIndex

# The index is compacted when it has more dead slots, unused sets or bytes of unused names than
# this part of all.
_SHARE = 8


def has_waste(index: CandidateIndex) -> bool:
    """Return whether the index should be compacted."""
    return any(waste > max(index.waste, total // _SHARE) for waste, total in (
        (index.dead, len(index)), (index.names.unused, index.names.nbytes),
        (index.trait_sets.added, len(index)), (index.aggregate_sets.added, len(index))))


def compact(index: CandidateIndex) -> None:
    """Remove dead slots, and the sets and names that no provider has any more.

    The living get other slots, and their sets other numbers; trees keep their numbers.
    """
    is_alive = index.id != 0
    new_slots = np.append(0, np.cumsum(is_alive, dtype=np.int32)).astype(np.int32)
    parent, end = index.parent, index.subtree_end
    parent[:] = np.where(parent >= 0, new_slots[parent], -1)
    end[:] = new_slots[end]
    index.slots.keep(is_alive)
    for table in index.inventories.values():
        table.compact(is_alive, new_slots)
    index.by_id["slot"][:] = new_slots[index.by_id["slot"]]
    root = index.root
    root[:] = np.where(root >= 0, new_slots[root], -1)
    index.by_uuid.clear()
    index.dead = 0
    for sets, numbers in ((index.trait_sets, index.trait_set),
                          (index.aggregate_sets, index.aggregate_set)):
        numbers[:] = sets.keep(np.unique(numbers))[numbers]
    index.slots["name_start"][:] = index.names.keep(
        index.slots["name_start"], index.slots["name_length"])
