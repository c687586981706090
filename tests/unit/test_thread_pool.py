# SPDX-License-Identifier: Apache-2.0
"""Threads that run functions: which of them, how many, and when they end."""

import gc
import threading
import weakref
from unittest import mock

from placement_rpc.rpc.thread_pool import ThreadPool
from tests import base


class _Value:
    """Something that a function is called with."""


class ThreadPoolTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.pool = ThreadPool(3, "pool")
        self.addCleanup(self.pool.shutdown)
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)
        self.ran = []
        self.done = threading.Semaphore(0)

    def run_in_it(self, name, done=None):
        done = done or self.done
        self.pool.submit(self.note, name, done)
        self.assertTrue(done.acquire(timeout=30))

    def note(self, name, done):
        self.ran.append((name, threading.current_thread().name))
        done.release()

    def block(self):
        self.done.release()
        self.go_on.wait(30)
        self.done.release()

    def block_all(self, number=3):
        for _ in range(number):
            self.pool.submit(self.block)
            self.assertTrue(self.done.acquire(timeout=30))

    def test_a_function_runs_in_the_idle_thread_that_worked_last(self):
        self.block_all(2)
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
        self.block_all()
        for name in ("a", "b"):
            self.pool.submit(self.note, name, self.done)
        self.assertFalse(self.done.acquire(timeout=0.1))
        self.go_on.set()
        for _ in range(5):
            self.assertTrue(self.done.acquire(timeout=30))
        self.assertEqual({"a", "b"}, {name for name, _ in self.ran})

    def test_who_waits_for_its_thread_finds_that_idle(self):
        for _ in range(200):
            self.pool.submit(int, then=self.done.release)
            self.assertTrue(self.done.acquire(timeout=30))
            self.assertEqual(1, self.pool.idle)
        self.assertEqual(1, self.pool.threads)

    def test_a_failure_is_logged_and_ends_no_thread(self):
        for error in (ValueError("one"), SystemExit("other")):
            for _ in range(3):
                self.pool.submit(mock.Mock(side_effect=error))
        self.run_in_it("a")
        self.assertIn("ValueError: one", self.log.output)
        self.assertIn("SystemExit: other", self.log.output)

    def test_what_waits_is_run_before_the_threads_end(self):
        self.block_all()
        for name in ("a", "b", "c"):
            self.pool.submit(self.note, name, self.done)
        self.pool.shutdown(wait=False)
        self.go_on.set()
        self.pool.shutdown(wait=True)
        self.assertEqual({"a", "b", "c"}, {name for name, _ in self.ran})
        self.assertEqual([], [each for each in threading.enumerate() if "pool_" in each.name])

    def test_it_runs_nothing_after_its_end(self):
        self.run_in_it("a")
        self.pool.shutdown()
        self.assertRaises(RuntimeError, self.pool.submit, self.fail)

    def test_a_program_ends_without_it(self):
        self.run_in_it("a")
        self.assertTrue(all(each.daemon for each in threading.enumerate()
                            if each.name.startswith("pool_")))

    def test_many_submit_while_threads_become_idle(self):
        def submit():
            done = threading.Semaphore(0)
            for number in range(1000):
                self.run_in_it(number, done)

        many = [threading.Thread(target=submit) for _ in range(4)]
        for each in many:
            each.start()
        for each in many:
            each.join(60)
        self.assertEqual(4000, len(self.ran))
        self.assertLessEqual(len({name for _, name in self.ran}), 3)

    def test_nothing_is_kept_of_what_was_run(self):
        values = []
        for number in range(3):
            value = _Value()
            values.append(weakref.ref(value))
            self.pool.submit(lambda kept: self.block(), value)
            self.assertTrue(self.done.acquire(timeout=30))
            # The others come to threads that are there: one waits, and one wakes an idle thread.
            if number == 1:
                self.go_on.set()
                base.wait_until(lambda: self.pool.idle == 2)
        del value
        base.wait_until(lambda: self.pool.idle == self.pool.threads)
        gc.collect()
        self.assertEqual([None] * 3, [each() for each in values])

    def test_without_room_for_a_thread_the_others_do_its_work(self):
        self.block_all(1)
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no room")):
            self.pool.submit(self.note, "a", self.done)
        self.assertIn("no room", self.log.output)
        self.go_on.set()
        for _ in range(2):
            self.assertTrue(self.done.acquire(timeout=30))
        self.assertEqual([("a", "pool_0")], self.ran)
        self.block_all(3)

    def test_without_room_for_the_first_thread_nothing_is_run(self):
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no room")):
            self.assertRaises(RuntimeError, self.pool.submit, self.fail)
        self.run_in_it("a")
        self.assertEqual([("a", "pool_0")], self.ran)
