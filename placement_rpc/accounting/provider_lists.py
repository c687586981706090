# SPDX-License-Identifier: Apache-2.0
"""Lists of resource providers: one statement for a page, once the ids of its traits are known."""

from collections.abc import Collection, Sequence
from typing import Any

from placement_rpc.accounting import providers, traits
from placement_rpc.db.api import Database
from placement_rpc.db.queries import providers as queries
from placement_rpc.objects import codec
from placement_rpc.objects.resource_provider import ResourceProviderList

# Providers that are read at once to select some of them.
_PAGE = 1000
# Traits whose ids are remembered.
_MOST_TRAITS = 10_000


class ProviderLists:
    """Reads lists of resource providers.

    It remembers the row ids of traits. The statement that uses them says whether they still are
    those of the names, since a trait can be deleted and created again.

    :param database: the store
    """

    def __init__(self, database: Database):
        self._database = database
        self._trait_ids: dict[str, int] = {}

    def page(self, limit: int, marker: str | None = None,
             required: Sequence[Sequence[str]] = (), forbidden: Sequence[str] = (),
             among: Collection[str] | None = None, position: int | None = None,
             **filters: Any) -> ResourceProviderList:
        """Return a :class:`ResourceProviderList`, in the order of creation.

        :param limit: the most providers to return
        :param marker: uuid of the provider after which to begin
        :param required: lists of names of traits: only providers that have one of each list
        :param forbidden: names of traits: only providers that have none of them
        :param among: only providers of these uuids
        :param position: of an event up to which ``among`` is current; None for the last one
        :param filters: name, uuid, member_of, not_member_of, in_tree; see
            :func:`placement_rpc.db.queries.providers.page`
        :raises ProviderNotFound: if there is no provider of the marker
        :raises TraitNotFound: if there is no trait of one of the names
        """
        names = {name for names in (*required, forbidden) for name in names}
        with self._database.reader() as tx:
            after = providers.get_or_404(tx, marker).id if marker else None
            ids = {name: self._trait_ids[name] for name in names if name in self._trait_ids}
            found = None
            while found is None:
                if len(ids) < len(names):
                    ids = self._resolve(tx, names)
                filters["traits"] = [(ids[name], name) for name in sorted(names)]
                filters["required"] = [[ids[name] for name in each] for each in required]
                filters["forbidden"] = [ids[name] for name in forbidden]
                found = _read(tx, limit, after, among, filters)
                ids = {}
        first, rows = found
        return codec.stored(
            ResourceProviderList, objects=[providers.of_row(row) for row in rows[:limit]],
            position=first if position is None else position, more=len(rows) > limit)

    def _resolve(self, tx, names):
        ids = traits.resolve(tx, names)
        if len(self._trait_ids) + len(ids) > _MOST_TRAITS:
            self._trait_ids = {}
        self._trait_ids |= ids
        return ids


def _read(tx, limit, after, among, filters):
    """Read at least one row more than the limit, if there are so many.

    :returns: tuple of the position that all rows include, and a list of rows; None if the ids of
        the traits are not those of their names
    """
    rows: list = []
    position = None
    size = limit + 1
    if among is not None and len(among) <= _PAGE:
        filters["among"] = sorted(among)
    elif among is not None:
        # The database would not use an index for so many, and not all are in each page.
        size = max(size, _PAGE)
    while len(rows) <= limit:
        page = queries.page(tx, after=after, limit=size, **filters)
        if not page.has_traits:
            return None
        position = page.position if position is None else position
        rows += [row for row in page.rows if among is None or row.uuid in among]
        if len(page.rows) < size:
            break
        after = page.rows[-1].id
    return position, rows
