# SPDX-License-Identifier: Apache-2.0
"""Heartbeats: a row per process that shows other processes that it is alive, and its release."""

import datetime
import logging
import threading

import placement_rpc
from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk, events, services

LOG = logging.getLogger(__name__)
# A row that has not been written for this many times service_down_time is deleted, since its
# process has ended for good.
_FORGOTTEN_AFTER = 10
# Seconds that the end of a process waits for a heartbeat under way.
_STOP_TIMEOUT = 5


class Heartbeat:
    """The heartbeats of one process: a row, and a thread that writes it.

    A process that answers calls must not count as dead, even while it is busy. So the thread
    does nothing else, and has a connection to the database of its own, since all others may be in
    use.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param manager: :class:`placement_rpc.manager.Manager` of the process
    :param binary: str, the program's name
    :param host: str
    :param worker: int, the number of the process among those of the program on the host
    """

    def __init__(self, conf, manager, binary, host, worker):
        self._conf = conf
        self._manager = manager
        self._database = db.Database(conf, connections=1)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._identity = {"binary": binary, "host": host, "worker": worker}

    def start(self):
        """Write the first heartbeat, and then one every ``[conductor] report_interval``.

        :raises PlacementException: if the database cannot be reached
        """
        self.beat(started=True)
        self._thread.start()

    def stop(self):
        """Write no more heartbeats, and remove the row: the process ends in an orderly way."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT)
        try:
            self._database.write(lambda tx: services.remove(tx, self._identity), "heartbeat")
        except exception.PlacementException as error:
            LOG.warning("Cannot remove the heartbeat row: %s", error)
        self._database.close()

    def _run(self):
        while not self._ended.wait(self._conf.conductor.report_interval):
            try:
                self.beat()
            except exception.PlacementException as error:
                LOG.warning("Skipping a heartbeat: %s", error)
            except Exception:
                LOG.exception("A heartbeat failed unexpectedly; retrying at the next interval")

    def beat(self, started=False):
        """Write a heartbeat.

        :param started: bool, whether it is the first of this process
        :raises PlacementException: if the database cannot be reached
        """
        versions = {
            "version": placement_rpc.__version__,
            "rpc_version": self._manager.release.contract,
            "pin": self._conf.upgrade_levels.placement,
            "oldest_caller": self._manager.seen_clients.oldest()}
        self._database.write(
            lambda tx: services.beat(tx, self._identity, versions, started), "heartbeat")

    def check_database(self):
        """Read from the database, on the connection of the heartbeats.

        :raises PlacementException: if the database cannot be reached
        """
        with self._database.reader() as tx:
            events.last_position(tx)

    def forget_others(self):
        """Delete the rows of processes of this program on this host that ended long ago.

        For programs whose worker number is a process id, whose rows no later process reuses.
        """
        before = bulk.now() - datetime.timedelta(
            seconds=_FORGOTTEN_AFTER * self._conf.conductor.service_down_time)
        self._database.write(lambda tx: services.forget(
            tx, self._identity["binary"], self._identity["host"], before), "heartbeat")
