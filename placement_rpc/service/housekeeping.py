# SPDX-License-Identifier: Apache-2.0
"""Recurring work of a process: verification of its index, pruning of the store, snapshots.

Each step has a time budget, and the next step begins even if one fails. What is left of a step is
done at the next interval.
"""

import datetime
import functools
import logging
import threading
import time

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.candidates.live_index import IndexMaintenance
from placement_rpc.db.queries import bulk, events, leases, requests
from placement_rpc.db.queries import commands as command_attempts

LOG = logging.getLogger(__name__)
# Seconds between two rounds of pruning.
_PRUNE_EVERY = 60
# The budget of each step, as a share of the interval.
_BUDGET = 0.5


class Housekeeping:
    """A thread that keeps the index of a process current, and verifies it.

    It works every ``[conductor] report_interval``.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param index: :class:`placement_rpc.candidates.live_index.LiveIndex` of the process
    """

    def __init__(self, conf, index):
        self._conf = conf
        self._maintenance = IndexMaintenance(index, conf.candidates.verify_sample)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self):
        """Begin with the first interval."""
        self._thread.start()

    def stop(self):
        """End after the step that is under way."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def steps(self):
        """tuple of callables, each with the seconds that it may take"""
        return (self._maintenance.step,)

    def _run(self):
        """Do all steps every interval, until stopped."""
        interval = self._conf.conductor.report_interval
        while not self._ended.wait(interval):
            for step in self.steps:
                self._do(step, _BUDGET * interval)

    def _do(self, step, seconds):
        if self._ended.is_set():
            return
        try:
            step(seconds)
        except exception.PlacementException as error:
            LOG.warning("A step of housekeeping is retried at the next interval: %s", error)
        except Exception:
            LOG.exception("Housekeeping failed unexpectedly; retrying at the next interval")


class StoreHousekeeping(Housekeeping):
    """Housekeeping of a process that also prunes the store, and takes snapshots.

    :param manager: :class:`placement_rpc.manager.Manager` of the process
    :param holder: str, the name under which the process holds leases
    """

    def __init__(self, conf, manager, holder):
        super().__init__(conf, manager.candidates.index)
        self._database = manager.database
        self._holder = holder
        self._watch = leases.Watch()
        self._prune_at = 0.0

    @property
    def steps(self):
        """tuple of callables, each with the seconds that it may take"""
        return (*super().steps, self._prune_if_due, self._take_snapshot)

    def _prune_if_due(self, seconds):
        if time.monotonic() >= self._prune_at and self.prune(seconds):
            self._prune_at = time.monotonic() + _PRUNE_EVERY

    def prune(self, seconds):
        """Delete old rows of all kinds.

        :param seconds: float, how long it may take; each kind gets an equal share
        :returns: bool, whether all were deleted in time
        """
        kinds = ((requests.prune, self._conf.claims.request_retention),
                 (command_attempts.prune, self._conf.claims.request_retention),
                 (events.prune, self._conf.notifications.retention))
        finished = [self._prune(prune, retention, seconds / len(kinds))
                    for prune, retention in kinds]
        return all(finished)

    def _prune(self, prune, retention, seconds):
        """Delete rows of one kind; return whether none is left."""
        with self._database.reader() as tx:
            # A wrong clock of this machine must not delete what others still need.
            before = bulk.now_of(tx) - datetime.timedelta(seconds=retention)
        ends = time.monotonic() + seconds
        while self._database.write(functools.partial(prune, before=before), "prune"):
            LOG.debug("Pruned rows older than %s", before)
            if self._ended.is_set() or time.monotonic() >= ends:
                return False
        return True

    def _take_snapshot(self, seconds):
        """Work on a snapshot that is due, for some seconds.

        It pauses for as long as each step took, which leaves the database time for calls. One
        process does so at a time, under a lease, and continues a snapshot that another began.
        """
        period = self._conf.notifications.snapshot_period or None
        if not snapshot.is_wanted(self._database, period) or not self._database.write(
                lambda tx: leases.acquire(
                    tx, "snapshot", self._holder, 3 * seconds, self._watch), "snapshot"):
            return
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            began = time.monotonic()
            if snapshot.go_on(self._database, period) is None or self._ended.wait(
                    time.monotonic() - began):
                return
