# SPDX-License-Identifier: Apache-2.0
"""Queues that are declared just before the node that leads them is killed.

RabbitMQ 3.10 writes the names of new quorum queues to disk half a second later. What becomes of
such a queue is reported, and is no fault of the service, whose queues are declared at its first
start.
"""

import time

import fixtures

from placement_rpc import conf as configuration
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.publisher import Outgoing, Publisher
from tests import base

VIRTUAL_HOST = "young"
_MESSAGES = 20
# Seconds within which a queue has to answer after its node was started.
_ANSWERS = 30


class YoungQueues(fixtures.Fixture):
    """Quorum queues in a virtual host that no service uses.

    :param node: a node of the broker
    :param url: of the broker
    :ivar kept: list of how many of the confirmed messages each queue still had, in percent; 0 for
        one that did not answer
    """

    def __init__(self, node, url):
        super().__init__()
        self._node = node
        self._broker = Broker.of(configuration.new_config(config_files=[]),
                                 f"{url}{VIRTUAL_HOST}")
        self.kept = []

    def _setUp(self):
        self._node.rabbitmqctl("add_vhost", VIRTUAL_HOST)
        self._node.rabbitmqctl("set_permissions", "-p", VIRTUAL_HOST, self._node.username,
                               ".*", ".*", ".*")

    def fill(self):
        """Declare a queue and publish to it; return its name once the broker has confirmed all."""
        name = f"young_{base.new_uuid()}"
        publisher = Publisher(self._broker, lambda connection: self._declare(connection, name))
        publisher.publish([Outgoing("{}", "", name, str(number)) for number in range(_MESSAGES)])
        publisher.close()
        return name

    def look(self, name):
        """Note how many messages a queue has after its node was killed, and delete it."""
        self.kept.append(100 * self._messages(name) // _MESSAGES)

    def _declare(self, connection, name):
        topology.declare(connection, name, {"x-queue-type": "quorum"})

    def _messages(self, name):
        ends, failure = time.monotonic() + _ANSWERS, None
        while time.monotonic() < ends:
            try:
                with self._broker.connected(patience=5) as connection:
                    channel = connection.channel()
                    found = channel.queue_declare(name, passive=True).message_count
                    channel.queue_delete(name)
                    return found
            except FAILURES as error:
                failure = error
                time.sleep(1)
        raise TimeoutError(f"The broker did not answer: {failure}")
