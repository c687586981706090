# SPDX-License-Identifier: Apache-2.0
"""Peers that do not speak AMQP as a broker does, against everything that connects to one."""

import resource
import threading
import time

import amqp

from placement_rpc import exception
from placement_rpc.amqp import contents
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.conf import service as configuration
from placement_rpc.notifications import listener
from placement_rpc.rpc import envelope
from placement_rpc.rpc.reply_connection import ReplyConnection
from tests import base, hostile

SEED = 13
_CASES = 60


class HostileBrokerTest(base.TestCase):

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.hostile = self.useFixture(hostile.HostileBroker(SEED))
        self.broker = Broker.at(self.hostile.url)

    def test_each_ends_with_an_error_of_the_connection(self):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for stage in hostile.STAGES:
            self.hostile.stage = stage
            for _ in range(_CASES):
                self.read(stage)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 100 * 1024, "KiB")

    def read(self, stage):
        """Consume until the connection ends, which must not take long."""
        began, connection = time.monotonic(), None
        try:
            connection = self.broker.connect(patience=2)
            consumer = Consumer(connection)
            consumer.consume("queue")
            while time.monotonic() < began + 10:
                consumer.receive(1)
        except FAILURES:
            self.assertLess(time.monotonic(), began + 10)
        except Exception as error:
            raise AssertionError(f"{stage}: {self.hostile.sent[-1]}") from error
        else:
            self.fail(f"{stage}: {self.hostile.sent[-1]} is waited for")
        finally:
            if connection is not None:
                connection.drop()

    def test_a_message_that_is_too_large_is_not_kept(self):
        size = 3 * contents.EXCERPT
        self.hostile.stage, self.hostile.holds = "deliver", True
        self.patch(hostile, "broken", lambda _: hostile.delivery(b"x" * size, tag=7))
        connection = self.broker.connect(largest_body=1000)
        self.addCleanup(connection.drop)
        consumer = Consumer(connection)
        consumer.consume("queue")
        message, = consumer.receive(5)
        self.assertIn("larger than 1000", message.unreadable)
        self.assertEqual((size, 2 * contents.EXCERPT, 7),
                         (message.body_size, len(message.body), message.delivery_tag))

    def test_a_routing_key_that_is_no_text_is_no_error(self):
        self.hostile.stage, self.hostile.holds = "deliver", True
        self.patch(hostile, "broken", lambda _: hostile.delivery(routing_key=b"\xff" * 255))
        connection = self.broker.connect()
        self.addCleanup(connection.drop)
        consumer = Consumer(connection)
        consumer.consume("queue")
        message, = consumer.receive(5)
        self.assertEqual((None, b"{}"), (message.unreadable, message.body))

    def test_a_listener_and_a_client_go_on(self):
        conf = configuration.new_config(config_files=[], transport_url=self.hostile.url)
        running = listener.QueueListener(conf, "queue", print, broker=self.hostile.url)
        thread = threading.Thread(target=running.run)
        thread.start()
        client = ReplyConnection(conf, self.broker, "placement")
        self.addCleanup(client.close)
        call = envelope.Call("ping", "1.0", {}, {})
        self.assertRaises(
            (exception.ServiceUnavailable, TimeoutError), client.ask, "topic", call, 5)
        self.assertGreater(len(self.hostile.sent), 4)
        self.assertTrue(thread.is_alive())
        running.stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())


class HungNodeTest(base.TestCase):
    """Nodes that accept connections and then say nothing more."""

    def setUp(self):
        super().setUp()
        self.nodes = [self.useFixture(hostile.HostileBroker(SEED)) for _ in range(2)]
        self.patch(hostile, "broken", lambda _: b"")
        for node in self.nodes:
            node.holds = True
        first, second = (node.url.removeprefix("rabbit://").rstrip("/") for node in self.nodes)
        self.url = f"rabbit://{first},{second}/?heartbeat_timeout_threshold=1"

    def used(self):
        """Return how many connections each node was asked for, in order."""
        return sorted(len(node.sent) for node in self.nodes)

    def test_one_that_falls_silent_is_left_for_the_other(self):
        for node in self.nodes:
            node.stage = "deliver"
        broker = Broker.at(self.url)
        for used in ([0, 1], [1, 1]):
            connection = broker.connect()
            self.addCleanup(connection.drop)
            consumer = Consumer(connection)
            consumer.consume("queue")
            began = time.monotonic()

            def read(consumer=consumer):
                while True:
                    consumer.receive(1)

            self.assertRaises(FAILURES, read)
            self.assertLess(time.monotonic() - began, 10)
            connection.drop()
            self.assertEqual(used, self.used())

    def test_one_is_left_for_errors_of_the_connection_only(self):
        for node in self.nodes:
            node.stage = "deliver"
        broker = Broker.at(self.url)
        first, other = broker._order.now()

        def fail(error):
            with broker.connected():
                raise error

        self.assertRaises(KeyError, fail, KeyError())
        self.assertRaises(amqp.NotFound, fail, amqp.NotFound())
        self.assertEqual([first, other], broker._order.now())
        self.assertRaises(OSError, fail, OSError())
        self.assertEqual([other, first], broker._order.now())

    def test_one_that_does_not_answer_a_connection_is_passed_over(self):
        self.nodes[0].stage, self.nodes[1].stage = "start", "deliver"
        for _ in range(4):
            began = time.monotonic()
            broker = Broker.at(self.url)
            broker.connect().drop()
            self.assertLess(time.monotonic() - began, 8)
