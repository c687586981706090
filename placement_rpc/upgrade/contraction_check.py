# SPDX-License-Identifier: Apache-2.0
"""The obstacles to the contraction of the schema."""

from placement_rpc.db.queries import compute_nodes
from placement_rpc.upgrade import gate


def obstacles(database, conf):
    """Return the reasons why the columns that the contraction drops are still needed.

    :returns: list of str, a sentence each; empty if the schema can be contracted
    """
    with database.reader() as tx:
        counts = compute_nodes.counts(tx)
        services = [row for row in gate.alive(tx, conf.conductor.service_down_time)
                    if not gate.knows(row)]
    found = [f"{gate.name(row)} is alive and needs the columns of compute_nodes"
             for row in services]
    if conf.compute_nodes.inventory_migration == gate.NEVER:
        found.append("[compute_nodes] inventory_migration = never writes the columns")
    if counts.nodes - counts.without_uuid != counts.uuids:
        found.append("two compute nodes have the same uuid")
    if counts.unmigrated:
        found.append(
            f"{counts.unmigrated} of {counts.nodes} compute nodes have their capacity in their "
            "columns: run 'placement-rpc-manage db online_data_migrations'")
    return found
