# SPDX-License-Identifier: Apache-2.0
"""Claims: each in one cell, and each consumer in one cell."""

import typing
from collections.abc import Sequence

from placement_rpc import exception
from placement_rpc.cells import reads, routes
from placement_rpc.cells.calls import Call
from placement_rpc.cells.cell import Cell, ask, find
from placement_rpc.client.base import list_of
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.claim import Claim
from placement_rpc.rpc.client import new_request_id

if typing.TYPE_CHECKING:
    from placement_rpc.cells.api import CellsAPI


def _check_consumer(cells, call, claim, cell):
    """Check that a claim would not leave its consumer with allocations in two cells.

    With a generation or tags, the caller has said what the cell is to find: 0 that the consumer
    has nothing anywhere, and anything else that it is in this cell.
    """
    if claim.value("consumer_generation") is None and not claim.value("consumer_tags"):
        routes.check_elsewhere(cells, call, claim.consumer_uuid, cell)


def claim(cells: "CellsAPI", call: Call) -> typing.Any:
    """Claim in the cell that has the providers."""
    return _claim(cells, call, list_of(Claim, "claim", [call.arguments["claim"]]))


def claim_together(cells: "CellsAPI", call: Call) -> typing.Any:
    """Change the inventories of providers, and what consumers have, in one cell."""
    claims = list_of(Claim, "claims", call.arguments["claims"])
    inventories = call.arguments.get("inventories", ())
    released = {cells.of_consumer(call, each.consumer_uuid)
                for each in claims if not each.value("allocations")}
    return _claim(cells, call, claims, [each.provider_uuid for each in inventories],
                  [cell for cell in released if cell is not None])


def _claim(cells, call, claims: Sequence[Claim], providers: Sequence[str] = (),
           released: Sequence[Cell] = ()) -> typing.Any:
    """Make a call with claims.

    :param providers: further providers that the call names
    :param released: the cells of consumers that are to have nothing
    """
    given = [each for each in claims if each.value("allocations")]
    providers = [*providers, *(uuid for each in given for uuid in each.allocations)]

    def check(cell):
        routes.one_of({cell, *released}, call.method)
        for each in given:
            _check_consumer(cells, call, each, cell)
        # Before it is sent: a cast may be followed by another one for the same consumer.
        cells.locations.consumers.put((each.consumer_uuid for each in given), cell)

    if providers:
        return routes.where_they_are(cells, call, providers, check)
    # Nothing but releases, or a claim that any cell refuses.
    return call(routes.one_of(released or cells.cells[:1], call.method).api)


def claim_batch(cells: "CellsAPI", call: Call) -> typing.Any:
    """Claim in each cell what its providers are to give; a cell that fails refuses its claims."""
    claims = list_of(Claim, "claims", call.arguments["claims"])
    outcomes: list[typing.Any] = [None] * len(claims)
    places: dict[Cell, list[int]] = {}
    # None of the cells knows yet what another one is to give to a consumer in this batch.
    chosen: dict[str, Cell] = {}
    for number, each in enumerate(claims):
        try:
            cell = _cell_of(cells, call, each)
            if chosen.setdefault(each.consumer_uuid, cell) is not cell:
                raise exception.ConsumerConflict(
                    consumer=each.consumer_uuid, reason="an earlier claim of the batch is made in "
                    f"cell {chosen[each.consumer_uuid].name}, and this one would be in cell "
                    f"{cell.name}; a consumer has allocations in one cell")
        except exception.PlacementException as error:
            outcomes[number] = error
        else:
            places.setdefault(cell, []).append(number)
    if len(places) == 1 and outcomes == [None] * len(claims):
        return call(next(iter(places)).api)
    request_id = call.arguments["request_id"] or new_request_id()
    parts = {cell.api: [claims[number] for number in numbers] for cell, numbers in places.items()}
    answers = ask(places, lambda api: call(api, claims=parts[api], request_id=request_id),
                  call.left)
    errors = {**answers.refused, **answers.missing}
    for cell, numbers in places.items():
        settled = answers.found[cell] if cell in answers.found else [errors[cell]] * len(numbers)
        for number, outcome in zip(numbers, settled, strict=True):
            outcomes[number] = outcome
    return outcomes


def _cell_of(cells, call, claim):
    """Return the cell in which a claim of a batch is to be made."""
    allocations = claim.value("allocations")
    if not allocations:
        # Any cell refuses it.
        return cells.cells[0]
    cell = routes.one_of({cells.of_provider(call, uuid) for uuid in allocations}, "a claim")
    _check_consumer(cells, call, claim, cell)
    cells.locations.consumers.put([claim.consumer_uuid], cell)
    return cell


def claim_by_request(cells: "CellsAPI", call: Call) -> typing.Any:
    """Claim in one of the cells that have room.

    The cells are asked for room first, so that one that cannot be reached is left out before a
    claim is sent. After a claim with an unknown outcome no other cell is tried.

    :raises CellUnreachable: if no other cell has room than, maybe, one that did not answer
    """
    wanted = call.arguments["wanted"]
    given, = list_of(Claim, "claim", [call.arguments["claim"]])
    chosen = cells.chosen(reads.aggregates_of(wanted))
    here = answers = None
    if given.value("consumer_generation") != 0 or call.arguments["request_id"] is not None:
        # It may have been made before, or may replace what the consumer has.
        here = cells.accepted(call) or cells.locations.of_consumer(
            call.context, given.consumer_uuid, cells.fleet, call.ends)
    if here is not None:
        if here not in chosen:
            raise exception.ConsumerConflict(
                consumer=given.consumer_uuid, reason=f"it has allocations in cell {here.name}, "
                "which is none of those that the request may be met in: release them first")
        chosen = [here]
    elif len(chosen) > 1:
        answers = _ask_for_room(cells, call, wanted, chosen)
        chosen = cells.shuffled(cell for cell, number in answers.found.items() if number)
    refused: exception.PlacementException = exception.NoCandidates(resources=wanted.text)
    for cell in chosen:
        try:
            claimed = call(cell.api)
        except (exception.NoCandidates, *reads.UNKNOWN) as error:
            refused = error
            continue
        cells.locations.consumers.put([given.consumer_uuid], cell)
        cells.locations.providers.put(claimed.generations, cell)
        return claimed
    if answers is not None:
        answers.check_complete(call.method)
    raise refused


def _ask_for_room(cells, call, wanted, chosen):
    """Return the answers of cells: how much they found for a request, one at most."""
    limited = wanted.obj_clone()
    limited.limit = 1
    seconds = reads.patience(cells, call)

    def count(api):
        if isinstance(wanted, CandidatesRequest):
            return api.get_allocation_candidates(call.context, limited, timeout=seconds).count
        return len(api.get_by_request(call.context, limited, timeout=seconds).objects)

    answers = find(chosen, count, seconds)
    answers.results(reads.UNKNOWN)
    return answers
