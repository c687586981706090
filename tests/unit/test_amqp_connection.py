# SPDX-License-Identifier: Apache-2.0
"""A connection and a consumer that read prepared frames."""

import types

import amqp

from placement_rpc.amqp import connection, frames
from placement_rpc.amqp.consumer import Consumer
from tests import base


class _Channel:
    """Records what is written on it."""

    def __init__(self):
        self.written = []
        self.callback = None

    def basic_qos(self, *arguments):
        self.written.append(("qos", *arguments))

    def basic_consume(self, queue, no_ack, arguments, callback):
        self.callback = callback
        return "tag"

    def basic_ack(self, tag, multiple=False):
        self.written.append(("ack", tag, multiple))

    def basic_reject(self, tag, requeue):
        self.written.append(("reject", tag, requeue))


class _Library:
    """Stands in for kombu's and py-amqp's connection, and records the calls on it."""

    def __init__(self, test):
        self.channels = {1: _Channel()}
        self.events, self.done = [], []
        for name in ("check", "beat", "shut"):
            test.patch(frames, name, lambda _, name=name: self.done.append(name))
        test.patch(frames, "opened", lambda _: self)
        test.patch(frames, "has_come", lambda *_arguments: bool(self.events))
        test.patch(frames, "read_event", lambda _: self.events.pop(0)())

    def channel(self):
        return self.channels[1]

    def deliver(self, *tags):
        for tag in tags:
            message = types.SimpleNamespace(delivery_tag=tag)
            self.events.append(lambda message=message: self.channels[1].callback(message))


class ConsumerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.library = _Library(self)
        self.consumer = Consumer(connection.Connection(self.library))
        self.consumer.consume("queue", 10)
        self.channel = self.library.channels[1]
        self.channel.written.clear()

    def receive(self, *tags, most=10):
        self.library.deliver(*tags)
        return self.consumer.receive(0, most)

    def test_messages_before_which_none_is_held_are_acknowledged_by_one_frame(self):
        first, second, third, fourth = self.receive(1, 2, 3, 4)
        self.assertEqual(4, self.consumer.held)
        self.consumer.acknowledge([first, second])
        self.assertEqual([("ack", 2, True)], self.channel.written)
        self.consumer.acknowledge([fourth])
        self.consumer.acknowledge([third])
        self.assertEqual([("ack", 4, False), ("ack", 3, True)], self.channel.written[1:])
        self.assertEqual(0, self.consumer.held)

    def test_messages_among_which_one_is_held_are_acknowledged_one_by_one(self):
        first, _, third = self.receive(1, 2, 3)
        self.consumer.acknowledge([first, third])
        self.assertEqual([("ack", 1, False), ("ack", 3, False)], self.channel.written)

    def test_a_message_that_is_requeued_is_not_held(self):
        first, second = self.receive(1, 2)
        self.consumer.requeue(first)
        self.consumer.acknowledge([second])
        self.assertEqual([("reject", 1, True), ("ack", 2, True)], self.channel.written)

    def test_no_more_are_received_than_are_wanted(self):
        self.assertEqual([1, 2], [each.delivery_tag for each in self.receive(1, 2, 3, most=2)])
        self.assertEqual([3], [each.delivery_tag for each in self.receive()])

    def test_the_broker_is_doubted_only_when_all_is_read(self):
        """Its heartbeats may be behind messages that are not wanted yet."""
        self.receive(1, 2, most=1)
        self.assertEqual(["beat"], self.library.done)

    def test_the_broker_is_checked_when_all_is_read(self):
        self.receive(1, 2)
        self.assertEqual(["check"], self.library.done)

    def test_a_write_that_fails_ends_the_connection(self):
        first, = self.receive(1)

        def fail(*_arguments, **_how):
            raise AttributeError("'NoneType' object has no attribute 'frame_writer'")

        self.channel.basic_ack = fail
        self.assertRaises(amqp.RecoverableConnectionError, self.consumer.acknowledge, [first])
        self.assertIn("shut", self.library.done)
