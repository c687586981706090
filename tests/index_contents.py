# SPDX-License-Identifier: Apache-2.0
"""What a candidate index has of each provider, and what it should have."""

from typing import NamedTuple

import numpy as np

from placement_rpc.candidates.index import SHARES


class Place(NamedTuple):
    """A provider in its tree: ``subtree`` and ``anchors`` are uuids, of providers and of roots."""

    parent: str | None
    root: str
    subtree: frozenset
    traits: frozenset
    aggregates: frozenset
    anchors: frozenset


def of(index):
    """Return a dict of uuid to :class:`Place`, read slot by slot."""
    slots = np.flatnonzero(index.id)
    uuids = dict(zip(slots.tolist(), index.uuids_of(slots), strict=True))
    return {uuid: Place(
        uuids.get(int(index.parent[slot])), uuids[int(index.root[index.tree[slot]])],
        frozenset(uuids[each] for each in range(slot, int(index.subtree_end[slot]))),
        index.trait_sets[index.trait_set[slot]], index.aggregate_sets[index.aggregate_set[slot]],
        frozenset(uuids[int(index.root[tree])] for tree in index.anchors(slot)))
        for slot, uuid in uuids.items()}


def expected(providers):
    """Return the same, computed from the parents.

    :param providers: dict of uuid to an object with ``parent``, ``traits`` and ``aggregates``
    """
    above = {uuid: _above(providers, uuid) for uuid in providers}
    found = {}
    for uuid, each in providers.items():
        anchors = {above[uuid][-1]}
        if SHARES in each.traits:
            anchors |= {above[other][-1] for other, one in providers.items()
                        if set(one.aggregates) & set(each.aggregates)}
        found[uuid] = Place(
            each.parent, above[uuid][-1],
            frozenset(other for other in providers if uuid in above[other]),
            frozenset(each.traits), frozenset(each.aggregates), frozenset(anchors))
    return found


def _above(providers, uuid):
    """Return a provider and all above it, up to the root."""
    found = [uuid]
    while providers[found[-1]].parent is not None:
        found.append(providers[found[-1]].parent)
    return found
