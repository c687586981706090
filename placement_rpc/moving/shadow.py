# SPDX-License-Identifier: Apache-2.0
"""A rehearsal: read requests are asked of two services, and their answers compared."""

import dataclasses
import enum
import itertools
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from placement_rpc.moving import answers, limited_candidates
from placement_rpc.moving.access_log import Request
from placement_rpc.moving.answers import Answer, Difference
from placement_rpc.moving.placement_service import PlacementService
from placement_rpc.moving.request_sample import SampledRequest
from placement_rpc.moving.store_differences import StoreDifferences

_ERROR, _FORBIDDEN, _FAILURE, _UNAVAILABLE = 400, 403, 500, 503
# Of a service that is busy or away, or of a proxy before it.
_NO_ANSWERS = frozenset((None, 429, 502, _UNAVAILABLE, 504))


class Verdict(enum.StrEnum):
    """What the comparison of two answers found."""

    #: Both say the same.
    SAME = "same"
    #: They differ, although the stores agree about the providers in question.
    DIFFERENT = "different"
    #: They differ, and so does what the stores hold.
    DATA = "data"
    #: The old service's own answer changed while both were asked.
    MOVING = "moving"
    #: Both refuse the request with 403, so nothing was compared.
    FORBIDDEN = "forbidden"
    #: One of them did not answer, or answered 503, so nothing was compared.
    UNANSWERED = "unanswered"


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of one request.

    :ivar request: with the microversion that was asked for
    :ivar times: int, how often the log has it
    :ivar seconds: tuple of floats, how long the old and the new service took; None if one of them
        did not answer
    :ivar status: int, of the old service's answer; None if there was none
    :ivar difference: the first difference; None if there is none
    :ivar cause: str, what the stores hold that differs; None if that is not known
    :ivar note: str, what else was noticed; None for nothing
    :ivar is_cut: bool, whether a limit cut both answers off
    :ivar unlike_log: bool, whether the old service answered with another status than in the log
    """

    request: Request
    times: int
    verdict: Verdict
    seconds: tuple[float, float] | None
    status: int | None
    difference: Difference | None = None
    cause: str | None = None
    note: str | None = None
    is_cut: bool = False
    unlike_log: bool = False


class _Compared(NamedTuple):
    """The same fields as those of :class:`Result`."""

    difference: Difference | None
    note: str | None = None
    is_cut: bool = False


class Rehearsal:
    """Requests that are asked of both services by several threads.

    :param old: the service that serves the cloud
    :param new: the one that is to take its place
    :param microversions: list of str, those of requests of which the log does not say it
    :param concurrency: int, requests at a time
    :param stopped: :class:`threading.Event` that ends the threads, after their current request
    :param pause: float, seconds before the answers that differ are asked for again
    :param patience: float, seconds for which a service that answers 503 at first is waited for
    """

    def __init__(self, old: PlacementService, new: PlacementService, microversions: list[str],
                 concurrency: int, stopped: threading.Event, pause: float = 0.5,
                 patience: float = 60.0) -> None:
        self._services = old, new
        self._microversions = microversions
        self._concurrency = concurrency
        self._stopped = stopped
        self._pause, self._patience = pause, patience
        self._stores = StoreDifferences(old, new)
        self._lock = threading.Lock()
        self._warm: set[str] = set()
        self._turns = itertools.count()

    def size(self, sample: list[SampledRequest]) -> int:
        """Return how many requests there are to compare."""
        return sum(1 if each.request.microversion else len(self._microversions)
                   for each in sample)

    def results(self, sample: list[SampledRequest]) -> Iterator[Result]:
        """Yield the result of each request, in no particular order.

        :raises NoService: if one of the services stopped answering
        :raises Unauthenticated: if one of them refuses the credentials
        """
        work: Iterator[SampledRequest] = iter(self._each_microversion(sample))
        done: queue.SimpleQueue[Result | Exception | None] = queue.SimpleQueue()
        # They end with the process if it does not wait for a service that hangs.
        threads = [threading.Thread(target=self._work, args=(work, done), daemon=True)
                   for _ in range(self._concurrency)]
        for thread in threads:
            thread.start()
        working = len(threads)
        try:
            while working:
                result = done.get()
                if result is None:
                    working -= 1
                elif isinstance(result, Exception):
                    raise result
                else:
                    yield result
        finally:
            self._stopped.set()

    def _each_microversion(self, sample: Iterable[SampledRequest]) -> Iterator[SampledRequest]:
        for each in sample:
            for version in ([each.request.microversion] if each.request.microversion
                            else self._microversions):
                yield each._replace(request=each.request._replace(microversion=version))

    def _work(self, work: Iterator[SampledRequest],
              done: "queue.SimpleQueue[Result | Exception | None]") -> None:
        """Compare requests until there are no more of them; run by each thread."""
        try:
            while not self._stopped.is_set():
                with self._lock:
                    sampled = next(work, None)
                if sampled is None:
                    return
                done.put(self._result(sampled))
        except Exception as error:
            done.put(error)
        finally:
            done.put(None)

    def _result(self, sampled: SampledRequest) -> Result:
        request = sampled.request
        if request.kind not in self._warm:
            self._warm_up(request)
        first = self._ask(request)
        found = self._difference(request, *first)
        result = Result(
            request, sampled.times, Verdict.SAME,
            None if None in {each.status for each in first} else (
                first[0].seconds, first[1].seconds),
            first[0].status, note=found.note, is_cut=found.is_cut,
            unlike_log=bool(sampled.statuses) and first[0].status not in sampled.statuses)
        if found.difference is not None or not _are_answers(first):
            return self._again(result, first[0])
        if first[0].status == _FORBIDDEN:
            return dataclasses.replace(result, verdict=Verdict.FORBIDDEN)
        return result

    def _warm_up(self, request: Request) -> None:
        """Ask the first request of a kind, which opens connections and fills caches, unmeasured.

        A service that is not ready, since it still reads its store, is given time.
        """
        deadline = time.monotonic() + self._patience
        while any(each.status == _UNAVAILABLE for each in self._ask(request)) and (
                time.monotonic() < deadline):
            if self._stopped.wait(self._pause):
                break
        self._warm.add(request.kind)

    def _again(self, result: Result, before: Answer) -> Result:
        """Ask again for answers that differ, since the cloud goes on while both are asked."""
        self._stopped.wait(self._pause)
        answered = self._ask(result.request)
        found = self._difference(result.request, *answered)
        if not _are_answers(answered):
            return dataclasses.replace(
                result, verdict=Verdict.UNANSWERED, difference=found.difference)
        if found.difference is None:
            return dataclasses.replace(result, note="it was the same when asked again")
        verdict, cause = Verdict.DIFFERENT, None
        if None not in (before.status, answered[0].status) and (
                answers.first_difference(before, answered[0]) is not None
                and not found.is_cut):
            verdict = Verdict.MOVING
        else:
            cause = self._stores.cause(result.request, answered, found.difference)
            verdict = Verdict.DIFFERENT if cause is None else Verdict.DATA
        return dataclasses.replace(result, verdict=verdict, difference=found.difference,
                                   cause=cause)

    def _ask(self, request: Request) -> tuple[Answer, Answer]:
        """Ask both services, each time another one first."""
        old, new = self._services
        if next(self._turns) % 2:
            answered = new.ask(request)
            return old.ask(request), answered
        return old.ask(request), new.ask(request)

    def _difference(self, request: Request, old: Answer, new: Answer) -> _Compared:
        found = answers.first_difference(old, new)
        if found is None or old.status != new.status or old.status is None or (
                old.status >= _ERROR):
            return _Compared(found)
        bodies = old.body(), new.body()
        limit = limited_candidates.limit_of(request)
        if limit and limited_candidates.are_cut(bodies, limit):
            return _Compared(limited_candidates.compare(
                request, bodies, (self._services[0].ask, self._services[1].ask)), is_cut=True)
        names = answers.newer_names(*bodies)
        if names and found.where.startswith("body"):
            return _Compared(None, f"{len(names)} standard names are known to one service only")
        return _Compared(found)


def _are_answers(pair: tuple[Answer, Answer]) -> bool:
    """Return whether both services answered, and not that they cannot answer now."""
    statuses = {each.status for each in pair}
    # A failure of one of them only is a difference.
    return not statuses & _NO_ANSWERS and statuses != {_FAILURE}
