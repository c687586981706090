# SPDX-License-Identifier: Apache-2.0
"""The candidate index of a process: built, kept current, and built again when it is stale."""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import AbstractContextManager

from placement_rpc import exception
from placement_rpc.candidates import verification
from placement_rpc.candidates.feed import FollowedIndex, IndexStale
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.telemetry.spans import span

LOG = logging.getLogger(__name__)

# Seconds that a call waits for a build. Less than [placement_client] attempt_timeout, so that a
# client learns why before it makes its next attempt, perhaps at a conductor that has an index.
_LONGEST_WAIT = 5.0


class _Replaced(Exception):
    """The index that is being verified was dropped."""


class LiveIndex:
    """The index of a process, at least as new as each call that reads it.

    One thread builds it at a time, in the background; calls wait for it. The thread that brings
    it up to date does so for all calls that came before its read of the feed began.

    :param reader: returns a reading transaction as a context manager
    """

    def __init__(self, reader: Callable[..., AbstractContextManager]):
        self._reader = reader
        # Held while the feed is read.
        self._reading = threading.Lock()
        # Held while the index is changed or searched, and for all attributes below: much shorter.
        self._using = threading.Lock()
        self._followed: FollowedIndex | None = None
        # Its exception is a PlacementException.
        self._build: futures.Future | None = None
        self._built = 0
        self._dropped_for = ""
        self._not_before = 0.0
        # Reads of the feed are numbered; a call needs one that began after the call did.
        self._last_begun = self._last_done = 0

    # -- building -----------------------------------------------------------------------

    def begin(self) -> None:
        """Have the index built by another thread, unless there is one or a build.

        The log has the reason if it cannot be built; the next call starts another build.
        """
        with self._using:
            if self._followed is None:
                self._start_build()

    def prepare(self) -> None:
        """Build the index when a process starts, so that the first call does not wait for it.

        The log has the reason if it cannot be built; the next call starts another build.
        """
        try:
            self.wait_until_ready()
        except exception.PlacementException as error:
            LOG.warning("The service starts without a candidate index: %s", error)

    def wait_until_ready(self, seconds: float | None = None) -> None:
        """Wait for the index; start a build if there is neither an index nor a build.

        :param seconds: how long to wait; None until the build ends
        :raises ServiceUnavailable: if the build takes longer, or fails
        :raises StoreUnavailable: if the build cannot read the store
        """
        with self._using:
            if self._followed is not None:
                return
            build = self._start_build()
        try:
            failure = build.exception(seconds)
        except TimeoutError:
            raise exception.ServiceUnavailable(
                reason="the candidate index is being built") from None
        if isinstance(failure, exception.PlacementException):
            # Each waiting thread raises an error of its own.
            raise exception.from_code(failure.code, failure.kwargs)

    def drop(self, reason: str, followed: FollowedIndex | None = None) -> None:
        """Drop the index and build another one; calls wait for it.

        :param reason: for the log
        :param followed: drop this one only; None for the current one
        """
        with self._using:
            if followed is not None and self._followed not in (None, followed):
                return
            self._followed = None
            self._dropped_for = reason
            self._start_build()
        LOG.warning("The candidate index is dropped and built again: %s", reason)

    def _start_build(self) -> futures.Future:
        """Return the build under way, or a new one; the caller holds the lock."""
        if self._build is None or self._build.done():
            build: futures.Future = futures.Future()
            threading.Thread(target=self._run_build, args=(build,),
                             name="candidate index", daemon=True).start()
            self._build = build
        return self._build

    def _run_build(self, build):
        # At most half of the time is spent on building an index that keeps going stale.
        time.sleep(max(0.0, self._not_before - time.monotonic()))
        began = time.monotonic()
        failure = None
        try:
            followed = FollowedIndex(self._reader)
        except exception.PlacementException as error:
            failure = error
        except IndexStale as error:
            failure = exception.ServiceUnavailable(reason=f"the candidate index: {error}")
        except Exception:
            LOG.exception("Building the candidate index failed")
            failure = exception.ServiceUnavailable(
                reason="the candidate index cannot be built; the log of the service has the error")
        took = time.monotonic() - began
        self._not_before = time.monotonic() + took
        if failure is not None:
            LOG.warning("The candidate index cannot be built now: %s", failure)
            build.set_exception(failure)
            return
        with self._using:
            self._followed = followed
            self._built += 1
            build.set_result(None)
        LOG.info("The candidate index has %d providers and %d inventories, in %d bytes; it took "
                 "%.1f s", len(followed.index), followed.index.size,
                 followed.index.nbytes, took)

    # -- reading ------------------------------------------------------------------------

    @contextlib.contextmanager
    def current(self, deadline: float | None = None) -> Iterator[CandidateIndex]:
        """Lock the index, with all that was committed before this call.

        :param deadline: seconds since the epoch: the call waits for a build until then, but for 5
            seconds at most; None for 5 seconds
        :returns: context manager of the index, which must not be used after it
        :raises ServiceUnavailable: if the index is not built in time
        :raises StoreUnavailable: if the store cannot be read
        """
        with span("candidate index"):
            index = self._lock_current(deadline)
        try:
            yield index
        finally:
            self._using.release()

    @contextlib.contextmanager
    def peek(self) -> Iterator[CandidateIndex | None]:
        """Lock the index as it is, without a read of the store.

        :returns: context manager of the index, which must not be used after it; of None if there
            is no index
        """
        with self._using:
            yield None if self._followed is None else self._followed.index

    def _lock_current(self, deadline):
        wait = _LONGEST_WAIT if deadline is None else min(_LONGEST_WAIT, deadline - time.time())
        ends = time.monotonic() + wait
        while True:
            followed = self.refresh()
            if followed is not None:
                self._using.acquire()
                if followed is self._followed:
                    return followed.index
                # Dropped after it was brought up to date.
                self._using.release()
            self.wait_until_ready(max(0.0, ends - time.monotonic()))

    def refresh(self) -> FollowedIndex | None:
        """Bring the index up to date, and drop it if that fails.

        :returns: the index; None if there is none, or if it was dropped
        :raises StoreUnavailable: if the store cannot be read
        """
        with self._using:
            if self._followed is None:
                return None
            begun_before = self._last_begun
        with self._reading:
            if self._last_done > begun_before:
                # Another thread began a read of the feed after this call did, and finished it.
                return self._followed
            with self._using:
                self._last_begun += 1
                number, followed = self._last_begun, self._followed
            if followed is None:
                return None
            reason = self._apply_changes(followed, number)
        if reason is None:
            return followed
        self.drop(reason, followed)
        return None

    def _apply_changes(self, followed, number):
        """Return None, or the reason why the index has to be dropped."""
        try:
            changes = followed.changes()
            with self._using:
                self._apply(followed, changes)
                self._last_done = number
        except exception.PlacementException:
            raise
        except IndexStale as error:
            return str(error)
        except Exception as error:
            # A part of the changes may be applied, and the same changes would fail again.
            LOG.exception("The candidate index cannot be brought up to date")
            return type(error).__name__
        return None

    def _apply(self, followed, changes):
        """Apply changes; the caller holds the lock."""
        try:
            followed.apply(changes)
        except Exception:
            # Only a part of them may be applied: nobody may use the index before it is dropped.
            if self._followed is followed:
                self._followed = None
            raise

    # -- operating ----------------------------------------------------------------------

    def statistics(self) -> dict[str, float]:
        """Return figures of the index for metrics; only ``made`` if there is no index."""
        with self._using:
            followed = self._followed
            if followed is None:
                return {"made": self._built}
            return {"providers": len(followed.index),
                    "inventories": followed.index.size, "bytes": followed.index.nbytes,
                    "position": followed.index.position, "age_seconds": followed.age,
                    "applied": followed.applied, "made": self._built}

    def verify(self, after: int, limit: int, seconds: float = math.inf) -> dict | None:
        """Compare a part of the index with the store; drop the index if it differs.

        It goes slice by slice. Calls that read the index wait while a slice is copied from it, and
        not while the store is read or the two are compared.

        :param after: the provider id after which to begin
        :param limit: the maximum number of providers
        :param seconds: after which no further slice is begun
        :returns: dict of ``providers``, ``inventories``, ``bytes`` and ``position`` of the index,
            ``differences``, a dict of provider id to what differs, and ``next``, the id after
            which to continue, None at the end; None if there is no index
        :raises StoreUnavailable: if the store cannot be read
        """
        ends, left = time.monotonic() + seconds, limit
        found: dict[int, str] = {}
        end: int | None = after
        with self._using:
            followed = self._followed
        if followed is None:
            return None
        while end is not None:
            try:
                some, end = verification.differences(
                    self._for_verification(followed), end, min(left, verification.SLICE))
            except _Replaced:
                some, end = {0: self._dropped_for}, None
            except exception.PlacementException:
                raise
            except Exception as error:
                LOG.warning("The candidate index cannot be verified", exc_info=error)
                some, end = {0: str(error) or type(error).__name__}, None
            found |= some
            left -= verification.SLICE
            if left <= 0 or some or time.monotonic() >= ends:
                break
        with self._using:
            answer = {
                "providers": len(followed.index),
                "inventories": followed.index.size, "bytes": followed.index.nbytes,
                "position": followed.index.position, "next": end,
                "differences": {str(id_): text for id_, text in found.items()}}
        if found:
            self.drop("; ".join(f"provider {id_}: {text}" for id_, text in sorted(
                found.items())[:3]), followed)
        return answer

    def _for_verification(self, followed):
        """Return how a verification reads an index.

        :raises _Replaced: from its calls, if there is another index by then, or none
        """
        def copy(take):
            if self.refresh() is not followed:
                raise _Replaced
            with self._using:
                return take(followed.index)

        return verification.Source(self._reader, copy)


class IndexMaintenance:
    """Periodic work on an index: keep it current without calls, and verify a part each time.

    :param index: the index
    :param sample: how many providers are compared with the store each time; 0 for none
    """

    def __init__(self, index: LiveIndex, sample: int):
        self._index = index
        self._sample = sample
        self._after = 0

    def step(self, seconds: float = math.inf) -> None:
        """Do the next part.

        The next call then does not have to read all events since the last one.

        :param seconds: after which the rest of the part is left to the next step
        :raises StoreUnavailable: if the store cannot be read
        """
        self._index.refresh()
        if self._sample:
            answer = self._index.verify(self._after, self._sample, seconds)
            self._after = (answer and answer["next"]) or 0
