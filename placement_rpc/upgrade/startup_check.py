# SPDX-License-Identifier: Apache-2.0
"""Check at startup that a service of this release can run alongside the live services."""

from placement_rpc import exception
from placement_rpc.db import schema_version
from placement_rpc.upgrade import gate
from placement_rpc.versions import releases


def too_old(database, down_time):
    """Return the live services alongside which this release cannot run.

    These are services older than every release that this one knows, and, once the schema has been
    contracted, those that need the dropped columns.

    :param down_time: int, seconds without a heartbeat after which a service counts as down
    :returns: list of rows of services
    """
    contracted = schema_version.is_contracted(database)
    with database.reader() as tx:
        return [row for row in gate.alive(tx, down_time)
                if releases.of_contract(row.rpc_version) is None
                or (contracted and not gate.knows(row))]


def check(conf, database):
    """Check that a service may start.

    :raises ServiceTooOld: if live services are too old; it names all of them
    :raises InvalidInput: if the configuration says to write columns that have been dropped
    """
    found = too_old(database, conf.conductor.service_down_time)
    if found:
        raise exception.ServiceTooOld(
            what="a service of this release", needed=releases.RELEASES[0].contract,
            who=", ".join(map(gate.name, found)),
            found=", ".join(sorted({row.rpc_version for row in found})))
    if conf.compute_nodes.inventory_migration == gate.NEVER and (
            schema_version.is_contracted(database)):
        raise exception.InvalidInput(
            what="[compute_nodes] inventory_migration",
            reason="'never' writes columns that the contraction of the schema dropped; use 'auto'")
