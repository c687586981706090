# SPDX-License-Identifier: Apache-2.0
"""Check what of a broker's configuration loses messages, or stops the service, with a node.

It is read from what RabbitMQ's management interface says about nodes and queues, and from
rabbitmqctl where that can be run.
"""

import shlex

from placement_rpc.service import partition_handling
from placement_rpc.service.broker_finding import Finding

# Seconds after which nodes notice that one of them hangs, at most, that the guide recommends.
_TICK_TIME = 15
# What nodes without a majority may do without losing messages: they stop.
_PAUSES = ("pause_minority", "pause_if_all_down")
# How many members a queue has unless a policy or an argument says otherwise.
_MEMBERS = 3


def check_cluster(broker, nodes, queues):
    """Return a list of :class:`Finding`: one for the cluster, and one for each node with a fault.

    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param nodes: list of dict, the descriptions of all nodes by the management interface
    :param queues: list of dict, those of the queues of this service
    """
    faults, notes = [], []
    if len(nodes) == 1:
        notes.append("a lone node: nothing is accepted while it is away, and a lost disk loses "
                     "the messages on it")
    else:
        faults += _of_addresses(broker, nodes) + _of_leaders(nodes, queues)
        handling = {node["name"]: partition_handling.of_node(node["name"])
                    for node in nodes if node.get("running")}
        faults += _of_partitions(handling)
        unknown = sorted(name for name, found in handling.items() if found is None)
        if unknown:
            notes.append("unknown: cluster_partition_handling, which has to be pause_minority. "
                         f"On {', '.join(unknown)}: rabbitmqctl eval "
                         "'application:get_env(rabbit, cluster_partition_handling).'")
    findings = [Finding.of("(cluster)", "cluster", faults, notes=notes)]
    return findings + [found for found in (_of_node(node, nodes) for node in nodes)
                       if found.trouble or found.notes]


def _of_addresses(broker, nodes):
    if len(broker.nodes) > 1:
        return []
    return [(f"transport_url has one address of {len(nodes)} nodes",
             "add the addresses of the other nodes to transport_url in every program")]


def _of_partitions(handling):
    """Return the faults of nodes that go on without a majority.

    :param handling: dict of the name of a node to what it does; None if that is not known
    """
    others = {name: found for name, found in handling.items() if found not in (None, *_PAUSES)}
    if not others:
        return []
    found = ", ".join(f"{value} on {name}" for name, value in sorted(others.items()))
    return [(f"cluster_partition_handling is {found}: nodes that are cut off go on, and what they "
             "accept is lost",
             "set cluster_partition_handling = pause_minority in rabbitmq.conf, and restart the "
             "nodes one after the other")]


def _of_leaders(nodes, queues):
    """Return the fault that one node leads all quorum queues."""
    leaders = [queue["leader"] for queue in queues if queue.get("leader")]
    running = [node for node in nodes if node.get("running")]
    if len(running) < 2 or len(leaders) < 3 or len(set(leaders)) > 1:
        return []
    return [(f"{leaders[0]} leads all queues: all of them pause when it is lost",
             "set queue_leader_locator = balanced in rabbitmq.conf, and: "
             "rabbitmq-queues rebalance quorum")]


def _of_node(node, nodes):
    faults, notes = [], []
    name = node["name"]
    if not node.get("running"):
        faults.append(("not running", "start it"))
    for alarm, lacks in (("mem_alarm", "memory"), ("disk_free_alarm", "disk space")):
        if node.get(alarm):
            faults.append((f"short of {lacks}: it accepts no messages",
                           f"give it more {lacks}, or remove queues that are not consumed"))
    if node.get("partitions"):
        faults.append((f"cut off from {', '.join(node['partitions'])}",
                       f"restart it: rabbitmqctl -n {shlex.quote(name)} stop_app, and start_app; "
                       "set cluster_partition_handling = pause_minority in rabbitmq.conf"))
    tick_time = node.get("net_ticktime")
    if len(nodes) > 1 and isinstance(tick_time, int) and tick_time > _TICK_TIME:
        notes.append(f"net_ticktime is {tick_time}: the other nodes notice after up to "
                     f"{tick_time * 5 // 4} s that it hangs; recommended is {_TICK_TIME}")
    return Finding.of(f"(node {name})", "node", faults, notes=notes)


def queue_faults(queue, nodes, virtual_host):
    """Return the faults of a queue in a cluster: list of tuples of a fault and its remedy.

    :param queue: dict, its description by the management interface
    :param nodes: list of dict, those of all nodes
    :param virtual_host: str
    """
    if len(nodes) < 2:
        return []
    if queue.get("type", "classic") == "classic":
        if (queue.get("effective_policy_definition") or {}).get("ha-mode"):
            return []
        return [(f"classic: it is lost or away with {queue.get('node')}",
                 "delete it when it is empty, and declare it as a quorum queue "
                 "([oslo_messaging_rabbit] rabbit_quorum_queue = true in its program)")]
    members, online = queue.get("members") or [], queue.get("online") or []
    faults = []
    wanted = min(_MEMBERS, len(nodes))
    if len(members) < wanted:
        faults.append((f"{len(members)} of {wanted} members", _add_members(
            queue, nodes, members, wanted, virtual_host)))
    if 2 * len(online) <= len(members):
        faults.append((f"{len(online)} of {len(members)} members are online, which is no majority",
                       f"start {', '.join(sorted(set(members) - set(online)))}"))
    return faults


def _add_members(queue, nodes, members, wanted, virtual_host):
    """Return the commands that give a queue the members that it lacks."""
    others = [node["name"] for node in nodes
              if node.get("running") and node["name"] not in members]
    if not others:
        return "start the other nodes"
    command = ("rabbitmq-streams add_replica" if queue["type"] == "stream"
               else "rabbitmq-queues add_member")
    option = "--vhost" if queue["type"] == "stream" else "-p"
    return "; ".join(
        f"{command} {option} {shlex.quote(virtual_host)} {shlex.quote(queue['name'])} "
        f"{shlex.quote(other)}" for other in others[:wanted - len(members)])
