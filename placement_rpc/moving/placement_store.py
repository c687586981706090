# SPDX-License-Identifier: Apache-2.0
"""A snapshot of OpenStack Placement's store, as this service would hold it."""

import contextlib
import heapq
import itertools
import operator
from collections.abc import Iterator

from placement_rpc.db.placement import connection, reading
from placement_rpc.moving import repairs, rows
from placement_rpc.moving.stores import Finding, Report

#: Project and user of a consumer without any, unless Placement is configured otherwise.
INCOMPLETE = "00000000-0000-0000-0000-000000000000"

_FIRST = operator.itemgetter(0)


@contextlib.contextmanager
def opened(url: str, incomplete_project: str = INCOMPLETE,
           incomplete_user: str = INCOMPLETE) -> Iterator["PlacementStore"]:
    """Open a snapshot of Placement's database.

    :param url: SQLAlchemy URL
    :param incomplete_project: project of consumers of which Placement knows none
    :param incomplete_user: user of consumers of which Placement knows none
    :raises NotPlacementDatabase: if it is not one, or of a revision that is not known
    :raises StoreUnavailable: if it cannot be read
    """
    with connection.engine(url) as engine, connection.snapshot(engine) as begun:
        revision = connection.check_revision(begun)
        yield PlacementStore(
            reading.Reader(begun, revision), revision, incomplete_project, incomplete_user)


def _discard(_finding):
    """Report to nobody."""


class PlacementStore:
    """A :class:`stores.Store`; use :func:`opened`.

    :param reader: :class:`reading.Reader`, or what reads as it does
    :param revision: of the schema
    """

    def __init__(self, reader, revision: str, incomplete_project: str = INCOMPLETE,
                 incomplete_user: str = INCOMPLETE):
        self.revision = revision
        self._reader = reader
        self._incomplete = incomplete_project, incomplete_user
        self._uuids: dict[str, str] | None = None
        self._names: dict[str, dict[int, str]] = {}

    def rows(self, kind: str, report: Report | None = None) -> Iterator[rows.Row]:
        """Yield the rows of a kind, as :meth:`stores.Store.rows` says."""
        if kind in rows.STANDARD:
            return self._named(kind, report or _discard)
        return getattr(self, f"_{kind}")(report or _discard)

    def findings(self, report: Report) -> None:
        """Report all findings, by reading all rows."""
        for kind in rows.KINDS:
            for _ in self.rows(kind, report):
                pass

    # -- names and uuids -------------------------------------------------------------------

    def _named(self, kind, report):
        read = getattr(self._reader, kind)()
        names = repairs.names(kind, read, rows.STANDARD[kind], report)
        self._names[kind] = names
        cls = rows.KINDS[kind]
        yield from sorted(cls(names[id_], *times) for id_, _, *times in read
                          if names[id_] not in rows.STANDARD[kind])

    def _names_of(self, kind):
        if kind not in self._names:
            self._names[kind] = repairs.names(
                kind, getattr(self._reader, kind)(), rows.STANDARD[kind], _discard)
        return self._names[kind]

    def _canonical(self):
        """Return a function that returns the uuid of a provider or an aggregate."""
        if self._uuids is None:
            self._uuids = {text: repairs.canonical_uuid(text) for table in (
                "providers", "aggregates") for text in self._reader.oddities.unusual(table)}
        uuids = self._uuids
        return lambda text: uuids.get(text, text)

    def _in_order(self, stream, kind=None, report=_discard, generation=None):
        """Yield the rows of a stream, with uuids as this service writes them.

        Of the rows of one uuid, the one that is written in the usual way comes first.

        :param kind: to report the unusual ones as; None not to report them
        :param generation: index of the generation, of which the greatest comes first otherwise
        """
        if not stream.unusual:
            return stream.usual
        for text in dict.fromkeys(map(_FIRST, stream.unusual)) if kind else ():
            repairs.report_uuid(report, kind, text)
        unusual = [(repairs.canonical_uuid(row[0]), *row[1:]) for row in stream.unusual]
        if generation is not None:
            unusual.sort(key=lambda row: row[generation] or 0, reverse=True)
        unusual.sort(key=_FIRST)
        return heapq.merge(stream.usual, unusual, key=_FIRST)

    # -- providers and what they have ------------------------------------------------------

    def _providers(self, report):
        canonical, oddities = self._canonical(), self._reader.oddities
        trees = repairs.trees(oddities.parents(), canonical) if (
            oddities.has_broken_trees() or oddities.unusual("providers")) else None
        ambiguous = oddities.ambiguous_names()
        read = self._in_order(self._reader.providers(), "providers", report, generation=2)
        for uuid, group in itertools.groupby(read, _FIRST):
            (_, name, generation, parent_id, root_id, parent, root, created_at,
             updated_at), *others = group
            for other in others:
                report(Finding("uuid_twice", "providers", (uuid,),
                               f"one provider, named {name}, with what {other[1]} has too"))
            if trees is not None:
                place = trees[uuid]
                repairs.report_tree(uuid, (
                    parent_id, root_id, parent and canonical(parent), root and canonical(root),
                ), place, report)
                parent, root = place
            yield rows.ProviderRow(
                uuid, repairs.provider_name(uuid, name, report, ambiguous),
                repairs.generation("providers", (uuid,), generation, report), parent, root,
                created_at, updated_at)

    def _inventories(self, report):
        names, oddities = self._names_of("resource_classes"), self._reader.oddities
        if report is not _discard:
            for provider_id, uuid, class_id, name, total in oddities.inventories_of_nothing():
                report(_of_nothing("inventories", ("provider", uuid, provider_id),
                                   ("class", name, class_id), total=total))
        read = self._in_order(self._reader.inventories())
        for uuid, group in itertools.groupby(read, _FIRST):
            found = {}
            for _, class_id, *values, used, created_at, updated_at in group:
                name = names.get(class_id)
                if name is None:
                    continue
                key = uuid, name
                if key in found:
                    if values[0] is not None:
                        report(Finding("inventory_twice", "inventories", key,
                                       f"the one with total {found[key].total} is kept"))
                    continue
                values = (repairs.filled_inventory(key, used, report) if values[0] is None
                          else repairs.inventory_values(key, tuple(values), report))
                if used and report is not _discard:
                    repairs.check_capacity(key, values, used, report)
                found[key] = rows.InventoryRow(*key, *values, created_at, updated_at)
            yield from [found[key] for key in sorted(found)]

    def _provider_traits(self, report):
        names = self._names_of("traits")
        if report is not _discard:
            for provider_id, uuid, trait_id, name in self._reader.oddities.traits_of_nothing():
                report(_of_nothing("provider_traits", ("provider", uuid, provider_id),
                                   ("trait", name, trait_id)))
        read = self._in_order(self._reader.provider_traits())
        for uuid, group in itertools.groupby(read, _FIRST):
            found = {names[id_]: times for _, id_, *times in group if id_ in names}
            yield from [rows.ProviderTraitRow(uuid, name, *found[name]) for name in sorted(found)]

    def _provider_aggregates(self, report):
        canonical, oddities = self._canonical(), self._reader.oddities
        if report is not _discard:
            for provider_id, uuid, id_, aggregate in oddities.aggregates_of_nothing():
                report(_of_nothing("provider_aggregates", ("provider", uuid, provider_id),
                                   ("aggregate", aggregate, id_)))
            for text in oddities.unusual("aggregates"):
                repairs.report_uuid(report, "aggregates", text)
            _report_unused(oddities, ("aggregates",), report)
        read = self._in_order(self._reader.provider_aggregates())
        for uuid, group in itertools.groupby(read, _FIRST):
            found = {canonical(aggregate): times for _, aggregate, *times in group}
            yield from [rows.ProviderAggregateRow(uuid, aggregate, *found[aggregate])
                        for aggregate in sorted(found)]

    # -- consumers and what they use -------------------------------------------------------

    def _consumers(self, report):
        types = self._names_of("consumer_types")
        if report is not _discard:
            _report_unused(self._reader.oddities, ("projects", "users"), report)
        read = self._in_order(self._reader.consumers(), "consumers", report, generation=5)
        for uuid, group in itertools.groupby(read, _FIRST):
            found, is_holder = [], False
            for row in group:
                if row[1]:
                    is_holder = True
                else:
                    found.append(row)
            if is_holder:
                yield self._consumer(uuid, found, types, report)
                continue
            for row in found:
                report(Finding("consumer_without_allocations", "consumers", (uuid,),
                               f"left out; its generation is {row[5]}"))

    def _consumer(self, uuid, found, types, report):
        """Return a row of a consumer that has allocations.

        :param found: the rows of its uuid, the one that counts first
        """
        project, user = self._incomplete
        if not found:
            report(Finding("consumer_missing", "consumers", (uuid,),
                           f"a consumer of project {project} and user {user}"))
            return rows.ConsumerRow(uuid, project, user, None, repairs.FIRST_OF_CONSUMER)
        (_, _, found_project, found_user, type_id, generation, created_at,
         updated_at), *others = found
        for row in others:
            report(Finding("uuid_twice", "consumers", (uuid,),
                           f"one consumer, of generation {generation} and not {row[5]}"))
        consumer_type = types.get(type_id)
        if type_id is not None and consumer_type is None:
            report(Finding("consumer_type_missing", "consumers", (uuid,), "of no type"))
        return rows.ConsumerRow(
            uuid, repairs.keystone_id("project", uuid, found_project, project, report),
            repairs.keystone_id("user", uuid, found_user, user, report), consumer_type,
            repairs.generation("consumers", (uuid,), generation, report), created_at, updated_at)

    def _allocations(self, report):
        names, canonical = self._names_of("resource_classes"), self._canonical()
        if report is not _discard:
            for consumer, provider_id, uuid, class_id, name, used in (
                    self._reader.oddities.unusable_allocations()):
                report(_unusable(consumer, ("provider", uuid, provider_id),
                                 ("class", name, class_id), used))
        read = self._in_order(self._reader.allocations())
        for consumer, group in itertools.groupby(read, _FIRST):
            found = {}
            for _, provider, class_id, used, *times in group:
                amounts, _ = found.setdefault((canonical(provider), names[class_id]), ([], times))
                amounts.append(used)
            for held in sorted(found):
                amounts, times = found[held]
                key = consumer, *held
                yield rows.AllocationRow(*key, repairs.amount(key, amounts, report), *times)


def _report_unused(oddities, kinds, report):
    for kind, number in oddities.unused().items():
        if number and kind in kinds:
            report(Finding("unused", kind, (), f"{number} that nothing refers to are left out"))


def _of_nothing(kind, *references, total=None):
    """Return the finding for a row that refers to something that does not exist."""
    return Finding("reference_missing", kind, tuple(
        name or f"{what} {id_}" for what, name, id_ in references),
        f"left out: there is no {_missing(references)}" + (
            "" if total is None else f"; its total is {total}"))


def _missing(references):
    return " and no ".join(f"{what} of the id {id_}" for what, name, id_ in references
                           if name is None)


def _unusable(consumer, provider, resource_class, used):
    key = consumer, *(name or f"{what} {id_}" for what, name, id_ in (provider, resource_class))
    missing = _missing((provider, resource_class))
    if missing:
        return Finding("reference_missing", "allocations", key,
                       f"left out: there is no {missing}; its amount is {used}")
    return Finding("amount_not_positive", "allocations", key, f"left out: its amount is {used}")
