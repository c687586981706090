# SPDX-License-Identifier: Apache-2.0
"""Gates: what has to wait until no service of an older release is at work.

One says whether all live services read the capacity of compute nodes from inventories. While it
is closed, columns and inventories are both written, and no node is migrated
(compute-node-inventory).
"""

import datetime
import math
import time

from placement_rpc import exception
from placement_rpc.db import schema_version
from placement_rpc.db.queries import bulk, services
from placement_rpc.nova.migration import Settings
from placement_rpc.versions import releases

#: The first version of this software that migrates compute nodes.
NEEDED = "0.2.0"

AUTO, ALWAYS, NEVER = "auto", "always", "never"


class InventoryGate:
    """A gate that is open while every live service supports the migration.

    A service without heartbeats counts as down. If it was alive after all, the gate closes when
    its next heartbeat is seen: nodes that were migrated stay migrated, and no more are.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    :param clock: returns seconds of a clock that never goes back
    """

    def __init__(self, conf, database, clock=time.monotonic):
        self._options = conf.compute_nodes
        self._down_time = conf.conductor.service_down_time
        self._recheck = conf.conductor.report_interval
        self._database = database
        self._clock = clock
        # Until when it is open without another look.
        self._open_until = 0.0

    @property
    def settings(self):
        """:class:`placement_rpc.nova.migration.Settings` with the current state of the gate"""
        return Settings(self._options, self.is_open())

    def is_open(self):
        """Return whether the gate is open.

        True holds until the next heartbeats, and for good once the old columns are dropped or if
        the operator said ``always``; False is checked again next time.
        """
        if self._clock() < self._open_until:
            return True
        mode = self._options.inventory_migration
        if mode == ALWAYS or schema_version.is_contracted(self._database):
            self._open_until = math.inf
        elif mode == AUTO and not self.holders():
            self._open_until = self._clock() + self._recheck
        else:
            return False
        return True

    def holders(self):
        """Return the rows of the live services that are too old, as a list."""
        with self._database.reader() as tx:
            return [row for row in alive(tx, self._down_time) if not knows(row)]


class LiveReleases:
    """The releases of the live services, asked for again every :data:`CHECKED_FOR` seconds.

    Changes that an older live service would misread or undo are refused while it is alive. Objects
    are stored at versions that all live services can read.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    :param clock: callable that returns seconds
    """

    CHECKED_FOR = 1.0

    def __init__(self, conf, database, clock=time.monotonic):
        self._down_time = conf.conductor.service_down_time
        self._database = database
        self._clock = clock
        self._rows = []
        self._read_at = -math.inf

    def check(self, what, contract_version):
        """Check that every live service knows a version of the contract.

        :param what: str, what needs it
        :raises UpgradeInProgress: if one does not; it names all of them
        """
        found = self.holders(contract_version)
        if found:
            raise exception.UpgradeInProgress(
                what=what, needed=contract_version, who=", ".join(map(name, found)))

    def holders(self, contract_version):
        """Return the rows of the live services that do not know a version of the contract."""
        needed = releases.number(contract_version)
        return [row for row in self._alive() if not releases.is_version(row.rpc_version)
                or releases.number(row.rpc_version) < needed]

    def stored_versions(self):
        """Return the versions at which every live service can read objects.

        :returns: dict of object name to version; None for those of this release
        """
        found = [releases.of_contract(row.rpc_version) for row in self._alive()]
        oldest = min((each for each in found if each), key=lambda each: each.number,
                     default=releases.CURRENT)
        return None if oldest is releases.CURRENT else oldest.versions

    def _alive(self):
        """Return the rows of the live services."""
        if self._clock() - self._read_at >= self.CHECKED_FOR:
            with self._database.reader() as tx:
                self._rows = alive(tx, self._down_time)
            self._read_at = self._clock()
        return self._rows


def alive(tx, down_time):
    """Return the services with a recent heartbeat.

    :param down_time: int, seconds without a heartbeat after which a service counts as down
    :returns: list of rows of the table services
    """
    oldest = bulk.now() - datetime.timedelta(seconds=down_time)
    return [row for row in services.everyone(tx) if row.last_seen_at >= oldest]


def knows(row):
    """Return whether a service supports the migration.

    :param row: a row of the table services
    """
    if releases.of_contract(row.rpc_version) is None or not releases.is_version(row.version):
        return False
    return releases.number(row.version) >= releases.number(NEEDED)


def name(row):
    """Return the name of a service as operators see it."""
    return f"{row.binary} {row.worker} on {row.host} (version {row.version})"
