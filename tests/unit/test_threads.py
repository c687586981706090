# SPDX-License-Identifier: Apache-2.0
"""The system has no room for another thread for a while: that costs what needs it, and no more."""

import _thread
import contextlib
import threading
import types
from unittest import mock

from placement_rpc import exception
from placement_rpc.amqp import heartbeats
from placement_rpc.http.follower import Follower
from placement_rpc.rpc.daemon_pool import DaemonPool
from placement_rpc.rpc.thread_pool import thread_pool
from placement_rpc.rpc.turns import Turns
from tests import base


class _Connection:

    def __init__(self):
        self.beaten = threading.Event()

    def heartbeat(self):
        self.beaten.set()


class NoRoomTest(base.TestCase):

    @contextlib.contextmanager
    def no_room(self):
        refuse = RuntimeError("can't start new thread")
        with (mock.patch.object(threading.Thread, "start", side_effect=refuse),
              mock.patch.object(_thread, "start_new_thread", side_effect=refuse)):
            yield

    def test_a_pool_needs_no_room_later(self):
        pool = thread_pool(3, "pool")
        self.addCleanup(pool.shutdown)
        barrier = threading.Barrier(4)
        with self.no_room():
            for _ in range(3):
                pool.submit(barrier.wait, 30)
            barrier.wait(30)

    def test_a_pool_has_all_its_threads_or_is_not_made(self):
        start, started = threading.Thread.start, []

        def start_one(thread):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(thread)
            start(thread)

        with mock.patch.object(threading.Thread, "start", start_one):
            self.assertRaises(RuntimeError, thread_pool, 3, "pool")
        started[0].join(30)
        self.assertFalse(started[0].is_alive())

    def test_turns_need_no_room(self):
        turns, done = Turns(1, "turns"), threading.Event()
        self.addCleanup(turns.shutdown, True)
        with self.no_room():
            turns.submit("one", done.set)
        self.assertTrue(done.wait(30))

    def test_a_call_without_a_thread_is_refused_and_takes_no_place(self):
        threads = DaemonPool(1)
        self.addCleanup(threads.close)
        with self.no_room():
            for _ in range(2):
                refused = self.assertRaises(
                    exception.ServiceUnavailable, threads.run, self.fail, 5)
                self.assertIn("can't start new thread", refused.text)
        self.assertEqual(5, threads.run(lambda: 5, 5))

    def test_heartbeats_are_sent_once_there_is_room(self):
        self.patch(heartbeats, "_PERIOD", 0.01)
        self.patch(heartbeats, "_heart", heartbeats._Heart())
        connection = _Connection()
        with self.no_room():
            self.assertRaises(RuntimeError, heartbeats.send_on, connection)
        heartbeats.send_on(connection)
        self.assertTrue(connection.beaten.wait(30))

    def test_events_are_polled_once_there_is_room(self):
        follower = Follower(mock.Mock(get_event_positions=lambda *_, **_kw: types.SimpleNamespace(
            last=5)), 1, 100)
        self.addCleanup(follower.close)
        with self.no_room():
            self.assertFalse(follower.wait(4, 0.01))
        self.assertTrue(follower.wait(4, 30))
