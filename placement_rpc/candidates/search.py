# SPDX-License-Identifier: Apache-2.0
"""Who finds candidates: the index in memory, or the database.

Both answer the same questions in the same way; ``[candidates] index`` says which one is asked.
"""

import contextlib
import logging
import threading
import time

from placement_rpc import exception
from placement_rpc.candidates.feed import FollowedIndex, IndexStale
from placement_rpc.candidates.query import ProviderView, amounts_of, by_name, memberships
from placement_rpc.candidates.stored import StoredCandidates
from placement_rpc.objects.class_names import STANDARD_IDS
from placement_rpc.telemetry.spans import span

LOG = logging.getLogger(__name__)
# How many times as long as it took to make an index the next one waits.
_PAUSES = 10


def get_candidates(conf, database):
    """Who answers, as it is configured.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    :returns: :class:`StoredCandidates` or :class:`IndexedCandidates`
    """
    stored = StoredCandidates(database)
    return IndexedCandidates(stored) if conf.candidates.index else stored


class IndexedCandidates:
    """Candidates from memory, as new as the database's.

    :param stored: :class:`StoredCandidates`, who answers while the index is being made
    """

    def __init__(self, stored):
        self._stored = stored
        self._followed = None
        # Of making an index; of the feed; and of the index itself, which is held much shorter.
        self._building = threading.Lock()
        self._reading = threading.Lock()
        self._using = threading.Lock()
        self._making = None
        self._not_before = 0
        self._made = 0
        self._begun = self._done = 0
        # By provider id and class id, what claims that are being settled are about to take.
        self._pledged = {}

    # -- making it, and bringing it up to date ------------------------------------------

    def prepare(self):
        """Make the index, unless there is one.

        :raises StoreUnavailable:
        """
        with self._building:
            if self._followed is not None:
                return
            began = time.monotonic()
            followed = FollowedIndex(self._stored.database.reader)
            took = time.monotonic() - began
            # Where it is doubted again and again, to make it must not be all that is done.
            self._not_before = time.monotonic() + _PAUSES * took
            with self._using:
                self._followed = followed
                self._made += 1
            LOG.info("The candidate index has %d providers and %d inventories, in %d bytes; it "
                     "took %.1f s", len(followed.index.providers), followed.index.size,
                     followed.index.nbytes, took)

    def try_to_prepare(self):
        """As :meth:`prepare`; where it can not be made, the log says so and the database
        answers."""
        try:
            self.prepare()
        except exception.PlacementException as error:
            LOG.warning("The candidate index is put off: %s", error)
        except Exception:
            LOG.exception("The candidate index can not be made")

    def drop(self, reason, followed=None):
        """Forget the index; it is made anew, and meanwhile the database answers.

        :param reason: str
        :param followed: the one that is meant; None for whichever there is
        """
        with self._using:
            if followed not in (None, self._followed):
                return
            self._followed = None
        LOG.warning("The candidate index is dropped and made anew: %s", reason)
        self._make()

    def _make(self):
        with self._using:
            if self._making is not None and self._making.is_alive():
                return
            self._making = threading.Thread(
                target=self._make_later, name="candidate index", daemon=True)
            self._making.start()

    def _make_later(self):
        time.sleep(max(0.0, self._not_before - time.monotonic()))
        self.try_to_prepare()

    @contextlib.contextmanager
    def current(self):
        """The index, locked, with everything that was committed before the call.

        :returns: context manager giving a
            :class:`placement_rpc.candidates.index.CandidateIndex`; None where there is
            none, since it is being made
        :raises StoreUnavailable:
        """
        with span("candidate index"):
            current = self._is_current()
        if current:
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
                return True
            except exception.PlacementException:
                raise
            except IndexStale as doubt:
                reason = str(doubt)
            except Exception as error:
                # Perhaps half of it is applied; whatever it was, it would be so each time.
                LOG.exception("The candidate index can not be brought up to date")
                reason = type(error).__name__
        self.drop(reason, followed)
        return False

    def statistics(self):
        """:returns: dict of what there is to tell of the index in numbers; empty where none is"""
        with self._using:
            followed = self._followed
            if followed is None:
                return {"made": self._made}
            return {"providers": len(followed.index.providers),
                    "inventories": followed.index.size, "bytes": followed.index.nbytes,
                    "position": followed.position, "age_seconds": followed.age,
                    "applied": followed.applied, "made": self._made}

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
            try:
                found, end = followed.differences(after, limit, self._using)
            except exception.PlacementException:
                raise
            except Exception as error:
                LOG.warning("The candidate index can not be verified", exc_info=error)
                found, end = {0: str(error) or type(error).__name__}, None
            with self._using:
                answer = {
                    "providers": len(followed.index.providers),
                    "inventories": followed.index.size, "bytes": followed.index.nbytes,
                    "position": followed.position, "next": end,
                    "differences": {str(id_): text for id_, text in found.items()}}
        if found:
            self.drop("; ".join(f"provider {id_}: {text}" for id_, text in sorted(
                found.items())[:3]), followed)
        return answer

    # -- answering ----------------------------------------------------------------------

    def find(self, request):
        """As :meth:`StoredCandidates.find`."""
        with self.current() as index:
            if index is not None:
                ids = _resolved(index, request.resources)
                return by_name(index.find(amounts_of(request, ids)), ids)
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
                    wanted = amounts_of(request, _resolved(index, request.resources))
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
    """As :func:`placement_rpc.accounting.resource_classes.resolve`, of the index."""
    ids = {name: STANDARD_IDS.get(name, index.class_ids.get(name)) for name in names}
    for name, id_ in ids.items():
        if id_ is None:
            raise exception.ResourceClassNotFound(resource_class=name)
    return ids


def _look(index, request, marker, limit):
    after = 0
    if marker:
        after = max(index.ids_of({marker}), default=None)
        if after is None:
            raise exception.ProviderNotFound(provider=marker)
    ids = _resolved(index, request.resources)
    return [ProviderView(
        uuid, name, generation,
        {class_name: index.inventory_of(id_, class_id) for class_name, class_id in ids.items()},
        *memberships(index.aggregates_of(id_), request.value("member_of") or (),
                      request.value("not_member_of") or ()))
        for id_, uuid, name, generation in index.page(after, limit)]


class IndexMaintenance:
    """Keeps an index up to date where nobody asks, and compares it with the store bit by bit.

    :param candidates: :class:`StoredCandidates` or :class:`IndexedCandidates`
    :param sample: int, how many providers are compared each time; 0 for none
    """

    def __init__(self, candidates, sample):
        self._candidates = candidates
        self._sample = sample
        self._after = 0

    def step(self):
        """Do the next bit; :raises StoreUnavailable:"""
        self._candidates.keep_up()
        if self._sample:
            answer = self._candidates.verify(self._after, self._sample)
            self._after = (answer and answer["next"]) or 0
