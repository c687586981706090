# SPDX-License-Identifier: Apache-2.0
"""Heartbeats: a row per process that shows other processes that it is alive, and its release."""

import datetime
import logging

import placement_rpc
from placement_rpc import exception
from placement_rpc.db.queries import bulk, services

LOG = logging.getLogger(__name__)
# A row that has not been written for this many times service_down_time is deleted, since its
# process has ended for good.
_FORGOTTEN_AFTER = 10


class Heartbeat:
    """The heartbeats of one process.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param manager: :class:`placement_rpc.manager.Manager` of the process
    :param binary: str, the program's name
    :param host: str
    :param worker: int, the number of the process among those of the program on the host
    """

    def __init__(self, conf, manager, binary, host, worker):
        self._conf = conf
        self._manager = manager
        self._database = manager.database
        self._identity = {"binary": binary, "host": host, "worker": worker}

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

    def forget_others(self):
        """Delete the rows of processes of this program on this host that ended long ago.

        For programs whose worker number is a process id, whose rows no later process reuses.
        """
        before = bulk.now() - datetime.timedelta(
            seconds=_FORGOTTEN_AFTER * self._conf.conductor.service_down_time)
        self._database.write(lambda tx: services.forget(
            tx, self._identity["binary"], self._identity["host"], before), "heartbeat")

    def remove(self):
        """Remove the row when the process ends in an orderly way."""
        try:
            self._database.write(lambda tx: services.remove(tx, self._identity), "heartbeat")
        except exception.PlacementException as error:
            LOG.warning("Cannot remove the heartbeat row: %s", error)
