# SPDX-License-Identifier: Apache-2.0
"""Candidates by SQL."""

import numpy as np

from placement_rpc.accounting.providers import get_or_404
from placement_rpc.accounting.resource_classes import resolve
from placement_rpc.candidates import ordering
from placement_rpc.candidates.query import (
    Candidate,
    ProviderView,
    amounts_of,
    by_name,
    memberships,
)
from placement_rpc.db.queries import aggregates, candidates, providers

# Candidates that the database is asked for at a time when one is wanted.
_AT_ONCE = 50


class StoredCandidates:
    """Candidates as the database has them.

    :param database: :class:`placement_rpc.db.api.Database`
    """

    def __init__(self, database):
        self.database = database
        self._random = np.random.default_rng()

    def prepare(self):
        """Nothing has to be prepared."""

    def try_to_prepare(self):
        """Nothing has to be prepared."""

    def statistics(self):
        """:returns: dict, empty: there is no index"""
        return {}

    def keep_up(self):
        """Nothing can fall behind."""

    def verify(self, after, limit):
        """:returns: None: there is no index that could differ"""

    def find(self, request):
        """The providers that can support a request, in the order that it wants.

        :param request: :class:`placement_rpc.objects.request.ResourceRequest`
        :returns: list of :class:`placement_rpc.candidates.query.Candidate`
        :raises ResourceClassNotFound: when a class does not exist
        """
        with self.database.reader() as tx:
            ids = resolve(tx, request.resources)
            return by_name(self._find(tx, amounts_of(request, ids)), ids)

    def offers(self, request):
        """Providers to claim from, one after the other, for as long as there are any.

        :returns: generator of uuids
        :raises ResourceClassNotFound: when a class does not exist
        """
        while True:
            with self.database.reader() as tx:
                wanted = amounts_of(request, resolve(tx, request.resources))
                wanted.limit = _AT_ONCE
                found = self._find(tx, wanted)
            if not found:
                return
            for each in found:
                yield each.uuid

    def _find(self, tx, wanted):
        if wanted.order == ordering.RANDOM:
            # From somewhere to the end, and on from the beginning.
            first, last = candidates.ends(tx)
            start = int(self._random.integers(first, last + 1))
            rows = candidates.with_room(tx, wanted, wanted.limit, start=start)
            if wanted.limit is None or len(rows) < wanted.limit:
                rows += candidates.with_room(
                    tx, wanted, wanted.limit and wanted.limit - len(rows), end=start)
        else:
            rows = candidates.with_room(tx, wanted)
        places = ordering.choose(
            len(rows), wanted.order, wanted.limit, lambda: ordering.room_left(
                (_column(rows, "capacity", id_), _column(rows, "used", id_), amount)
                for id_, amount in wanted.amounts.items()), self._random) if rows else ()
        return [Candidate(row.id, row.uuid, row.name, row.generation, {
            id_: getattr(row, f"capacity_{id_}") - getattr(row, f"used_{id_}")
            for id_ in wanted.amounts}) for row in (rows[place] for place in places)]

    def look(self, request, marker=None, limit=None):
        """What each provider has for a request, in the order of their ids.

        :param marker: str, uuid of the provider after which to begin
        :param limit: int, how many at the most
        :returns: list of :class:`Look`
        :raises ResourceClassNotFound: :raises ProviderNotFound: when the marker is none
        """
        member_of = request.value("member_of") or ()
        barred = request.value("not_member_of") or ()
        with self.database.reader() as tx:
            if marker:
                get_or_404(tx, marker)
            ids = resolve(tx, request.resources)
            rows = providers.page(tx, marker=marker, limit=limit)
            found = candidates.inventories_of(tx, [row.id for row in rows], ids.values())
            inside = aggregates.of_providers(
                tx, [row.id for row in rows], {*barred, *(
                    uuid for uuids in member_of for uuid in uuids)})
        return [ProviderView(
            row.uuid, row.name, row.generation,
            {name: found.get((row.id, id_)) for name, id_ in ids.items()},
            *memberships(inside.get(row.id, ()), member_of, barred)) for row in rows]


def _column(rows, what, class_id):
    return np.array([getattr(row, f"{what}_{class_id}") for row in rows], np.int64)
