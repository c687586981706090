# SPDX-License-Identifier: Apache-2.0
"""Calls that are answered together, by a thread of a pool."""

import threading
from unittest import mock

from placement_rpc.rpc.batches import Batches
from placement_rpc.rpc.thread_pool import ThreadPool
from tests import base


class _Session:
    is_over = False


class NoThreadTest(base.TestCase):

    def test_what_waits_is_answered_once_there_is_a_thread(self):
        answered, done = [], threading.Event()

        def answer(_session, batch):
            answered.extend(call for _, call in batch)
            done.set()

        pool = ThreadPool(1, "batches")
        self.addCleanup(pool.shutdown)
        batches = Batches(10, answer, pool)
        session = _Session()
        batches.add(session, "message", "first", "client")
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no room")):
            for _ in range(2):
                self.assertRaises(RuntimeError, batches.work)
        self.assertEqual([], answered)
        batches.add(session, "message", "second", "client")
        batches.work()
        self.assertTrue(done.wait(30))
        self.assertEqual(["first", "second"], answered)
