# SPDX-License-Identifier: Apache-2.0
"""The gate: whether everybody knows that compute nodes have their capacity in inventories.

Until then both places are written, and nothing is migrated (compute-node-inventory).
"""

import datetime

from placement_rpc.db import migration
from placement_rpc.db.queries import bulk, services
from placement_rpc.nova.migration import Settings
from placement_rpc.versions import releases

#: The first version of this software that migrates compute nodes.
NEEDED = "0.2.0"

AUTO, ALWAYS, NEVER = "auto", "always", "never"


class InventoryGate:
    """Opens when every live service knows; once open it stays so.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    """

    def __init__(self, conf, database):
        self._options = conf.compute_nodes
        self._down_time = conf.conductor.service_down_time
        self._database = database
        self._open = False

    @property
    def settings(self):
        """:class:`placement_rpc.nova.migration.Settings`, as of now"""
        return Settings(self._options, self.is_open())

    def is_open(self):
        """:returns: bool; that it is open is remembered, that it is not is not"""
        if not self._open:
            mode = self._options.inventory_migration
            self._open = mode == ALWAYS or (mode == AUTO and not self.holders()) or (
                # There is nothing else left to write.
                migration.is_contracted(self._database))
        return self._open

    def holders(self):
        """:returns: list of rows of the live services that are too old"""
        with self._database.reader() as tx:
            return [row for row in alive(tx, self._down_time) if not knows(row)]


def alive(tx, down_time):
    """The services with a heartbeat that is not too old.

    :param down_time: int, seconds
    :returns: list of rows of all columns of services
    """
    oldest = bulk.now() - datetime.timedelta(seconds=down_time)
    return [row for row in services.everyone(tx) if row.last_seen_at >= oldest]


def knows(row):
    """:param row: of a service; :returns: bool, whether it knows of the migration"""
    if releases.of_contract(row.rpc_version) is None or not releases.is_version(row.version):
        return False
    return releases.number(row.version) >= releases.number(NEEDED)


def name(row):
    """:returns: str, what an operator knows a service by"""
    return f"{row.binary} {row.worker} on {row.host} (version {row.version})"
