# SPDX-License-Identifier: Apache-2.0
"""Which cell a provider, a consumer or the outcome of a request is in."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from oslo_context.context import RequestContext

from placement_rpc import exception
from placement_rpc.cells.cell import Cell, ask
from placement_rpc.objects.fields import Uuid
from placement_rpc.objects.request_result import RequestResult

# The most uuids that are remembered: 200 bytes each.
_MOST = 100_000


class Memory:
    """The cells of the uuids that were seen last, in any spelling. Thread-safe."""

    def __init__(self, most: int = _MOST):
        self._most = most
        self._cells: OrderedDict[str, Cell] = OrderedDict()
        self._mutex = threading.Lock()

    def get(self, uuid: str) -> Cell | None:
        """Return the cell in which a uuid was last; None if it is not remembered.

        :raises InvalidInput: if it is not a uuid
        """
        return self._cells.get(_canonical(uuid))

    def put(self, uuids: Iterable[str], cell: Cell) -> None:
        """Remember that uuids are in a cell."""
        with self._mutex:
            for uuid in map(_canonical, uuids):
                self._cells[uuid] = cell
                self._cells.move_to_end(uuid)
            while len(self._cells) > self._most:
                self._cells.popitem(last=False)

    def forget(self, uuid: str) -> bool:
        """Forget where a uuid was; return whether it was remembered."""
        with self._mutex:
            return self._cells.pop(_canonical(uuid), None) is not None

    def forget_all(self, uuids: Iterable[str]) -> bool:
        """Forget where uuids were; return whether any of them was remembered."""
        forgotten = [self.forget(uuid) for uuid in uuids]
        return any(forgotten)


def _canonical(uuid):
    return Uuid().coerce(None, "uuid", uuid)


class Locations:
    """Finds cells by asking them, and remembers them.

    Its methods take the caller's context, and ``ends``, the time of the monotonic clock until
    which cells may be waited for. They do not wait for further cells once one has the answer.
    """

    def __init__(self) -> None:
        self.providers, self.consumers = Memory(), Memory()

    def of_provider(self, context: RequestContext | None, uuid: str, cells: Sequence[Cell],
                    ends: float) -> Cell:
        """Return which of the cells has a provider.

        :raises ProviderNotFound: if none has it
        :raises CellUnreachable: if a cell did not answer, and the others do not have it
        """
        uuid = Uuid().coerce(None, "provider_uuid", uuid)
        known = self.providers.get(uuid)
        if known is not None and known in cells:
            return known
        seconds = max(0.0, ends - time.monotonic())
        answers = ask(cells, lambda api: api.get_provider(context, uuid, timeout=seconds),
                      seconds, enough=lambda _provider: True)
        for cell in answers.found:
            self.providers.put([uuid], cell)
            return cell
        answers.check_complete("get_provider")
        raise next(iter(answers.refused.values()))

    def of_consumer(self, context: RequestContext | None, uuid: str, cells: Sequence[Cell],
                    ends: float) -> Cell | None:
        """Return in which of the cells a consumer has allocations; None if it has none.

        :raises CellUnreachable: if a cell did not answer, and it has none in the others
        """
        uuid = Uuid().coerce(None, "consumer_uuid", uuid)
        seconds = max(0.0, ends - time.monotonic())
        answers = ask(cells, lambda api: api.get_allocations(context, uuid, timeout=seconds),
                      seconds, enough=lambda found: bool(found.objects))
        for cell, found in answers.found.items():
            if found.objects:
                self.consumers.put([uuid], cell)
                return cell
        answers.check_complete("get_allocations")
        for error in answers.refused.values():
            raise error
        return None

    def of_request(self, context: RequestContext | None, request_id: str, cells: Sequence[Cell],
                   ends: float) -> Cell | None:
        """Return which of the cells has accepted a request; None if none has.

        :raises CellUnreachable: if a cell did not answer, and the others have not accepted it
        """
        seconds = max(0.0, ends - time.monotonic())
        answers = ask(
            cells, lambda api: api.get_request_result(context, request_id, timeout=seconds),
            seconds, enough=is_accepted)
        for cell, result in answers.found.items():
            if is_accepted(result):
                return cell
        answers.check_complete("get_request_result")
        for error in answers.refused.values():
            if not isinstance(error, exception.RequestNotFound):
                raise error
        return None


def is_accepted(result: RequestResult) -> bool:
    """Return whether a stored outcome is not an error."""
    try:
        result.result()
    except exception.PlacementException:
        return False
    return True
