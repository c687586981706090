# SPDX-License-Identifier: Apache-2.0
"""Claims: each in one cell, and each consumer in one cell."""

import functools
import typing
import uuid
from collections.abc import Sequence
from concurrent import futures

from placement_rpc import exception
from placement_rpc.cells import reads, routes
from placement_rpc.cells.calls import Call
from placement_rpc.cells.cell import GRACE, Cell, ask, closed, find
from placement_rpc.client.base import list_of
from placement_rpc.objects import fields
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.rpc.client import new_request_id

if typing.TYPE_CHECKING:
    from placement_rpc.cells.api import CellsAPI


# Errors of a repeated claim whose consumer has moved to another cell since it was made.
_ELSEWHERE = (exception.SeveralCells, exception.ConsumerConflict)


def _check_consumer(cells, call, claim, cell):
    """Check that a claim would not leave its consumer with allocations in two cells.

    With a generation or tags, the caller has said what the cell is to find: 0 that the consumer
    has nothing anywhere, and anything else that it is in this cell.
    """
    if claim.value("consumer_generation") is None and not claim.value("consumer_tags"):
        routes.check_elsewhere(cells, call, claim.consumer_uuid, cell)


def claim(cells: "CellsAPI", call: Call) -> typing.Any:
    """Claim in the cell that has the providers."""
    return _claim(cells, call, [instance_of(Claim, "claim", call.arguments["claim"])])


def claim_together(cells: "CellsAPI", call: Call) -> typing.Any:
    """Change the inventories of providers, and what consumers have, in one cell."""
    claims = list_of(Claim, "claims", call.arguments["claims"])
    inventories = list_of(InventoryList, "inventories", call.arguments.get("inventories", ()))
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
    sent_to: list[Cell] = []

    def check(cell):
        routes.one_of({cell, *released}, call.method)
        for each in given:
            _check_consumer(cells, call, each, cell)
        sent_to[:] = [cell]
        if call.is_cast:
            # It may be followed by another one for the same consumer.
            remember(cell)

    def remember(cell):
        cells.locations.consumers.put((each.consumer_uuid for each in given), cell)

    if not providers:
        # Nothing but releases, or a claim that any cell refuses.
        done = cells.accepted(call)
        return call((done or routes.one_of(released or cells.cells[:1], call.method)).api)
    try:
        claimed = routes.where_they_are(cells, call, providers, check)
    except _ELSEWHERE as error:
        return call(routes.done_before(cells, call, error).api)
    # Not if it was refused: the consumer may have something elsewhere.
    for cell in sent_to:
        remember(cell)
    return claimed


def claim_batch(cells: "CellsAPI", call: Call) -> typing.Any:
    """Claim in each cell what its providers are to give; a cell that fails refuses its claims."""
    claims = list_of(Claim, "claims", call.arguments["claims"])
    send = _send_together
    if call.arguments["request_id"] is not None:
        # Ids are made of it that would be valid even if it is not.
        fields.RequestId().coerce(None, "request_id", call.arguments["request_id"])
        send = _send_each
    outcomes: list[typing.Any] = [None] * len(claims)
    left = list(range(len(claims)))
    # Where consumers may have something of this batch, which none of the other cells knows.
    chosen: dict[str, Cell] = {}
    # The second time for providers that have moved since their cells were remembered.
    for is_last in False, True:
        places = _routed(cells, call, claims, left, outcomes, chosen.copy())
        for cell, number, outcome in send(call, claims, places):
            outcomes[number] = outcome
            if not isinstance(outcome, exception.REFUSALS):
                # Also if it is not known whether the claim was made.
                chosen[claims[number].consumer_uuid] = cell
            if not isinstance(outcome, exception.PlacementException):
                cells.locations.consumers.put([claims[number].consumer_uuid], cell)
        left = [] if is_last else [number for number in left if isinstance(
            outcomes[number], exception.ProviderNotFound) and (
                cells.locations.providers.forget_all(claims[number].allocations))]
        if not left:
            break
    return outcomes


def _routed(cells, call, claims, numbers, outcomes, chosen):
    """Return in which cell each claim is to be made; those that cannot be made get an error.

    :param numbers: the places of the claims in the batch
    :param outcomes: gets the errors
    :param chosen: dict of consumer to its cell, which gets those of these claims
    :returns: dict of cell to list of such places
    """
    missing: exception.CellUnreachable | None = None
    places: dict[Cell, list[int]] = {}
    for number in numbers:
        each = claims[number]
        # A cell that does not answer must leave time for the claims that need no answer of it.
        asking = cells.briefly(call.within(call.left / 2))
        try:
            if missing is not None and _needs_answers(cells, each):
                raise missing
            cell = _cell_of(cells, asking, each, number)
            if chosen.setdefault(each.consumer_uuid, cell) is not cell:
                raise exception.ConsumerConflict(
                    consumer=each.consumer_uuid, reason="an earlier claim of the batch is made in "
                    f"cell {chosen[each.consumer_uuid].name}, and this one would be in cell "
                    f"{cell.name}; a consumer has allocations in one cell")
        except exception.PlacementException as error:
            outcomes[number] = error
            if isinstance(error, exception.CellUnreachable):
                missing = error
        else:
            places.setdefault(cell, []).append(number)
    return places


def _needs_answers(cells, claim):
    """Return whether cells have to be asked before it is known where a claim is to be made."""
    known = [cells.locations.providers.get(uuid) for uuid in claim.value("allocations") or ()]
    return any(cell not in cells.cells for cell in known) or (
        claim.value("consumer_generation") is None and not claim.value("consumer_tags"))


def _send_together(call, claims, places):
    """Send the claims of each cell in one call; yield the cell, the place and the outcome of each.

    An error of a call with all claims is raised, as by a service without cells.

    :param places: as of :func:`_routed`
    """
    if sum(map(len, places.values())) == len(claims) and len(places) == 1:
        (cell, numbers), = places.items()
        for number, outcome in zip(numbers, call(cell.api), strict=True):
            yield cell, number, outcome
        return
    request_id = new_request_id()
    parts = {cell.api: [claims[number] for number in numbers] for cell, numbers in places.items()}
    answers = ask(places, lambda api: call(api, claims=parts[api], request_id=request_id),
                  call.left)
    errors = {**answers.refused, **answers.missing}
    for cell, numbers in places.items():
        settled = answers.found[cell] if cell in answers.found else [errors[cell]] * len(numbers)
        for number, outcome in zip(numbers, settled, strict=True):
            yield cell, number, outcome


def _send_each(call, claims, places):
    """As :func:`_send_together`, but send each claim in a call of its own, under an id of its own.

    When a batch is repeated, some of its claims may be refused that were sent the first time, or
    the other way round. The ids of the others must stay the same.
    """
    batch_id = call.arguments["request_id"]

    def send(numbers, api):
        return [_sent(call, api, claims[number], _id_of(batch_id, number)) for number in numbers]

    sent = []
    for cell, numbers in places.items():
        # The claims of a consumer one after the other.
        of_consumers: dict[str, list[int]] = {}
        for number in numbers:
            of_consumers.setdefault(claims[number].consumer_uuid, []).append(number)
        sent += [(cell, each, cell.submit(functools.partial(send, each)))
                 for each in of_consumers.values()]
    for cell, numbers, answer in sent:
        try:
            settled = answer.result(call.left + GRACE)
        except TimeoutError:
            answer.cancel()
            settled = [exception.ServiceUnavailable(reason="no answer in time")] * len(numbers)
        except futures.CancelledError:
            settled = [closed()] * len(numbers)
        for number, outcome in zip(numbers, settled, strict=True):
            yield cell, number, outcome


def _sent(call, api, claim, request_id):
    """Send one claim of a batch; return its outcome."""
    try:
        outcome, = call(api, claims=[claim], request_id=request_id)
    except exception.PlacementException as error:
        return error
    return outcome


def _id_of(batch_id, number):
    """Return the id of a claim by its place in a batch: the first has that of the batch."""
    # No client can make such a name, since "#" is not allowed in an id.
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{batch_id}#{number}")) if number else batch_id


def _cell_of(cells, call, claim, number):
    """Return the cell in which a claim of a batch is to be made, or was made before.

    :param number: its place in the batch
    """
    allocations = claim.value("allocations")
    if not allocations:
        # Any cell refuses it.
        return cells.cells[0]
    try:
        cell = routes.one_of({cells.of_provider(call, uuid) for uuid in allocations}, "a claim")
        _check_consumer(cells, call, claim, cell)
    except _ELSEWHERE as error:
        batch_id = call.arguments["request_id"]
        return routes.done_before(cells, call, error, batch_id and _id_of(batch_id, number))
    return cell


def claim_by_request(cells: "CellsAPI", call: Call) -> typing.Any:
    """Claim in one of the cells that have room.

    The cells are asked for room first, so that one that cannot be reached is left out before a
    claim is sent. After a claim with an unknown outcome no other cell is tried.

    :raises CellUnreachable: if no other cell has room than, maybe, one that did not answer
    """
    wanted = call.arguments["wanted"]
    given = instance_of(Claim, "claim", call.arguments["claim"])
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
    answers.results(reads.UNKNOWN, call.method)
    return answers
