# SPDX-License-Identifier: Apache-2.0
"""What ``placement-rpc-manage broker check`` says about a cluster of RabbitMQ."""

import fixtures
import kombu

from placement_rpc.amqp.broker import Broker
from placement_rpc.rpc import routing
from placement_rpc.service import broker_check
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import server_process
from placement_rpc.testing.rabbitmq_cluster import RabbitMQCluster
from tests import base


class BrokerCheckTest(base.TestCase):

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(RabbitMQCluster(plugins=("rabbitmq_management",)))
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.cluster.url, topic="placement"))
        self.management = ",".join(
            f"http://{node.username}:{node.password}@127.0.0.1:{node.management_port}"
            for node in self.cluster.nodes)

    def check(self):
        """Return the findings, a dict of name to the finding."""
        broker = Broker.of(self.running.conf)
        found = broker_check.check(
            self.running.conf, broker, broker_check.Management(self.management, "/"),
            routing.TOPIC, routing.EXCHANGE)
        return {finding.queue: finding for finding in found}

    def wait_for(self, name, fault, there=True):
        """Wait until a fault is found, or is not; the interface is some seconds behind."""
        base.wait_until(lambda: there == any(
            fault in each for each in (
                self.check()[name].trouble if name in self.check() else [])), 60)

    def have_rabbitmqctl(self):
        """Have it on the path, with the cookie of the nodes."""
        for name, value in (*self.cluster.nodes[0].env.items(), ("PATH", server_process.path())):
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def declare_classic(self):
        with kombu.Connection(self.cluster.url.split(",")[0].replace("rabbit:", "amqp:")) as bus:
            kombu.Queue("books", kombu.Exchange(routing.EXCHANGE, "topic", durable=True),
                        f"{self.running.conf.notifications.topic}.info",
                        channel=bus.channel()).declare()

    def test_what_is_found(self):
        # All were declared over one connection, and a quorum queue is led where that is.
        self.wait_for("(cluster)", "leads all queues")
        self.cluster.nodes[0].rebalance()
        self.wait_for("(cluster)", "leads all queues", there=False)

        self.assertIn("unknown: cluster_partition_handling", self.check()["(cluster)"].notes[0])
        self.have_rabbitmqctl()
        found = self.check()["(cluster)"]
        self.assertEqual(([], []), (found.trouble, found.notes))
        self.cluster.nodes[1].rabbitmqctl(
            "eval", "application:set_env(rabbit, cluster_partition_handling, ignore).")
        self.assertIn("cluster_partition_handling is ignore on node1@localhost",
                      self.check()["(cluster)"].trouble[0])

        self.declare_classic()
        self.wait_for("books", "classic: it is lost or away with")

        node = self.cluster.nodes[0]
        node.stop()
        self.wait_for(f"(node {node.name})", "not running")
        self.assertIn("cannot be reached",
                      self.check()[f"(node 127.0.0.1:{node.port})"].trouble[0])
        node.start()
        self.wait_for(f"(node {node.name})", "not running", there=False)
