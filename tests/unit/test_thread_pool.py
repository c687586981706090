# SPDX-License-Identifier: Apache-2.0
"""Threads that run functions: which of them, how many, and when they end."""

import threading

from placement_rpc import exception
from placement_rpc.rpc.thread_pool import ThreadPool
from tests import base


class ThreadPoolTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.pool = ThreadPool(3, "pool")
        self.addCleanup(self.pool.shutdown)
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)
        self.ran = []
        self.done = threading.Semaphore(0)

    def run_in_it(self, *names):
        for name in names:
            self.pool.submit(self.note, name)
        for _ in names:
            self.assertTrue(self.done.acquire(timeout=30))

    def note(self, name):
        self.ran.append((name, threading.current_thread().name))
        self.done.release()

    def block(self):
        self.done.release()
        self.go_on.wait(30)
        self.done.release()

    def test_a_function_runs_in_the_idle_thread_that_was_busy_last(self):
        for _ in range(2):
            self.pool.submit(self.block)
            self.assertTrue(self.done.acquire(timeout=30))
        self.run_in_it("a")
        base.wait_until(lambda: self.pool.idle == 1)
        self.go_on.set()
        base.wait_until(lambda: self.pool.idle == 3)
        for _ in range(2):
            self.assertTrue(self.done.acquire(timeout=30))
        for _ in range(10):
            self.run_in_it("b")
            base.wait_until(lambda: self.pool.idle == 3)
        self.assertEqual(("a", "pool_2"), self.ran[0])
        self.assertEqual(1, len(set(self.ran[1:])))
        self.assertNotIn(("b", "pool_2"), self.ran)

    def test_no_more_than_its_threads_run_at_a_time_and_others_wait(self):
        for _ in range(3):
            self.pool.submit(self.block)
        for _ in range(3):
            self.assertTrue(self.done.acquire(timeout=30))
        for name in ("a", "b"):
            self.pool.submit(self.note, name)
        self.assertFalse(self.done.acquire(timeout=0.1))
        self.go_on.set()
        for _ in range(5):
            self.assertTrue(self.done.acquire(timeout=30))
        self.assertEqual({"a", "b"}, {name for name, _ in self.ran})

    def test_a_failure_is_logged_and_ends_no_thread(self):
        for _ in range(5):
            self.pool.submit(int, "x")
        self.run_in_it("a")
        self.assertIn("ValueError", self.log.output)

    def test_what_waits_is_run_before_the_threads_end(self):
        for _ in range(3):
            self.pool.submit(self.block)
        for name in ("a", "b", "c"):
            self.pool.submit(self.note, name)
        self.pool.shutdown(wait=False)
        self.go_on.set()
        self.pool.shutdown(wait=True)
        self.assertEqual({"a", "b", "c"}, {name for name, _ in self.ran})
        self.assertEqual([], [each for each in threading.enumerate() if "pool_" in each.name])

    def test_it_runs_nothing_after_its_end(self):
        self.run_in_it("a")
        self.pool.shutdown()
        self.assertRaises(exception.ServiceUnavailable, self.pool.submit, self.fail)

    def test_many_submit_at_a_time(self):
        many = [threading.Thread(target=self.run_in_it, args=range(500)) for _ in range(4)]
        for each in many:
            each.start()
        for each in many:
            each.join(60)
        self.assertEqual(2000, len(self.ran))
        self.assertLessEqual(len({name for _, name in self.ran}), 3)
