# SPDX-License-Identifier: Apache-2.0
"""The thread that sends the heartbeats of all connections, and what ends a connection."""

import gc
import time
import types

from amqp import exceptions as amqp_exceptions

from placement_rpc.amqp import frames, heartbeats
from tests import base


class _Connection:

    def __init__(self, error=None):
        self.beats, self._error = 0, error

    def heartbeat(self):
        self.beats += 1
        if self._error:
            raise self._error


class HeartbeatsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.patch(heartbeats, "_PERIOD", 0.01)

    def test_a_connection_that_is_lost_does_not_stop_those_of_others(self):
        connections = [_Connection(error) for error in (
            None, ConnectionResetError(104, "reset"), TimeoutError("another thread writes"),
            TypeError("a socket is None"), None)]
        for each in connections:
            heartbeats.send_on(each)
        base.wait_until(lambda: min(each.beats for each in connections) > 3)

    def test_a_connection_that_is_not_used_any_more_is_forgotten(self):
        forgotten = []

        class Connection(_Connection):
            def __del__(self):
                forgotten.append(True)

        heartbeats.send_on(Connection())

        def is_forgotten():
            gc.collect()
            return forgotten

        base.wait_until(is_forgotten)


class _Silent(frames.KombuConnection.get_transport_cls(None).Connection):
    """A connection on which heartbeats come and no answers."""

    def blocking_read(self, timeout=None):
        self.bytes_recv += 1
        time.sleep(0.01)
        return False


class HungNodeTest(base.TestCase):

    def test_an_answer_that_does_not_come_is_not_waited_for(self):
        self.patch(frames, "_ANSWER_TIMEOUT", 0.1)
        error = self.assertRaises(TimeoutError, _Silent("nowhere").drain_events)
        self.assertIsInstance(error, frames.FAILURES)

    def test_a_node_that_sends_no_heartbeats_is_left(self):
        connection = _Silent("nowhere", heartbeat=0.2)
        connection.heartbeat = 0.2
        connection.check_silence()
        time.sleep(0.35)
        # Something has come meanwhile.
        connection.bytes_recv += 1
        connection.check_silence()
        time.sleep(0.35)
        self.assertRaises(amqp_exceptions.ConnectionForced, connection.check_silence)


class _Transport:
    """A transport that another thread closes as soon as its socket was looked at."""

    connected = True

    def __init__(self):
        self._sockets = [object()]

    @property
    def sock(self):
        return self._sockets.pop() if self._sockets else None


class ClosingTest(base.TestCase):

    def test_a_socket_that_is_closed_just_now(self):
        library = types.SimpleNamespace(
            _connection=types.SimpleNamespace(_transport=_Transport()))
        self.assertRaises(frames.FAILURES, frames.has_room, library)
