# SPDX-License-Identifier: Apache-2.0
"""A connection and a consumer that read prepared frames."""

import functools
import struct
import threading
import types

import amqp
import testscenarios

from placement_rpc.amqp import connection, frames
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.amqp.outgoing import Outgoing
from placement_rpc.amqp.publisher import ConfirmedChannel
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
        for name in ("check", "shut"):
            test.patch(frames, name, functools.partial(self._record, name))
        test.patch(frames, "opened", lambda _: self)
        test.patch(frames, "has_come", lambda *_arguments: bool(self.events))
        test.patch(frames, "read_event", lambda _: self.events.pop(0)())

    def _record(self, name, library):
        # The heartbeats of the process also go to connections that earlier tests left, and fail on
        # what is replaced here.
        if library is self:
            self.done.append(name)

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
        self.consumer_connection = connection.Connection(self.library)
        self.consumer = Consumer(self.consumer_connection)
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
        self.assertEqual([], self.library.done)

    def test_the_broker_is_checked_when_all_is_read(self):
        self.receive(1, 2)
        self.assertEqual(["check"], self.library.done)

    def test_a_long_write_of_another_thread_delays_no_read(self):
        """The broker would seem to be silent for as long."""
        began, finish = threading.Event(), threading.Event()
        connection_ = self.consumer_connection

        def write():
            with connection_.writing():
                began.set()
                finish.wait(10)

        thread = threading.Thread(target=write)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(finish.set)
        self.assertTrue(began.wait(10))
        done = threading.Event()
        threading.Thread(
            target=lambda: (connection_.read(0), done.set()), daemon=True).start()
        self.assertTrue(done.wait(5))
        self.assertEqual(["check"], self.library.done)

    def test_a_message_that_cannot_be_sent_leaves_the_connection_to_others(self):
        """Such as one to a server whose name is too long."""
        self.channel.channel_id = 1
        self.channel.connection = types.SimpleNamespace(frame_max=1000)
        self.assertRaises(
            ValueError, self.consumer.send, Outgoing("{}", "placement", "x" * 256), 1)
        self.assertEqual([], self.library.done)

    def test_a_write_that_fails_ends_the_connection(self):
        first, = self.receive(1)

        def fail(*_arguments, **_how):
            raise AttributeError("'NoneType' object has no attribute 'frame_writer'")

        self.channel.basic_ack = fail
        self.assertRaises(amqp.RecoverableConnectionError, self.consumer.acknowledge, [first])
        self.assertIn("shut", self.library.done)


class AnswerTest(base.TestCase):
    """A method that waits for the broker's answer reads and writes on the connection."""

    def setUp(self):
        super().setUp()
        self.library = _Library(self)
        self.connection = connection.Connection(self.library)
        self.beats = []
        self.patch(frames, "has_room", lambda _: True)
        self.patch(frames, "beat", self.beats.append)

    def beat(self):
        """Send a heartbeat as the other thread does, and return how that ended."""
        ended = []

        def send():
            try:
                ended.append(self.connection.heartbeat())
            except TimeoutError as error:
                ended.append(type(error))

        thread = threading.Thread(target=send)
        thread.start()
        thread.join(10)
        return ended

    def test_no_heartbeat_is_sent_meanwhile(self):
        ended = []
        channel = self.library.channels[1]
        channel.close = channel.basic_get = channel.confirm_select = (
            lambda *_: ended.append(self.beat()))
        self.library.channel = lambda: ended.append(self.beat()) or channel
        with self.connection.asking():
            ended.append(self.beat())
        channel.events = {f"basic_{each}": set() for each in ("ack", "nack", "return")}
        ConfirmedChannel(self.connection)
        Consumer(self.connection).get("queue")
        self.assertEqual([[TimeoutError]] * 7, ended)
        self.assertEqual([], self.beats)
        self.assertEqual([None], self.beat())
        self.assertEqual([self.library], self.beats)

    def test_an_error_of_a_channel_leaves_the_connection_open(self):
        def ask():
            with self.connection.asking():
                raise amqp.NotFound("no queue")

        self.assertRaises(amqp.NotFound, ask)
        self.assertEqual([], self.library.done)

    def test_an_answer_that_does_not_come_ends_it(self):
        def ask():
            with self.connection.asking():
                raise TimeoutError("the broker did not answer")

        self.assertRaises(TimeoutError, ask)
        self.assertEqual(["shut"], self.library.done)


class _GreenTimeout(BaseException):
    """As those of eventlet and of gevent, which are no exceptions but base exceptions."""


class InterruptTest(testscenarios.WithScenarios, base.TestCase):
    """Whatever interrupts a write ends the connection: half a frame may have been sent."""

    scenarios = [(each.__name__, {"interrupt": each}) for each in (
        KeyboardInterrupt, SystemExit, GeneratorExit, _GreenTimeout)]

    def setUp(self):
        super().setUp()
        self.library = _Library(self)

    def assert_others_can_write(self, found):
        written = []

        def write():
            with found.writing(timeout=5):
                written.append(True)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
        self.assertEqual([True], written)

    def test_in_mid_frame(self):
        found = connection.Connection(self.library)

        def write():
            with found.writing():
                raise self.interrupt

        self.assertRaises(self.interrupt, write)
        self.assertEqual(["shut"], self.library.done)
        self.assert_others_can_write(found)

    def test_when_the_lock_has_just_been_taken(self):
        """The interpreter may handle a signal before the call of acquire returns its value."""
        interrupts = [self.interrupt]

        class Lock:
            def __init__(self):
                self._lock = threading.RLock()
                self.release = self._lock.release

            def acquire(self, timeout):
                taken = self._lock.acquire(timeout=timeout)
                if interrupts:
                    raise interrupts.pop()
                return taken

        self.patch(connection, "threading", types.SimpleNamespace(RLock=Lock))
        found = connection.Connection(self.library)
        self.assertRaises(self.interrupt, found.writing().__enter__)
        self.assert_others_can_write(found)

    def test_while_another_thread_writes(self):
        """A write that has not begun ends nothing."""
        found, began, finish = connection.Connection(self.library), *(
            threading.Event() for _ in range(2))

        def write():
            with found.writing():
                began.set()
                finish.wait(10)

        thread = threading.Thread(target=write)
        thread.start()
        self.assertTrue(began.wait(10))
        self.assertRaises(TimeoutError, found.writing(timeout=0.01).__enter__)
        self.assertEqual([], self.library.done)
        finish.set()
        thread.join(10)
        self.assert_others_can_write(found)


class _ClosedMeanwhile:
    """A transport that another thread closes as soon as its socket was asked for."""

    def __init__(self, socket_):
        self._socket, self.connected = socket_, True

    @property
    def sock(self):
        found, self._socket = self._socket, None
        return found

    def _quick_recv(self, _size):
        # What Python says of a TLS socket that was shut.
        raise ValueError("Read on closed or unwrapped SSL socket.")


class OtherThreadTest(base.TestCase):
    """One thread ends a connection that another one reads."""

    def test_it_is_closed_meanwhile(self):
        done = []
        transport = _ClosedMeanwhile(types.SimpleNamespace(shutdown=done.append))
        frames.shut(types.SimpleNamespace(
            _connection=types.SimpleNamespace(_transport=transport)))
        self.assertEqual(1, len(done))

    def test_a_read_of_a_tls_socket_that_was_shut_is_a_loss(self):
        library = types.SimpleNamespace(
            _transport=_ClosedMeanwhile(None), received=frames._Received(), frame_max=131072)
        self.patch(frames, "opened", lambda _: library)
        self.assertRaises(amqp.RecoverableConnectionError, frames.read_event, None)
        self.assertFalse(library._transport.connected)


class _Peer:
    """A transport on which frames come in given pieces; then the broker closes it."""

    def __init__(self, pieces):
        self.pieces, self.connected, self.sock = list(pieces), True, None

    def _quick_recv(self, size):
        piece = self.pieces.pop(0) if self.pieces else b""
        if len(piece) > size:
            self.pieces.insert(0, piece[size:])
        return piece[:size]


class ReceivedTest(base.TestCase):
    """Frames are the same however the network divides them."""

    frames = [(1, 1, b"method"), (2, 1, b""), (3, 1, b"x" * 5000), (1, 2, b"other")]

    def setUp(self):
        super().setUp()
        self.bytes = b"".join(
            struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"
            for kind, channel, payload in self.frames)

    def read(self, pieces, number=4):
        """Return frames, and the connection."""
        found = []
        library = types.SimpleNamespace(
            _transport=_Peer(pieces), received=frames._Received(), frame_max=131072,
            on_inbound_frame=lambda frame: found.append(frame) or True)
        self.patch(frames, "opened", lambda _: library)
        for _ in range(number):
            frames.read_event(None)
        return found, library

    def test_in_one_piece(self):
        found, library = self.read([self.bytes])
        self.assertEqual(self.frames, found)
        self.assertFalse(library.received)

    def test_byte_by_byte(self):
        found, _ = self.read(bytes([each]) for each in self.bytes)
        self.assertEqual(self.frames, found)

    def test_in_two_pieces(self):
        for place in range(1, len(self.bytes), 7):
            found, _ = self.read([self.bytes[:place], self.bytes[place:]])
            self.assertEqual(self.frames, found)

    def test_what_has_come_is_not_waited_for(self):
        _, library = self.read([self.bytes], number=1)
        # Without a look at the socket, which has none of it.
        self.assertTrue(frames.has_come(None))
        self.assertEqual([], library._transport.pieces)

    def test_a_connection_that_is_closed_in_a_frame(self):
        self.assertRaises(OSError, self.read, [self.bytes[:-3]])
        self.assertFalse(frames.opened(None)._transport.connected)

    def test_a_frame_that_does_not_end_as_one(self):
        self.assertRaises(amqp.UnexpectedFrame, self.read, [self.bytes[:-1] + b"x"])
        self.assertFalse(frames.opened(None)._transport.connected)

    def test_a_frame_that_is_larger_than_agreed_upon_is_not_waited_for(self):
        begins = struct.pack(">BHI", 3, 1, 131073)
        self.assertRaises(amqp.UnexpectedFrame, self.read, [begins, b"never read"])
        self.assertFalse(frames.opened(None)._transport.connected)
        self.assertEqual([b"never read"], frames.opened(None)._transport.pieces)
