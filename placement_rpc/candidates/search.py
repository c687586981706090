# SPDX-License-Identifier: Apache-2.0
"""Search for candidates: find them, offer them to claims, and show why providers do not fit."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from oslo_config import cfg

from placement_rpc import exception
from placement_rpc.candidates import groups, matching, offers, rendering
from placement_rpc.candidates.group_queries import Bounds, groups_query_of
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.offers import Offer
from placement_rpc.candidates.query import Candidate, ProviderView, query_of, with_class_names
from placement_rpc.candidates.reservations import Amounts, Reservations
from placement_rpc.db.api import Database
from placement_rpc.objects import class_names
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.request import ResourceRequest

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Rendered:
    """Candidates with groups, as they are answered.

    :param parts: of JSON text, which are made while they are read
    :param position: of an event up to which every change is included
    :param count: how many candidates there are
    :param is_cut: whether there are, or may be, more than the maximum
    """

    parts: Iterable[str]
    position: int
    count: int
    is_cut: bool


class FoundProviders(NamedTuple):
    """Providers that fit a request.

    :ivar candidates: in the order that it asks for
    :ivar position: of an event up to which every change is included
    """

    candidates: list[Candidate]
    position: int


class CandidateSearch:
    """Answers searches from the index of this process.

    ``index`` is the :class:`placement_rpc.candidates.live_index.LiveIndex`. Each method waits for
    it until the deadline of the call, in seconds since the epoch, and raises
    ``ServiceUnavailable`` if it is not built by then.

    :param bounds: of searches with groups; None for none
    """

    def __init__(self, database: Database, bounds: Bounds | None = None):
        self._bounds = bounds or Bounds()
        self.index = LiveIndex(database.reader)
        self._reservations = Reservations()
        self._random = np.random.default_rng()

    def find(self, request: ResourceRequest, deadline: float | None = None,
             limit: int | None = None) -> FoundProviders:
        """Return the providers that fit a request.

        :param limit: the maximum number of providers, in place of the request's; None for that
        :raises ResourceClassNotFound: if a class does not exist
        :raises ServiceUnavailable: if the index is not built in time
        :raises StoreUnavailable: if the store cannot be read
        """
        with self.index.current(deadline) as index:
            ids = _class_ids(index, request.resources)
            query = query_of(request, ids, limit)
            return FoundProviders(with_class_names(matching.find(index, query, self._random), ids),
                         index.position)

    def candidates(self, request: CandidatesRequest, minor: int,
                   deadline: float | None = None) -> Rendered:
        """Return the allocations that a request with groups could get, rendered.

        :param minor: the minor microversion of the answer
        :raises ResourceClassNotFound: if a class does not exist
        :raises TraitNotFound: if a trait does not exist
        :raises ServiceUnavailable: if the index is not built in time
        :raises StoreUnavailable: if the store cannot be read
        """
        bounds, limit = self._bounds, request.value("limit")
        query = groups_query_of(request, None if bounds.is_sample else limit, minor)
        with self.index.current(deadline) as index:
            found = groups.find(
                index, query, self._random, limit=bounds.maximum, strategy=bounds.strategy)
            if bounds.is_sample:
                chosen = self._random.permutation(len(found.rows))[:limit]
                found = dataclasses.replace(found, rows=found.rows[chosen])
            taken, position = rendering.take(index, found, minor), index.position
        return Rendered(taken.parts(), position, taken.count, found.is_cut)

    def offers(self, request: ResourceRequest | CandidatesRequest,
               deadline: float | None = None,
               released: Callable[[], Amounts] | None = None) -> Iterator[Offer]:
        """Yield one candidate after the other to claim, while any fits.

        What is offered is reserved until the next candidate is asked for or the generator is
        closed, so that concurrent claims do not all try the last free provider.

        :param released: returns what the claim's consumer holds now, which counts as free. If it
            holds nothing, nothing is offered: the caller has looked for that already. None counts
            what the consumer holds as used.
        :raises ResourceClassNotFound: if a class does not exist
        :raises ServiceUnavailable: if the index is not built in time
        :raises StoreUnavailable: if the store cannot be read
        """
        reserved: Amounts | None = None
        try:
            while True:
                held = released() if released is not None else {}
                if released is not None and not held:
                    return
                with self.index.current(deadline) as index:
                    if reserved is not None:
                        self._reservations.cancel(reserved)
                        reserved = None
                    offer = self._first(index, request, held)
                    if offer is None:
                        return
                    self._reservations.reserve(offer.reserved)
                    reserved = offer.reserved
                yield offer
        finally:
            if reserved is not None:
                self._reservations.cancel(reserved)

    def _first(self, index, request, released):
        """Return the first candidate that fits; None if there is none."""
        if isinstance(request, CandidatesRequest):
            find = functools.partial(offers.of_tree, index, request, self._random, self._bounds)
        else:
            find = functools.partial(offers.of_provider, index, request, _class_ids(
                index, request.resources), self._random)
        return offers.first(index, self._reservations.amounts(), released, find)

    @property
    def reserved(self) -> dict[int, dict[int, int]]:
        """What claims under way have reserved: provider id to dict of class id to amount."""
        return self._reservations.amounts()

    def views(self, request: ResourceRequest, marker: str | None = None,
              limit: int | None = None, deadline: float | None = None) -> list[ProviderView]:
        """Return what each provider has of the requested classes, in the order of their ids.

        :param marker: uuid of the provider after which to begin
        :param limit: the maximum number of providers; None for all
        :raises ResourceClassNotFound: if a class does not exist
        :raises ProviderNotFound: if there is no provider of the marker's uuid
        :raises ServiceUnavailable: if the index is not built in time
        :raises StoreUnavailable: if the store cannot be read
        """
        with self.index.current(deadline) as index:
            ids = _class_ids(index, request.resources)
            slots = index.page(id_of(index, marker) if marker else 0, limit)
            return [ProviderView(
                uuid, index.name_of(slot), generation,
                {class_name: index.inventory_of(slot, class_id)
                 for class_name, class_id in ids.items()},
                index.aggregate_sets[aggregates])
                for slot, uuid, generation, aggregates in zip(
                    slots.tolist(), index.uuids_of(slots), index.generation[slots].tolist(),
                    index.aggregate_set[slots].tolist(), strict=True)]


def id_of(index: CandidateIndex, uuid: str) -> int:
    """Return the id of a provider.

    :raises ProviderNotFound: if there is no provider of that uuid
    """
    slot = index.slots_of_uuids([uuid]).get(uuid)
    if slot is None:
        raise exception.ProviderNotFound(provider=uuid)
    return int(index.id[slot])


def get_search(conf: cfg.ConfigOpts, database: Database) -> CandidateSearch:
    """Return the search of a process, and log options that are ignored."""
    if not conf.candidates.index:
        LOG.warning("[candidates] index = false is deprecated and ignored: candidates are always "
                    "found in the index. Remove the option.")
    return CandidateSearch(database, Bounds.of(conf))


def _class_ids(index: CandidateIndex, names: Collection[str]) -> dict[str, int]:
    """Return the ids of classes as the index has them.

    :raises ResourceClassNotFound: for the first name that does not exist
    """
    return class_names.resolve(names, lambda custom: {
        name: index.class_ids[name] for name in custom if name in index.class_ids})
