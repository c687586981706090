# SPDX-License-Identifier: Apache-2.0
"""What stands in the way of the next step of an upgrade."""

from placement_rpc.db.queries import compute_nodes
from placement_rpc.upgrade import gate


def to_contraction(database, down_time):
    """What still needs what the contraction takes away.

    :param down_time: int, seconds without a heartbeat after which a service counts as down
    :returns: list of str, a sentence each; empty where nothing does
    """
    with database.reader() as tx:
        counts = compute_nodes.counts(tx)
        services = [row for row in gate.alive(tx, down_time) if not gate.knows(row)]
    found = [f"{gate.name(row)} is alive and needs the columns of compute_nodes"
             for row in services]
    if counts.unmigrated:
        found.append(
            f"{counts.unmigrated} of {counts.nodes} compute nodes have their capacity in their "
            "columns: run 'placement-rpc-manage db online_data_migrations'")
    return found
