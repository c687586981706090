# SPDX-License-Identifier: Apache-2.0
"""Calls that several cells answer: finds, lists, and the names that every cell has."""

import itertools
import typing
from collections.abc import Iterable

from placement_rpc import exception
from placement_rpc.cells import merging, routes
from placement_rpc.cells.calls import Call
from placement_rpc.cells.cell import Answers, Cell, ask, find
from placement_rpc.cells.locations import is_accepted
from placement_rpc.client.base import any_list
from placement_rpc.objects import fields
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.resource_class import ResourceClassList
from placement_rpc.objects.summaries import ConsumerSummaryList, ProviderSummaryList
from placement_rpc.objects.trait import TraitList
from placement_rpc.rpc.client import given_or_new

if typing.TYPE_CHECKING:
    from placement_rpc.cells.api import CellsAPI

#: What a cell answers about a name that it does not have, and another cell may.
UNKNOWN = (exception.ResourceClassNotFound, exception.TraitNotFound)
# The errors of a cell in which the change of a name is done already. A cell that has a class of
# the new name may still have one of the old name.
_DONE: dict[str, tuple[type[exception.PlacementException], ...]] = {
    "resource_class_create": (exception.ResourceClassExists,),
    "resource_class_rename": (exception.ResourceClassNotFound,),
    "resource_class_delete": (exception.ResourceClassNotFound,),
    "create_trait": (exception.TraitExists,),
    "delete_trait": (exception.TraitNotFound,)}


# -- finds ---------------------------------------------------------------------------------

def aggregates_of(wanted: typing.Any) -> list[list[str]]:
    """Return the lists of aggregates of a request; of each list a provider is in one."""
    if isinstance(wanted, CandidatesRequest):
        return list(itertools.chain.from_iterable(
            group.value("member_of") or () for group in wanted.value("groups") or ()))
    wanted = instance_of(ResourceRequest, "wanted", wanted)
    return wanted.value("member_of") or []


def patience(cells: "CellsAPI", call: Call) -> float:
    """Return the seconds that a find waits for each cell."""
    return cells.briefly(call).left


def _candidates(cells, lists):
    """Return the cells that may have providers of lists of aggregates."""
    # If no cell has the aggregates together, any of them answers that it has nothing.
    return cells.chosen(lists) or list(cells.cells[:1])


def find_providers(cells: "CellsAPI", call: Call) -> typing.Any:
    """Find providers in the cells that answer."""
    seconds = patience(cells, call)
    wanted = instance_of(ResourceRequest, "wanted", call.arguments["wanted"])
    chosen = _candidates(cells, aggregates_of(wanted))
    if wanted.value("order") != "pack":
        chosen = cells.shuffled(chosen)
    answers = find(chosen, lambda api: call(api, timeout=seconds), seconds)
    for cell, each in answers.found.items():
        cells.locations.providers.put((one.uuid for one in each.objects), cell)
    return merging.providers(answers.results(UNKNOWN, call.method), wanted)


def find_candidates(cells: "CellsAPI", call: Call) -> typing.Any:
    """Find allocations in the cells that answer."""
    seconds = patience(cells, call)
    wanted = instance_of(CandidatesRequest, "wanted", call.arguments["wanted"])
    answers = find(cells.shuffled(_candidates(cells, aggregates_of(wanted))),
                   lambda api: call(api, timeout=seconds), seconds)
    found = answers.results(UNKNOWN, call.method)
    for cell, each in answers.found.items():
        cells.locations.providers.put(merging.providers_of(each.allocation_requests), cell)
    return merging.candidates(found, wanted.value("limit"))


# -- reads of all cells --------------------------------------------------------------------

def _from_all(cells: Iterable[Cell], call: Call) -> Answers:
    answers = ask(cells, call, call.left)
    answers.check_complete(call.method)
    return answers


def headroom(cells: "CellsAPI", call: Call) -> typing.Any:
    """Add up how many more requests fit."""
    chosen = _candidates(cells, aggregates_of(call.arguments["wanted"]))
    return merging.headroom(_from_all(chosen, call).results(UNKNOWN))


def usages(cells: "CellsAPI", call: Call) -> typing.Any:
    """Add up what a project uses."""
    return merging.usages(_from_all(cells.cells, call).results(()))


def page(cells: "CellsAPI", call: Call) -> typing.Any:
    """Read a page of all cells, in the order of uuids."""
    if call.arguments.get("provider_uuid") is not None:
        return routes.to_the_provider(cells, call)
    cls = ProviderSummaryList if call.method == "list_provider_summaries" else ConsumerSummaryList
    return merging.page(cls, _from_all(cells.cells, call).results(()), call.arguments["limit"])


def list_providers(cells: "CellsAPI", call: Call) -> typing.Any:
    """List the providers of one cell after those of another."""
    marker = call.arguments["marker"]
    try:
        return _listed(cells, call)
    except exception.ProviderNotFound:
        # It may have moved since its cell was remembered.
        if marker is None or not cells.locations.providers.forget(marker):
            raise
        return _listed(cells, call)


def _listed(cells, call):
    arguments = call.arguments
    marker, limit = arguments["marker"], arguments["limit"]
    lists = [[fields.Uuid().coerce(None, "member_of", each) for each in any_list("member_of", one)]
             for one in any_list("member_of", arguments["member_of"] or ())]
    begin = cells.cells[0] if marker is None else cells.of_provider(call, marker)
    chosen = _candidates(cells, lists)
    found: list[typing.Any] = []
    more, answered = False, 0
    refused: exception.PlacementException | None = None
    for cell in cells.cells[cells.cells.index(begin):]:
        if cell not in chosen:
            continue
        try:
            # Once there are enough, one more says whether there are others.
            part = call(cell.api, marker=marker if cell is begin else None,
                        limit=max(1, limit - len(found)) if limit and found else limit)
        except UNKNOWN as error:
            refused = error
            continue
        except exception.ReadTimedOut as error:
            raise exception.CellUnreachable(
                method=call.method, cells=cell.name, reason=error.text) from None
        answered += 1
        cells.locations.providers.put((each.uuid for each in part.objects), cell)
        found += part.objects
        more = bool(part.value("more")) or (limit is not None and len(found) > limit)
        if more:
            break
    if refused is not None and not answered:
        raise refused
    return merging.listed(found, limit, more)


def get_request_result(cells: "CellsAPI", call: Call) -> typing.Any:
    """Return the outcome of a request from the cell that has it, first one that accepted it."""
    answers = ask(cells.cells, call, call.left, enough=is_accepted)
    found = sorted(answers.found.values(), key=is_accepted)
    if not found or not is_accepted(found[-1]):
        answers.check_complete(call.method)
    return found[-1] if found else answers.results((exception.RequestNotFound,))


# -- names ---------------------------------------------------------------------------------

def list_names(cells: "CellsAPI", call: Call) -> typing.Any:
    """List the names that any cell has."""
    limit = call.arguments["limit"]
    if limit is not None:
        limit = fields.WholeNumber(minimum=1).coerce(None, "limit", limit)

    def every(api):
        """Return all objects of a cell up to the limit; an answer may have fewer."""
        found, marker = [], call.arguments["marker"]
        while part := call(api, marker=marker, limit=limit and limit - len(found)).objects:
            found, marker = [*found, *part], part[-1].name
            if limit is not None and len(found) >= limit:
                break
        return found

    answers = ask(cells.cells, every, call.left)
    answers.check_complete(call.method)
    cls = TraitList if call.method == "list_traits" else ResourceClassList
    return merging.names(cls, answers.results(()), limit)


def in_any_cell(cells: "CellsAPI", call: Call) -> typing.Any:
    """Return the answer of the first cell that has one."""
    answers = ask(cells.cells, call, call.left, enough=lambda _found: True)
    if not answers.found:
        answers.check_complete(call.method)
    return answers.results(UNKNOWN)[0]


def in_every_cell(cells: "CellsAPI", call: Call) -> typing.Any:
    """Make the change of a name in every cell.

    A cell that has the wanted state already is no error if the change was made in another: a call
    that some cells did not answer is completed by the same call.
    """
    request_id, done = given_or_new(call.arguments["request_id"]), _DONE[call.method]
    answers = ask(cells.cells, lambda api: call(api, request_id=request_id), call.left)
    for error in answers.refused.values():
        if not isinstance(error, done):
            raise error
    answers.check_complete(call.method)
    return answers.results(done)[0]
