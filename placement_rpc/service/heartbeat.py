# SPDX-License-Identifier: Apache-2.0
"""The row by which other processes know that one is alive, and of which release."""

import datetime
import logging

import placement_rpc
from placement_rpc import exception
from placement_rpc.db.queries import bulk, services

LOG = logging.getLogger(__name__)
# A row that was not written for so many times the time after which a process counts as down is
# one that nobody will write again.
_FORGOTTEN_AFTER = 10


class Heartbeat:
    """The heartbeats of one process.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param manager: :class:`placement_rpc.manager.Manager` that it works with
    :param binary: str, the program's name
    :param host: str
    :param worker: int, its number among those of the program on the host
    """

    def __init__(self, conf, manager, binary, host, worker):
        self._conf = conf
        self._manager = manager
        self._database = manager.database
        self._identity = {"binary": binary, "host": host, "worker": worker}

    def beat(self, started=False):
        """Write one; :raises PlacementException: where the store is away"""
        versions = {
            "version": placement_rpc.__version__,
            "rpc_version": self._manager.release.contract,
            "pin": self._conf.upgrade_levels.placement,
            "oldest_caller": self._manager.seen_clients.oldest()}
        self._database.write(
            lambda tx: services.beat(tx, self._identity, versions, started), "heartbeat")

    def forget_others(self):
        """Delete the rows of processes of this program and host that ended long ago, and had
        numbers that come only once."""
        before = bulk.now() - datetime.timedelta(
            seconds=_FORGOTTEN_AFTER * self._conf.conductor.service_down_time)
        self._database.write(lambda tx: services.forget(
            tx, self._identity["binary"], self._identity["host"], before), "heartbeat")

    def goodbye(self):
        """Take the row away, of a process that ends in good order."""
        try:
            self._database.write(lambda tx: services.remove(tx, self._identity), "goodbye")
        except exception.PlacementException as error:
            LOG.warning("The heartbeat row could not be removed: %s", error)
