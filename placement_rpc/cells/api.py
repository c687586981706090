# SPDX-License-Identifier: Apache-2.0
"""The client of several cells."""

import copy
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from oslo_config import cfg
from oslo_context.context import RequestContext

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.api import PlacementAPI
from placement_rpc.cells import claims, reads, routes
from placement_rpc.cells.calls import Call, routed
from placement_rpc.cells.cell import Cell, ask
from placement_rpc.cells.locations import Locations
from placement_rpc.conf import cells as options
from placement_rpc.objects.fields import Uuid
from placement_rpc.rpc.client import seconds_of


class CellsAPI:
    """Calls to the cells of a cloud. Thread-safe; make one per process, after it forked.

    Its methods are those of :class:`placement_rpc.api.PlacementAPI`, with the same arguments and
    the same errors. A call about a provider or a consumer goes to the cell that has it, which is
    remembered, or found by asking all cells. A find asks the cells that ``member_of`` leaves, and
    leaves out those that do not answer. Other reads need an answer of every cell.

    In addition, a method may raise SeveralCells, before anything is sent, if a change names
    providers of several cells, and CellUnreachable if cells do not answer that are needed.

    :param conf: as of PlacementAPI; ``[placement_client] cells`` names the cells
    :param cells: the cells; None for those of the configuration, over RabbitMQ
    """

    def __init__(self, conf: cfg.ConfigOpts | None = None, cells: Sequence[Cell] | None = None):
        self.conf = conf or configuration.new_config()
        #: All cells, in the order of the configuration.
        self.fleet = tuple(_configured(self.conf) if cells is None else cells)
        #: The cells that are called; fewer if :meth:`only` chose them.
        self.cells = self.fleet
        self.locations = Locations()
        #: Seconds within which a call ends that is made without a time-out.
        self.deadline = self.conf.placement_client.deadline
        if not self.fleet:
            raise exception.InvalidInput(
                what="[placement_client] cells", reason="it names no cell")

    def close(self) -> None:
        """Close the connections to all cells, also those that :meth:`only` left out."""
        for cell in self.fleet:
            cell.close()

    def reload(self) -> None:
        """Read the configured pin again, and forget which release each cell's services speak."""
        for cell in self.fleet:
            cell.api.reload()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def cell(self, name: str) -> PlacementAPI:
        """Return the client of one cell, for calls that only one cell can answer.

        These are the calls of compute nodes, events, explanations, and of the service's processes.

        :raises InvalidInput: if there is no such cell
        """
        return self.only(cell=name).cells[0].api

    def only(self, cell: str | None = None, region: str | None = None,
             aggregate: str | None = None) -> "CellsAPI":
        """Return the calls of some of these cells, over the same connections.

        All conditions have to be met. With a single cell left, the calls that create a provider
        or report a compute node know where.

        :param cell: the name of a cell
        :param region: the cells of this region
        :param aggregate: the cells that list this aggregate
        :raises InvalidInput: if there is no such cell
        """
        if aggregate is not None:
            aggregate = Uuid().coerce(None, "aggregate", aggregate)
        kept = tuple(
            each for each in self.cells if cell in (None, each.name)
            and region in (None, each.region)
            and (aggregate is None or aggregate in each.aggregates))
        if not kept:
            wanted = {"cell": cell, "region": region, "aggregate": aggregate}
            raise exception.InvalidInput(what="cell", reason="there is none with " + ", ".join(
                f"{name} {value!r}" for name, value in wanted.items() if value is not None))
        found = copy.copy(self)
        found.cells = kept
        return found

    def ping_cells(self, context: RequestContext | None, timeout: float | None = None,
                   ) -> dict[str, Mapping[str, Any] | exception.PlacementException]:
        """Return what each cell's service answers to a ping, or the error, by the cell's name."""
        seconds = seconds_of(timeout, self.conf.placement_client.cell_timeout)
        answers = ask(self.cells, lambda api: api.ping(context, timeout=seconds), seconds)
        every = {**answers.found, **answers.refused, **answers.missing}
        return {cell.name: every[cell] for cell in self.cells}

    # -- providers ------------------------------------------------------------------------

    create_provider = routed(PlacementAPI.create_provider, routes.to_the_parent)
    update_provider = routed(PlacementAPI.update_provider, routes.to_the_provider)
    delete_provider = routed(PlacementAPI.delete_provider, routes.deletion)
    get_provider = routed(PlacementAPI.get_provider, routes.to_the_provider)
    list_providers = routed(PlacementAPI.list_providers, reads.list_providers)
    get_aggregates = routed(PlacementAPI.get_aggregates, routes.to_the_provider)
    set_aggregates = routed(PlacementAPI.set_aggregates, routes.to_the_provider)
    set_inventory = routed(PlacementAPI.set_inventory, routes.to_the_provider)
    add_inventory = routed(PlacementAPI.add_inventory, routes.to_the_provider)
    update_inventory = routed(PlacementAPI.update_inventory, routes.to_the_provider)
    delete_inventory = routed(PlacementAPI.delete_inventory, routes.to_the_provider)
    get_inventory = routed(PlacementAPI.get_inventory, routes.to_the_provider)
    get_provider_traits = routed(PlacementAPI.get_provider_traits, routes.to_the_provider)
    set_provider_traits = routed(PlacementAPI.set_provider_traits, routes.to_the_provider)
    get_provider_allocations = routed(
        PlacementAPI.get_provider_allocations, routes.to_the_provider)
    get_usages = routed(PlacementAPI.get_usages, routes.to_the_provider)

    # -- consumers ------------------------------------------------------------------------

    claim_allocations = routed(PlacementAPI.claim_allocations, claims.claim)
    claim_batch = routed(PlacementAPI.claim_batch, claims.claim_batch)
    set_allocations = routed(PlacementAPI.set_allocations, claims.claim_together)
    reshape = routed(PlacementAPI.reshape, claims.claim_together)
    claim_by_request = routed(PlacementAPI.claim_by_request, claims.claim_by_request)
    release_allocations = routed(PlacementAPI.release_allocations, routes.to_the_consumer)
    move_allocations = routed(PlacementAPI.move_allocations, routes.move)
    get_allocations = routed(PlacementAPI.get_allocations, routes.get_allocations)
    get_request_result = routed(PlacementAPI.get_request_result, reads.get_request_result)

    # -- finds and lists ------------------------------------------------------------------

    get_by_request = routed(PlacementAPI.get_by_request, reads.find_providers)
    get_allocation_candidates = routed(
        PlacementAPI.get_allocation_candidates, reads.find_candidates)
    get_headroom = routed(PlacementAPI.get_headroom, reads.headroom)
    get_project_usages = routed(PlacementAPI.get_project_usages, reads.usages)
    list_provider_summaries = routed(PlacementAPI.list_provider_summaries, reads.page)
    list_consumers = routed(PlacementAPI.list_consumers, reads.page)
    all_provider_summaries: Any = PlacementAPI.all_provider_summaries
    all_consumers: Any = PlacementAPI.all_consumers

    # -- names, which every cell has ------------------------------------------------------

    resource_class_list = routed(PlacementAPI.resource_class_list, reads.list_names)
    resource_class_get = routed(PlacementAPI.resource_class_get, reads.in_any_cell)
    resource_class_create = routed(PlacementAPI.resource_class_create, reads.in_every_cell)
    resource_class_rename = routed(PlacementAPI.resource_class_rename, reads.in_every_cell)
    resource_class_delete = routed(PlacementAPI.resource_class_delete, reads.in_every_cell)
    list_traits = routed(PlacementAPI.list_traits, reads.list_names)
    create_trait = routed(PlacementAPI.create_trait, reads.in_every_cell)
    delete_trait = routed(PlacementAPI.delete_trait, reads.in_every_cell)

    # -- for the routes -------------------------------------------------------------------

    def chosen(self, lists: Iterable[Iterable[str]]) -> list[Cell]:
        """Return the cells that may have providers of aggregates.

        :param lists: lists of aggregates, as ``member_of`` of a request: of each list a provider
            is in one
        """
        left = list(self.cells)
        listed = set().union(*(cell.aggregates for cell in self.fleet))
        for aggregates in lists:
            if listed.issuperset(aggregates):
                left = [cell for cell in left if not cell.aggregates.isdisjoint(aggregates)]
        return left

    def shuffled(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return cells in random order, so that clients do not all begin with the same."""
        found = list(cells)
        random.shuffle(found)
        return found

    def the_cell(self) -> Cell:
        """Return the cell to create something in.

        :raises InvalidInput: if there are several
        """
        if len(self.cells) > 1:
            raise exception.InvalidInput(
                what="cell", reason="something new needs one: choose it with only(cell=NAME), or "
                                    f"by its region or an aggregate; there are "
                                    f"{', '.join(each.name for each in self.cells)}")
        return self.cells[0]

    def of_provider(self, call: Call, uuid: str) -> Cell:
        """Return the cell that has a provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self.locations.of_provider(call.context, uuid, self.cells, call.ends)

    def of_consumer(self, call: Call, uuid: str) -> Cell | None:
        """Return the cell in which a consumer has allocations; None if there is none."""
        return self.locations.of_consumer(call.context, uuid, self.cells, call.ends)

    def briefly(self, call: Call) -> Call:
        """Return a call that waits for a cell no longer than a find does."""
        return call.within(self.conf.placement_client.cell_timeout)

    def accepted(self, call: Call, request_id: str | None = None) -> Cell | None:
        """Return the cell that accepted a request before; None if none has, or without an id.

        :param request_id: None for that of the call
        :raises CellUnreachable: if a cell did not answer, and the others have not accepted it
        """
        request_id = request_id or call.arguments.get("request_id")
        return None if request_id is None else self.locations.of_request(
            call.context, request_id, self.cells, self.briefly(call).ends)


def _configured(conf):
    """Yield the cells of a configuration, with clients over RabbitMQ."""
    names = conf.placement_client.cells
    for name in names:
        if names.count(name) > 1:
            raise exception.InvalidInput(
                what="[placement_client] cells", reason=f"it names {name} more than once")
        group = options.register(conf, name)
        if not group.transport_url:
            raise exception.InvalidInput(
                what=f"[{options.PREFIX}{name}] transport_url", reason="it is not set")
        yield Cell(name, PlacementAPI(conf=conf, transport_url=group.transport_url), group.region,
                   [Uuid().coerce(None, "aggregates", each) for each in group.aggregates])
