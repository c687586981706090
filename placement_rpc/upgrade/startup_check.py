# SPDX-License-Identifier: Apache-2.0
"""Who else is at work, and whether a service of this release may start beside them."""

from placement_rpc import exception
from placement_rpc.db import migration
from placement_rpc.upgrade import gate
from placement_rpc.versions import releases


def too_old(database, down_time):
    """The live services beside which this release does not run.

    Those are older than every release that this one knows; and, once the schema was contracted,
    those that need what is gone from it.

    :param down_time: int, seconds without a heartbeat after which a service counts as down
    :returns: list of rows of services
    """
    contracted = migration.is_contracted(database)
    with database.reader() as tx:
        return [row for row in gate.alive(tx, down_time)
                if releases.of_contract(row.rpc_version) is None
                or (contracted and not gate.knows(row))]


def check(conf, database):
    """Whether a service may start.

    :raises ServiceTooOld: beside one that is too old, naming all of them
    :raises InvalidInput: where it is told to write what is gone from the schema
    """
    found = too_old(database, conf.conductor.service_down_time)
    if found:
        raise exception.ServiceTooOld(
            what="to start beside others", needed=releases.RELEASES[0].contract,
            who=", ".join(map(gate.name, found)),
            found=", ".join(sorted({row.rpc_version for row in found})))
    if conf.compute_nodes.inventory_migration == gate.NEVER and (
            migration.is_contracted(database)):
        raise exception.InvalidInput(
            what="[compute_nodes] inventory_migration",
            reason="'never' writes columns that the contraction took away")
