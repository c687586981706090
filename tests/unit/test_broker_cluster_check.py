# SPDX-License-Identifier: Apache-2.0
"""What is said about the nodes of a broker, and about queues on them."""

import testscenarios

from placement_rpc import conf as configuration
from placement_rpc.amqp.broker import Broker
from placement_rpc.service import broker_cluster_check
from tests import base

_NAMES = ("a@one", "b@two", "c@three")


def _node(name, **values):
    return {"name": name, "running": True, "mem_alarm": False, "disk_free_alarm": False,
            "partitions": [], "net_ticktime": 15, **values}


def _queue(name="placement", **values):
    return {"name": name, "type": "quorum", "leader": _NAMES[0], "members": [*_NAMES],
            "online": [*_NAMES], **values}


class ClusterTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.handling = {}
        self.patch(broker_cluster_check.partition_handling, "of_node", self.handling.get)

    def check(self, nodes, queues=(), url="rabbit://one,two,three/"):
        """Return the findings, a dict of name to the finding."""
        broker = Broker.of(configuration.new_config(config_files=[], transport_url=url))
        found = broker_cluster_check.check_cluster(broker, nodes, queues)
        return {finding.queue: finding for finding in found}

    def test_nothing_is_wrong(self):
        queues = [_queue(leader=name) for name in _NAMES]
        found = self.check([_node(name) for name in _NAMES], queues)
        self.assertEqual(["(cluster)"], list(found))
        self.assertEqual([], found["(cluster)"].trouble)
        self.assertIn("pause_minority", found["(cluster)"].notes[0])

    def test_nodes_that_go_on_without_a_majority(self):
        self.handling.update({"a@one": "pause_minority", "b@two": "ignore", "c@three": "autoheal"})
        found = self.check([_node(name) for name in _NAMES])["(cluster)"]
        self.assertIn("ignore on b@two, autoheal on c@three", found.trouble[0])
        self.assertEqual([], found.notes)
        self.handling.update({"b@two": None, "c@three": "pause_if_all_down"})
        found = self.check([_node(name) for name in _NAMES])["(cluster)"]
        self.assertEqual([], found.trouble)
        self.assertIn("On b@two: rabbitmqctl eval", found.notes[0])

    def test_a_lone_node_is_no_fault(self):
        found = self.check([_node("a@one", net_ticktime=60)], [_queue()] * 3, "rabbit://one/")
        self.assertEqual(["(cluster)"], list(found))
        self.assertEqual([], found["(cluster)"].trouble)
        self.assertIn("a lone node", found["(cluster)"].notes[0])

    def test_a_lone_address(self):
        found = self.check([_node(name) for name in _NAMES], url="rabbit://one/")
        self.assertEqual(["transport_url has one address of 3 nodes"],
                         found["(cluster)"].trouble)

    def test_one_node_leads_all_queues(self):
        found = self.check([_node(name) for name in _NAMES], [_queue(str(n)) for n in range(3)])
        self.assertIn("a@one leads all queues", found["(cluster)"].trouble[0])
        self.assertIn("rebalance quorum", found["(cluster)"].mend[0])

    def test_nodes_with_faults(self):
        found = self.check([
            _node("a@one", mem_alarm=True, disk_free_alarm=True), _node("b@two", running=False),
            _node("c@three", partitions=["a@one"], net_ticktime=60)])
        self.assertEqual({
            "(node a@one)": ["short of memory: it accepts no messages",
                             "short of disk space: it accepts no messages"],
            "(node b@two)": ["not running"], "(node c@three)": ["cut off from a@one"]},
            {name: each.trouble for name, each in found.items() if name != "(cluster)"})
        self.assertIn("75 s", found["(node c@three)"].notes[0])


class QueueTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [
        ("well", {"queue": _queue(), "fault": None, "remedy": None}),
        ("few members", {
            "queue": _queue(members=["a@one"], online=["a@one"]), "fault": "1 of 3 members",
            "remedy": "rabbitmq-queues add_member -p / placement b@two; "
                      "rabbitmq-queues add_member -p / placement c@three"}),
        ("a stream with few members", {
            "queue": _queue("events", type="stream", members=["a@one", "b@two"],
                            online=["a@one", "b@two"]), "fault": "2 of 3 members",
            "remedy": "rabbitmq-streams add_replica --vhost / events c@three"}),
        ("no majority", {
            "queue": _queue(online=["a@one"]),
            "fault": "1 of 3 members are online, which is no majority",
            "remedy": "start b@two, c@three"}),
        ("classic", {
            "queue": {"name": "q", "type": "classic", "node": "a@one"},
            "fault": "classic: it is lost or away with a@one",
            "remedy": "delete it when it is empty, and declare it as a quorum queue "
                      "([oslo_messaging_rabbit] rabbit_quorum_queue = true in its program)"}),
        ("mirrored", {
            "queue": {"name": "q", "type": "classic", "node": "a@one",
                      "effective_policy_definition": {"ha-mode": "all"}},
            "fault": None, "remedy": None}),
    ]

    def test_what_is_said(self):
        expected = [(self.fault, self.remedy)] if self.fault else []
        self.assertEqual(expected, broker_cluster_check.queue_faults(
            self.queue, [_node(name) for name in _NAMES], "/"))
        self.assertEqual([], broker_cluster_check.queue_faults(self.queue, [_node("a@one")], "/"))
