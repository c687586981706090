# SPDX-License-Identifier: Apache-2.0
"""A cell, and questions to several cells at the same time."""

import time
from collections.abc import Callable, Iterable
from concurrent import futures
from typing import Any

from oslo_log import log

from placement_rpc import exception
from placement_rpc.api import PlacementAPI

LOG = log.getLogger(__name__)

# How many times as long as a find waits for a cell it is left out after it did not answer.
_PAUSES = 3
#: Seconds after its deadline in which a call reports what became of it.
GRACE = 1.0


class Cell:
    """A service with its own broker or virtual host, and its own database.

    :param api: the client of the service
    :param aggregates: uuids of the aggregates whose providers are in the cell
    """

    def __init__(self, name: str, api: PlacementAPI, region: str | None = None,
                 aggregates: Iterable[str] = ()):
        self.name, self.api = name, api
        self.region, self.aggregates = region, frozenset(aggregates)
        # Threads of its own, so that a cell that does not answer occupies no other cell's.
        self._threads = futures.ThreadPoolExecutor(
            api.conf.placement_client.max_concurrent_calls, thread_name_prefix=f"cell {name}")
        self._closed = False
        self._left_out_until = self._pause = 0.0

    def __repr__(self):
        return f"<Cell {self.name}>"

    def submit(self, question: Callable[[PlacementAPI], Any]) -> futures.Future:
        """Begin a call in a thread.

        :raises ClientClosed: if this was closed
        """
        try:
            return self._threads.submit(question, self.api)
        except RuntimeError:
            if self._closed:
                raise closed() from None
            raise

    def take_part(self) -> bool:
        """Return whether a find is to ask the cell, and begin a new pause if it is over.

        False during the pause that follows a missing answer. The first find after a pause asks the
        cell, and the others have a new pause until the cell has answered.
        """
        if time.monotonic() < self._left_out_until:
            return False
        if self._left_out_until:
            self.leave_out(self._pause)
        return True

    def leave_out(self, seconds: float) -> None:
        """Have finds leave the cell out for a while."""
        self._pause = seconds
        self._left_out_until = time.monotonic() + seconds

    def answered(self) -> None:
        """Have finds ask the cell."""
        self._left_out_until = 0.0

    def close(self) -> None:
        """Close the client; calls under way end at their deadlines."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.api.close()


def closed() -> exception.ClientClosed:
    """Return the error of a call that did not begin before the client was closed."""
    return exception.ClientClosed(reason="it was closed")


def is_missing(error: exception.PlacementException) -> bool:
    """Return whether a cell that answered with an error is as good as one that did not answer.

    It may have taken the call up too late.
    """
    return error.retryable or isinstance(error, exception.RequestExpired)


class Answers:
    """What cells answered to a question: results, and errors, each a dict by :class:`Cell`.

    ``found`` are the results, in the order in which the cells were named. ``refused`` are the
    errors of cells that answered, and ``missing`` those of cells that did not.
    """

    def __init__(self) -> None:
        self.found: dict[Cell, Any] = {}
        self.refused: dict[Cell, exception.PlacementException] = {}
        self.missing: dict[Cell, exception.PlacementException] = {}

    def add(self, cell: Cell, answer: futures.Future) -> None:
        """Add the outcome of a call that has ended."""
        try:
            self.found[cell] = answer.result()
        except futures.CancelledError:
            self.refused[cell] = closed()
        except exception.PlacementException as error:
            (self.missing if is_missing(error) else self.refused)[cell] = error

    def __contains__(self, cell: Cell) -> bool:
        return cell in self.found or cell in self.refused or cell in self.missing

    def check_complete(self, method: str) -> None:
        """Check that every cell answered.

        :raises CellUnreachable: if one did not
        """
        if self.missing:
            raise exception.CellUnreachable(
                method=method, cells=", ".join(cell.name for cell in self.missing),
                reason="; ".join(dict.fromkeys(each.text for each in self.missing.values())))

    def results(self, unknown: tuple[type[exception.PlacementException], ...],
                method: str = "") -> list[Any]:
        """Return the results; a cell that does not know a name has none.

        :param unknown: the errors that say so
        :param method: the name of the call, for the error; not needed after
            :meth:`check_complete`
        :raises PlacementException: if a cell refused for another reason, or all cells did
        :raises CellUnreachable: if no cell knows the name, and one did not answer
        """
        for error in self.refused.values():
            if not isinstance(error, unknown):
                raise error
        if self.refused and not self.found:
            self.check_complete(method)
            raise next(iter(self.refused.values()))
        return list(self.found.values())


def ask(cells: Iterable[Cell], question: Callable[[PlacementAPI], Any], seconds: float,
        enough: Callable[[Any], bool] = lambda _answer: False) -> Answers:
    """Make a call in several cells at the same time.

    :param question: makes the call by the client of a cell, within the seconds
    :param enough: whether an answer is all that the caller needs; the other cells are then not
        waited for
    """
    outcomes = Answers()
    asked = {cell.submit(question): cell for cell in cells}
    try:
        for future in futures.as_completed(asked, timeout=seconds + GRACE):
            cell = asked[future]
            outcomes.add(cell, future)
            if cell in outcomes.found and enough(outcomes.found[cell]):
                break
    except TimeoutError:
        for future, cell in asked.items():
            if cell in outcomes:
                continue
            if future.done():
                # It ended since: without its answer, it would count as a cell that has nothing.
                outcomes.add(cell, future)
            else:
                # All threads of the cell wait for it already: the call has not even begun.
                outcomes.missing[cell] = exception.ServiceUnavailable(
                    reason=f"no answer within {seconds:.1f} s")
    for future in asked:
        future.cancel()
    outcomes.found = {cell: outcomes.found[cell] for cell in asked.values()
                      if cell in outcomes.found}
    return outcomes


def find(cells: Iterable[Cell], question: Callable[[PlacementAPI], Any],
         seconds: float) -> Answers:
    """Make a call in those of the cells that answer; the log names those that do not.

    :param seconds: within which the question has an answer
    :returns: the answers; those that were left out are among the missing ones
    :raises CellUnreachable: if none of them answers
    """
    cells = list(cells)
    asked = [cell for cell in cells if cell.take_part()] or cells
    answers = ask(asked, question, seconds)
    for cell, error in answers.missing.items():
        LOG.warning("Cell %s is left out of finds: %s", cell.name, error)
        cell.leave_out(_PAUSES * seconds)
    for cell in (*answers.found, *answers.refused):
        cell.answered()
    if not answers.found and not answers.refused:
        answers.check_complete("a find")
    answers.missing.update((cell, exception.ServiceUnavailable(
        reason="it did not answer lately")) for cell in cells if cell not in asked)
    return answers
