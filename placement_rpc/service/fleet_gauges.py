# SPDX-License-Identifier: Apache-2.0
"""Gauges of the fleet: capacity and use by resource class and aggregate, and headroom.

They are computed from the candidate index when they are scraped, and again only after the index
has changed. The store is not read.
"""

import logging
from collections.abc import Iterator, Sequence

from placement_rpc import exception
from placement_rpc.candidates import fleet_sums, headroom, taking
from placement_rpc.candidates.fleet_sums import Sums
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.query import Group, GroupsQuery
from placement_rpc.conf.headroom import NamedRequest

LOG = logging.getLogger(__name__)

# Processor time for trees whose groups compete for providers, which a named request has not.
_COUNTING_SECONDS = 0.1
_CLASS, _AGGREGATE, _REQUEST = "resource_class", "aggregate", "request"

# A gauge: its name, its help, and its values by their labels.
_Gauge = tuple[str, str, dict[tuple, float]]


class FleetGauges:
    """The gauges of one process, as :meth:`placement_rpc.telemetry.metrics.Metrics.watch` reads.

    :param index: the index of the process
    :param requests: the requests whose headroom is a gauge
    :raises InvalidInput: if two requests have the same name
    """

    def __init__(self, index: LiveIndex, requests: Sequence[NamedRequest]):
        names = [request.name for request in requests]
        for name in names:
            if names.count(name) > 1:
                raise exception.InvalidInput(
                    what="[headroom] request", reason=f"{name} is named twice")
        self._index = index
        self._requests = requests
        self._state: object = None
        # The last reason why a request has no gauge: it is logged once, not at each scrape.
        self._refused: dict[str, str] = {}
        self._gauges: list[_Gauge] = []

    def __call__(self) -> Iterator[_Gauge]:
        """Yield the gauges; none if there is no index."""
        figures = self._index.statistics()
        state = (figures["made"], figures.get("applied"))
        if "applied" not in figures:
            return
        if state != self._state:
            # Two threads that scrape at the same time compute the same.
            self._gauges, self._state = [*self._sums(), *self._headroom()], state
        yield from self._gauges

    def _sums(self) -> Iterator[_Gauge]:
        whole: dict[str, Sums] = {}
        parts: dict[tuple[str, str], Sums] = {}
        with self._index.peek() as index:
            names = {} if index is None else {
                name: class_id for name, class_id in index.class_ids.items()
                if class_id in index.inventories}
        for name, class_id in sorted(names.items()):
            # Calls that need the index go on between two classes.
            with self._index.peek() as index:
                if index is None or class_id not in index.inventories:
                    continue
                whole[name], of_aggregates = fleet_sums.of_class(index, class_id)
            parts.update(((uuid, name), sums) for uuid, sums in of_aggregates.items())
        for field, text in (
                ("capacity", "Capacity, without what is reserved and with the allocation ratio"),
                ("reserved", "Reserved amount"), ("used", "Used amount")):
            yield field, f"{text}, by resource class", {
                ((_CLASS, name),): getattr(sums, field) for name, sums in whole.items()}
            yield f"aggregate_{field}", f"{text}, by aggregate and resource class", {
                ((_AGGREGATE, uuid), (_CLASS, name)): getattr(sums, field)
                for (uuid, name), sums in parts.items()}

    def _headroom(self) -> Iterator[_Gauge]:
        whole: dict[tuple, float] = {}
        parts: dict[tuple, float] = {}
        for request in self._requests:
            query = GroupsQuery([Group("", request.resources)])
            try:
                with self._index.peek() as index:
                    if index is None:
                        continue
                    taken = taking.take(index, query, taking.AGGREGATE)
            except (exception.ResourceClassNotFound, exception.RequestTooComplex) as error:
                if self._refused.get(request.name) != str(error):
                    LOG.warning("The headroom of %s is not exported: %s", request.name, error)
                self._refused[request.name] = str(error)
                continue
            self._refused.pop(request.name, None)
            found = headroom.headroom(taken, taking.AGGREGATE, _COUNTING_SECONDS)
            whole[(_REQUEST, request.name),] = found.count
            parts.update({((_AGGREGATE, part["name"]), (_REQUEST, request.name)): part["count"]
                          for part in found.parts})
        text = "Number of further requests that fit"
        yield "headroom", f"{text}, by the name of the request", whole
        yield ("aggregate_headroom", f"{text}, by aggregate and by the name of the request",
               parts)
