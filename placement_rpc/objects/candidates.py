# SPDX-License-Identifier: Apache-2.0
"""Who finds candidates: the index in memory, or the database.

Both answer the same questions in the same way; ``[candidates] index`` says which one is asked.
"""

import contextlib
import dataclasses
import logging
import threading

import numpy as np

from placement_rpc import exception
from placement_rpc.db.queries import aggregates, candidates, providers
from placement_rpc.objects import candidate_choice
from placement_rpc.objects.candidate_feed import Doubt, FollowedIndex
from placement_rpc.objects.candidate_index import Amounts, Candidate
from placement_rpc.objects.class_names import STANDARD_IDS
from placement_rpc.objects.resource_class import resolve
from placement_rpc.objects.resource_provider import known

LOG = logging.getLogger(__name__)

# Candidates that the database is asked for at a time when one is wanted.
_AT_ONCE = 50


def get_candidates(conf, database):
    """Who answers, as it is configured.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    :returns: :class:`StoredCandidates` or :class:`IndexedCandidates`
    """
    stored = StoredCandidates(database)
    return IndexedCandidates(stored) if conf.candidates.index else stored


@dataclasses.dataclass(slots=True)
class Look:
    """What one provider has for a request.

    :param inventories: dict of class name to what it has of it, with capacity, used, min_unit,
        max_unit and step_size; None for nothing
    :param memberships: list of bool, whether it is in one of each list of ``member_of``
    :param barred: list of the uuids of ``not_member_of`` that it is in
    """

    uuid: str
    name: str
    generation: int
    inventories: dict
    memberships: list
    barred: list


def _amounts(request, ids):
    """:param ids: dict of class name to id; :returns: :class:`Amounts` of a request"""
    return Amounts({ids[name]: amount for name, amount in request.resources.items()},
                   request.value("member_of") or (), request.value("not_member_of") or (),
                   request.value("order") or candidate_choice.RANDOM, request.value("limit"))


def _named(found, ids):
    """Candidates whose classes go by their names."""
    for each in found:
        each.free = {name: each.free[id_] for name, id_ in ids.items()}
    return found


class StoredCandidates:
    """Candidates as the database has them.

    :param database: :class:`placement_rpc.db.api.Database`
    """

    def __init__(self, database):
        self.database = database
        self._random = np.random.default_rng()

    def prepare(self):
        """Nothing has to be prepared."""

    def keep_up(self):
        """Nothing can fall behind."""

    def verify(self, after, limit):
        """:returns: None: there is no index that could differ"""

    def find(self, request):
        """The providers that can support a request, in the order that it wants.

        :param request: :class:`placement_rpc.objects.request.ResourceRequest`
        :returns: list of :class:`placement_rpc.objects.candidate_index.Candidate`
        :raises ResourceClassNotFound: when a class does not exist
        """
        with self.database.reader() as tx:
            ids = resolve(tx, request.resources)
            return _named(self._find(tx, _amounts(request, ids)), ids)

    def offers(self, request):
        """Providers to claim from, one after the other, for as long as there are any.

        :returns: generator of uuids
        :raises ResourceClassNotFound: when a class does not exist
        """
        while True:
            with self.database.reader() as tx:
                wanted = _amounts(request, resolve(tx, request.resources))
                wanted.limit = _AT_ONCE
                found = self._find(tx, wanted)
            if not found:
                return
            for each in found:
                yield each.uuid

    def _find(self, tx, wanted):
        if wanted.order == candidate_choice.RANDOM:
            # From somewhere to the end, and on from the beginning.
            first, last = candidates.ends(tx)
            start = int(self._random.integers(first, last + 1))
            rows = candidates.with_room(tx, wanted, wanted.limit, start=start)
            if wanted.limit is None or len(rows) < wanted.limit:
                rows += candidates.with_room(
                    tx, wanted, wanted.limit and wanted.limit - len(rows), end=start)
        else:
            rows = candidates.with_room(tx, wanted)
        places = candidate_choice.choose(
            len(rows), wanted.order, wanted.limit, lambda: candidate_choice.room_left(
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
                known(tx, marker)
            ids = resolve(tx, request.resources)
            rows = providers.page(tx, marker=marker, limit=limit)
            found = candidates.inventories_of(tx, [row.id for row in rows], ids.values())
            inside = aggregates.of_providers(
                tx, [row.id for row in rows], {*barred, *(
                    uuid for uuids in member_of for uuid in uuids)})
        return [Look(
            row.uuid, row.name, row.generation,
            {name: found.get((row.id, id_)) for name, id_ in ids.items()},
            *_memberships(inside.get(row.id, ()), member_of, barred)) for row in rows]


def _column(rows, what, class_id):
    return np.array([getattr(row, f"{what}_{class_id}") for row in rows], np.int64)


def _memberships(inside, member_of, barred):
    return ([any(uuid in inside for uuid in uuids) for uuids in member_of],
            [uuid for uuid in barred if uuid in inside])


class IndexedCandidates:
    """Candidates from memory, as new as the database's.

    :param stored: :class:`StoredCandidates`, who answers while the index is being made
    """

    def __init__(self, stored):
        self._stored = stored
        self._followed = None
        # Of the feed; and of the index, which is held much shorter.
        self._reading = threading.Lock()
        self._using = threading.Lock()
        self._making = None
        self._begun = self._done = 0
        # By provider id and class id, what claims that are being settled are about to take.
        self._pledged = {}

    # -- making it, and bringing it up to date ------------------------------------------

    def prepare(self):
        """Make the index, unless there is one.

        :raises StoreUnavailable:
        """
        with self._reading:
            if self._followed is None:
                followed = FollowedIndex(self._stored.database.reader)
                with self._using:
                    self._followed = followed
                LOG.info("The candidate index has %d providers and %d inventories, in %d bytes",
                         len(followed.index.providers), followed.index.size,
                         followed.index.nbytes)

    def drop(self, reason):
        """Forget the index; it is made anew, and meanwhile the database answers.

        :param reason: str
        """
        LOG.warning("The candidate index is dropped and made anew: %s", reason)
        with self._using:
            self._followed = None
        self._make()

    def _make(self):
        with self._using:
            if self._making is not None and self._making.is_alive():
                return
            self._making = threading.Thread(
                target=self._prepare_quietly, name="candidate index", daemon=True)
            self._making.start()

    def _prepare_quietly(self):
        try:
            self.prepare()
        except exception.PlacementException as error:
            LOG.warning("The candidate index is put off: %s", error)
        except Exception:
            LOG.exception("The candidate index can not be made")

    @contextlib.contextmanager
    def current(self):
        """The index, locked, with everything that was committed before the call.

        :returns: context manager giving a
            :class:`placement_rpc.objects.candidate_index.CandidateIndex`; None where there is
            none, since it is being made
        :raises StoreUnavailable:
        """
        if self._is_current():
            with self._using:
                # Dropped between the two.
                yield self._followed and self._followed.index
        else:
            self._make()
            yield None

    def _is_current(self):
        """Bring the index up to date; :returns: bool, whether there is one"""
        with self._using:
            if self._followed is None:
                return False
            needed = self._begun
        with self._reading:
            # A look at the feed that began after this call did is as good as one of its own.
            if self._done > needed:
                return self._followed is not None
            with self._using:
                self._begun += 1
                begun, followed = self._begun, self._followed
            if followed is None:
                return False
            try:
                changes = followed.changes()
                with self._using:
                    followed.apply(changes)
                    self._done = begun
            except Doubt as doubt:
                reason = str(doubt)
            else:
                return True
        self.drop(reason)
        return False

    def keep_up(self):
        """Bring the index up to date where nobody asked it for long, so that the next who does
        need not wait for all that happened meanwhile."""
        self._is_current()

    def verify(self, after, limit):
        """Compare a part of the index with the store.

        :param after: int, the provider id after which to begin
        :param limit: int, how many providers at the most
        :returns: dict of ``providers``, ``inventories``, ``bytes`` and ``position`` of the index,
            ``differences``, a dict of provider id to what differs, and ``next``, the id to go on
            after, None at the end; None where there is no index
        :raises StoreUnavailable:
        """
        with self._reading:
            followed = self._followed
            if followed is None:
                return None
            with self._using:
                try:
                    found, end = followed.differences(after, limit)
                except Doubt as doubt:
                    found, end = {0: str(doubt)}, None
                answer = {
                    "providers": len(followed.index.providers),
                    "inventories": followed.index.size, "bytes": followed.index.nbytes,
                    "position": followed.position, "next": end,
                    "differences": {str(id_): text for id_, text in found.items()}}
        if found:
            self.drop("; ".join(f"provider {id_}: {text}" for id_, text in sorted(
                found.items())[:3]))
        return answer

    # -- answering ----------------------------------------------------------------------

    def find(self, request):
        """As :meth:`StoredCandidates.find`."""
        with self.current() as index:
            if index is not None:
                ids = _resolved(index, request.resources)
                return _named(index.find(_amounts(request, ids)), ids)
        return self._stored.find(request)

    def offers(self, request):
        """As :meth:`StoredCandidates.offers`.

        What is offered counts as taken, for everybody who asks this process, until the next one
        is asked for or the generator is closed: so claims that are made at once do not try the
        last free provider together.
        """
        pledge = None
        try:
            while True:
                with self._using:
                    self._take_back(pledge)
                    pledge = None
                with self.current() as index:
                    if index is None:
                        break
                    wanted = _amounts(request, _resolved(index, request.resources))
                    wanted.limit = 1
                    # Where all that is left is pledged: not every pledge becomes a claim.
                    found = index.find(wanted, self._pledged) or index.find(wanted)
                    pledge = self._pledge(found, wanted.amounts)
                if not found:
                    return
                yield found[0].uuid
        finally:
            with self._using:
                self._take_back(pledge)
        yield from self._stored.offers(request)

    def _pledge(self, found, amounts):
        if not found:
            return None
        pledged = self._pledged.setdefault(found[0].id, {})
        for class_id, amount in amounts.items():
            pledged[class_id] = pledged.get(class_id, 0) + amount
        return found[0].id, amounts

    def _take_back(self, pledge):
        if pledge is None:
            return
        provider_id, amounts = pledge
        pledged = self._pledged[provider_id]
        for class_id, amount in amounts.items():
            pledged[class_id] -= amount
        if not any(pledged.values()):
            del self._pledged[provider_id]

    def look(self, request, marker=None, limit=None):
        """As :meth:`StoredCandidates.look`."""
        with self.current() as index:
            if index is not None:
                return _look(index, request, marker, limit)
        return self._stored.look(request, marker, limit)


def _resolved(index, names):
    """As :func:`placement_rpc.objects.resource_class.resolve`, of the index."""
    ids = {name: STANDARD_IDS.get(name, index.class_ids.get(name)) for name in names}
    for name, id_ in ids.items():
        if id_ is None:
            raise exception.ResourceClassNotFound(resource_class=name)
    return ids


def _look(index, request, marker, limit):
    after = 0
    if marker:
        after = index.id_of(marker)
        if after is None:
            raise exception.ProviderNotFound(provider=marker)
    ids = _resolved(index, request.resources)
    return [Look(
        uuid, name, generation,
        {class_name: index.inventory_of(id_, class_id) for class_name, class_id in ids.items()},
        *_memberships(index.aggregates_of(id_), request.value("member_of") or (),
                      request.value("not_member_of") or ()))
        for id_, uuid, name, generation in index.page(after, limit)]
