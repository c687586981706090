# SPDX-License-Identifier: Apache-2.0
"""The brokers of a soak, and how they fail."""

import collections

import fixtures

from placement_rpc.rpc import routing
from placement_rpc.testing import servers as private
from placement_rpc.testing.rabbitmq_cluster import RabbitMQCluster
from placement_rpc.versions import contract
from tests.soak import young_queues
from tests.soak.faults import STOPPED_SECONDS, Fault

_CLAIMS = routing.name(routing.TOPIC, contract.CLAIMS)


class OneBroker(fixtures.Fixture):
    """A single RabbitMQ node.

    :param pause: callable of the least and the most seconds to wait
    """

    def __init__(self, pause):
        super().__init__()
        self._pause = pause

    def _setUp(self):
        self.nodes = [self.useFixture(private.RabbitMQ())]
        self.url = self.nodes[0].url
        self.rejoined = collections.Counter()
        self.young = self.useFixture(young_queues.YoungQueues(self.nodes[0], self.url))
        self.faults = [Fault("broker killed", self._kill), Fault("broker stopped", self._freeze),
                       Fault("young queue killed", self._kill_young)]

    def _kill(self):
        # Not stop(), which first has the node write what it should have written.
        self.nodes[0].kill()
        self._pause(0, 3)
        self.nodes[0].start()

    def _kill_young(self):
        queue = self.young.fill()
        self._kill()
        self.young.look(queue)

    def _freeze(self):
        self.nodes[0].freeze()
        try:
            self._pause(STOPPED_SECONDS, STOPPED_SECONDS)
        finally:
            self.nodes[0].thaw()


class BrokerCluster(fixtures.Fixture):
    """Three RabbitMQ nodes.

    :param pause: callable of the least and the most seconds to wait
    """

    def __init__(self, pause):
        super().__init__()
        self._pause = pause

    def _setUp(self):
        self._cluster = self.useFixture(RabbitMQCluster())
        self.nodes, self.url = self._cluster.nodes, self._cluster.url
        #: How nodes that were stopped came back: by themselves, or restarted.
        self.rejoined = collections.Counter()
        self.faults = [
            Fault("queue leader killed", self._kill_leader, 10),
            Fault("broker node stopped", self._freeze_leader, 30),
            Fault("two brokers killed", self._kill_two),
            Fault("broker node restarted", self._restart),
            Fault("young queue killed", self._kill_young)]
        self.young = self.useFixture(young_queues.YoungQueues(self.nodes[0], self.url))

    def _leader(self):
        return self._cluster.leader_of(_CLAIMS) or self.nodes[0]

    def _kill_leader(self):
        self._kill([self._leader()])

    def _kill_two(self):
        leader = self._leader()
        self._kill([leader, next(node for node in self.nodes if node is not leader)])

    def _kill(self, nodes):
        for node in nodes:
            # Not stop(), which first has the node write what it should have written.
            node.kill()
        try:
            self._pause(3, 6)
        finally:
            for node in nodes:
                node.start()
        self._cluster.wait_until_complete()

    def _kill_young(self):
        queue = self.young.fill()
        self._kill([self._cluster.leader_of(queue, young_queues.VIRTUAL_HOST) or self.nodes[0]])
        self.young.look(queue)

    def _freeze_leader(self):
        leader = self._leader()
        leader.freeze()
        try:
            self._pause(STOPPED_SECONDS, STOPPED_SECONDS)
        finally:
            leader.thaw()
        self.rejoined["restarted" if self._cluster.rejoin(leader) else "by themselves"] += 1

    def _restart(self):
        leader = self._leader()
        leader.shut_down()
        leader.start()
        self._cluster.wait_until_complete()
