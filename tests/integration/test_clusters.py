# SPDX-License-Identifier: Apache-2.0
"""The clusters that tests start: they lose a node and go on, and the node comes back."""

import unittest

import kombu
import sqlalchemy as sa

from placement_rpc.testing.galera import GaleraCluster
from placement_rpc.testing.rabbitmq_cluster import RabbitMQCluster
from placement_rpc.testing.standbys import PostgreSQLStandbys
from tests import base


class RabbitMQClusterTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(RabbitMQCluster())
        connection = kombu.Connection(
            self.cluster.url_of(self.cluster.nodes[0]).replace("rabbit:", "amqp:"))
        self.addCleanup(connection.release)
        kombu.Queue("claims", queue_arguments={"x-queue-type": "quorum"},
                    channel=connection.channel()).declare()
        self.leader = self.cluster.leader_of("claims")

    def wait_for_another_leader(self):
        base.wait_until(lambda: self.cluster.leader_of("claims") not in (None, self.leader))

    def test_a_killed_leader(self):
        self.leader.stop()
        self.wait_for_another_leader()
        self.assertEqual(2, len(self.cluster.running))
        self.leader.start()
        self.cluster.wait_until_complete()

    @unittest.skipUnless(base.FULL, "waits for the time-out of the nodes")
    def test_a_frozen_node(self):
        other = next(node for node in self.cluster.nodes if node is not self.leader)
        self.leader.freeze()
        base.wait_until(lambda: self.leader.name not in other.members())
        self.leader.thaw()
        self.cluster.rejoin(self.leader)
        self.assertLessEqual({node.name for node in self.cluster.nodes}, self.leader.members())


class GaleraClusterTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(GaleraCluster())
        database = self.cluster.create_database()
        self.engines = [sa.create_engine(node.url_of(database), poolclass=sa.NullPool)
                        for node in self.cluster.nodes]
        self.write("CREATE TABLE t (id INT PRIMARY KEY)", on=0)

    def write(self, statement, on):
        with self.engines[on].begin() as tx:
            tx.exec_driver_sql(statement)

    def rows(self, on):
        with self.engines[on].connect() as tx:
            # What the other nodes have committed before is waited for.
            tx.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
            return tx.exec_driver_sql("SELECT id FROM t ORDER BY id").scalars().all()

    def wait_for_size(self, size, on):
        base.wait_until(lambda: self.cluster.nodes[on].status("wsrep_cluster_size") == str(size))

    def test_nodes_are_lost_and_come_back(self):
        self.cluster.nodes[0].stop()
        self.wait_for_size(2, on=1)
        self.write("INSERT INTO t VALUES (1)", on=1)
        self.cluster.nodes[0].start()
        self.assertEqual([1], self.rows(on=0))
        self.cluster.nodes[1].freeze()
        self.wait_for_size(2, on=0)
        self.write("INSERT INTO t VALUES (2)", on=2)
        self.cluster.nodes[1].thaw()
        self.wait_for_size(3, on=0)
        for node in self.cluster.nodes:
            node.stop()
        self.cluster.recover()
        self.assertEqual([[1, 2]] * 3, [self.rows(on=number) for number in range(3)])


class PostgreSQLStandbysTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(PostgreSQLStandbys())
        self.engine = sa.create_engine(self.cluster.create_database())
        self.addCleanup(self.engine.dispose)
        self.write("CREATE TABLE t (id INT PRIMARY KEY)")

    def write(self, statement):
        with self.engine.begin() as tx:
            tx.exec_driver_sql(statement)

    def test_a_standby_takes_the_place_of_the_primary(self):
        self.write("INSERT INTO t VALUES (1)")
        first, second, third = self.cluster.servers
        # The other standby alone may have confirmed it.
        second.wait_for(first.position())
        first.stop()
        self.assertIsNone(self.cluster.primary)
        self.cluster.promote(second)
        self.engine.dispose()
        self.write("INSERT INTO t VALUES (2)")
        first.follow(second)
        third.freeze()
        # Either standby confirms a change.
        self.write("INSERT INTO t VALUES (3)")
        third.thaw()
        third.wait_for(second.position())
        with self.engine.connect() as tx:
            self.assertEqual([1, 2, 3], tx.exec_driver_sql(
                "SELECT id FROM t ORDER BY id").scalars().all())
