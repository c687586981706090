# SPDX-License-Identifier: Apache-2.0
"""Housekeeping of a worker: heartbeats, index verification, pruning, snapshots."""

import datetime
import functools
import logging
import threading
import time

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.candidates.live_index import IndexMaintenance
from placement_rpc.db.queries import bulk, events, requests
from placement_rpc.db.queries import commands as command_attempts

LOG = logging.getLogger(__name__)
# Seconds between two rounds of pruning.
_PRUNE_EVERY = 60


class Housekeeping:
    """A thread that does the recurring work of a worker every ``[conductor] report_interval``.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param manager: :class:`placement_rpc.manager.Manager` of the worker
    :param heartbeat: :class:`placement_rpc.service.heartbeat.Heartbeat` of the worker
    :param holder: str, the name under which this process holds leases
    """

    def __init__(self, conf, manager, heartbeat, holder):
        self._conf = conf
        self._manager = manager
        self._database = manager.database
        self._heartbeat = heartbeat
        self._holder = holder
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

    def _run(self):
        """Write heartbeats, verify the index, prune and take snapshots, until stopped."""
        since_pruned = 0
        maintenance = IndexMaintenance(
            self._manager.candidates.index, self._conf.candidates.verify_sample)
        interval = self._conf.conductor.report_interval
        while not self._ended.wait(interval):
            since_pruned += interval
            try:
                self._heartbeat.beat()
                maintenance.step()
                if since_pruned >= _PRUNE_EVERY:
                    since_pruned = 0
                    self._prune()
                self._take_snapshot(interval / 2)
            except exception.PlacementException as error:
                LOG.warning("Skipping the rest of housekeeping: %s", error)
            except Exception:
                LOG.exception("Housekeeping failed unexpectedly; retrying at the next interval")

    def _prune(self):
        for prune, retention in (
                (requests.prune, self._conf.claims.request_retention),
                (command_attempts.prune, self._conf.claims.request_retention),
                (events.prune, self._conf.notifications.retention)):
            before = bulk.now() - datetime.timedelta(seconds=retention)
            while not self._ended.is_set() and self._database.write(
                    functools.partial(prune, before=before), "prune"):
                LOG.debug("Pruned rows older than %s", before)

    def _take_snapshot(self, seconds):
        """Work on a snapshot that is due, for some seconds.

        It pauses for as long as each step took, which leaves the database time for calls. One
        process does so at a time, under a lease, and continues a snapshot that another began.
        """
        period = self._conf.notifications.snapshot_period or None
        if not snapshot.is_wanted(self._database, period) or not self._database.write(
                lambda tx: events.acquire(tx, "snapshot", self._holder, 3 * seconds), "snapshot"):
            return
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            began = time.monotonic()
            if snapshot.go_on(self._database, period) is None or self._ended.wait(
                    time.monotonic() - began):
                return
