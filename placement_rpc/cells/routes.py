# SPDX-License-Identifier: Apache-2.0
"""Calls that go to the cell that has what they name.

A route is a function of a :class:`placement_rpc.cells.api.CellsAPI` and of a call, which it makes.
"""

import typing
from collections.abc import Callable, Iterable

from placement_rpc import exception
from placement_rpc.cells.calls import Call
from placement_rpc.cells.cell import Cell, is_missing

if typing.TYPE_CHECKING:
    from placement_rpc.cells.api import CellsAPI


def to_the_provider(cells: "CellsAPI", call: Call) -> typing.Any:
    """Make the call in the cell that has its provider."""
    return where_they_are(cells, call, [call.arguments["provider_uuid"]])


def deletion(cells: "CellsAPI", call: Call) -> typing.Any:
    """Delete a provider, and forget where it was."""
    deleted = to_the_provider(cells, call)
    cells.locations.providers.forget(call.arguments["provider_uuid"])
    return deleted


def to_the_parent(cells: "CellsAPI", call: Call) -> typing.Any:
    """Create a provider below its parent, or in the only cell."""
    parent = call.arguments["parent_provider_uuid"]
    cell = cells.the_cell() if parent is None else cells.of_provider(call, parent)
    try:
        created = call(cell.api)
    except exception.ParentNotFound:
        # It may have moved since its cell was remembered.
        if parent is None or not cells.locations.providers.forget(parent):
            raise
        cell = cells.of_provider(call, parent)
        created = call(cell.api)
    cells.locations.providers.put([created.uuid], cell)
    return created


def where_they_are(cells: "CellsAPI", call: Call, providers: Iterable[str],
                   check: Callable[[Cell], None] = lambda _cell: None) -> typing.Any:
    """Make a call in the cell that has all of the providers.

    Providers that have moved since their cells were remembered are looked for once more. One that
    is not there may have been deleted by an earlier call with the same request id, whose outcome
    is the answer then.

    :param check: called with the cell before anything is sent
    :raises SeveralCells: if they are in several cells
    """
    providers = list(providers)

    def make():
        cell = one_of({cells.of_provider(call, uuid) for uuid in providers}, call.method)
        check(cell)
        return call(cell.api)

    try:
        return make()
    except (exception.ProviderNotFound, exception.SeveralCells) as error:
        # All of them: of a tree that has moved, some may have been found again, and others not.
        if not cells.locations.providers.forget_all(providers):
            return call(done_before(cells, call, error).api)
    try:
        return make()
    except exception.ProviderNotFound as error:
        return call(done_before(cells, call, error).api)


def done_before(cells: "CellsAPI", call: Call, error: exception.PlacementException,
                request_id: str | None = None) -> Cell:
    """Return the cell that accepted an earlier attempt at a request that cannot be made any more.

    :param error: why it cannot be made; raised if no cell has accepted an earlier attempt
    :param request_id: None for that of the call
    :raises CellUnreachable: if a cell did not answer, and the others have not accepted it
    """
    cell = cells.accepted(call, request_id)
    if cell is None:
        raise error
    return cell


def one_of(found: Iterable[Cell], what: str) -> Cell:
    """Return the only one of some cells.

    :raises SeveralCells: if there are several
    """
    found = set(found)
    if len(found) > 1:
        raise exception.SeveralCells(
            what=what, cells=", ".join(sorted(each.name for each in found)))
    return found.pop()


def to_the_consumer(cells: "CellsAPI", call: Call) -> typing.Any:
    """Make the call in the cell in which its consumer has allocations."""
    consumer = call.arguments["consumer_uuid"]
    done = cells.accepted(call)
    if done is not None:
        return call(done.api)
    known = cells.locations.consumers.get(consumer)
    if known not in cells.cells:
        known = None
    # A cast returns before it is settled, so a wrong cell could not be corrected.
    if known is not None and not call.is_cast:
        try:
            return call(known.api)
        except exception.ConsumerNotFound:
            cells.locations.consumers.forget(consumer)
            known = None
    here = _looked_for(cells, call, consumer, known)
    if here is None:
        raise exception.ConsumerNotFound(consumer=consumer)
    return call(here.api)


def _looked_for(cells, call, consumer, known):
    """Return the cell that has a consumer, or None.

    :param known: the cell that is remembered, or None. An earlier cast may wait there that will
        give something to the consumer
    """
    if known is None:
        return cells.of_consumer(call, consumer)
    try:
        return cells.of_consumer(cells.briefly(call), consumer) or known
    except exception.CellUnreachable:
        return known


def move(cells: "CellsAPI", call: Call) -> typing.Any:
    """Move what a consumer has, within its cell."""
    source, target = (call.arguments[name] for name in ("source_uuid", "target_uuid"))
    done = cells.accepted(call)
    if done is not None:
        return call(done.api)
    here = cells.of_consumer(call, source)
    if here is None:
        raise exception.ConsumerNotFound(consumer=source)
    check_elsewhere(cells, call, target, here)
    moved = call(here.api)
    cells.locations.consumers.forget(source)
    cells.locations.consumers.put([target], here)
    return moved


def get_allocations(cells: "CellsAPI", call: Call) -> typing.Any:
    """Read the allocations of a consumer in whichever cell has them."""
    consumer = call.arguments["consumer_uuid"]
    known = cells.locations.consumers.get(consumer)
    if known is not None and known in cells.cells:
        try:
            found = cells.briefly(call)(known.api)
        except exception.PlacementException as error:
            if not is_missing(error):
                raise
            # It may be in another cell by now.
            cells.locations.consumers.forget(consumer)
        else:
            if found.objects:
                return found
    here = cells.of_consumer(call, consumer)
    return call((here or cells.cells[0]).api)


def check_elsewhere(cells: "CellsAPI", call: Call, consumer: str, cell: Cell) -> None:
    """Check that a consumer that is to get allocations in a cell has none in another.

    :raises ConsumerConflict: if it has
    :raises CellUnreachable: if another cell did not answer
    """
    others = [each for each in cells.fleet if each is not cell]
    found = cells.locations.of_consumer(call.context, consumer, others, call.ends)
    if found is not None:
        raise exception.ConsumerConflict(
            consumer=consumer, reason=f"it has allocations in cell {found.name}, and a consumer "
            f"has them in one cell: release those before it gets others in cell {cell.name}")
