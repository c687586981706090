# SPDX-License-Identifier: Apache-2.0
"""Checks of what a process lacks, of which many requests want the result."""

import threading
import time
import types

from placement_rpc import exception
from placement_rpc.http import health
from tests import base


class ProbeTest(base.TestCase):

    def ask_all(self, probe, count):
        """Ask from several threads at once; return the answers."""
        found = []
        threads = [threading.Thread(target=lambda: found.append(probe.reasons()))
                   for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def test_many_requests_are_one_check(self):
        checks = []
        probe = health.Probe(lambda: checks.append(1))
        self.assertEqual([[]] * 20, self.ask_all(probe, 20))
        self.assertEqual(1, len(checks))

    def test_what_is_missing_is_said(self):
        def check():
            raise exception.StoreUnavailable(reason="OperationalError")

        found, = health.Probe(check).reasons()
        self.assertIn("OperationalError", found)

    def test_an_error_that_was_not_expected_is_logged_and_not_shown(self):
        found, = health.Probe(lambda: {}["secret"]).reasons()
        self.assertNotIn("secret", found)
        self.assertIn("secret", self.log.output)

    def test_a_thread_that_cannot_be_started_is_started_again(self):
        threads = [None, threading.Thread]

        def start(**how):
            made = threads.pop(0)
            if made is None:
                raise RuntimeError("can't start new thread")
            return made(**how)

        probe = health.Probe(lambda: None)
        self.patch(health, "threading", types.SimpleNamespace(
            Thread=start, Condition=threading.Condition))
        self.assertRaises(RuntimeError, probe.reasons)
        self.assertEqual([], probe.reasons())

    def test_a_check_that_hangs_is_not_waited_for_nor_made_twice(self):
        goes_on, checks = threading.Event(), []
        self.addCleanup(goes_on.set)

        def check():
            checks.append(1)
            goes_on.wait()

        probe = health.Probe(check)
        began = time.monotonic()
        for found in self.ask_all(probe, 10) + [probe.reasons() for _ in range(10)]:
            self.assertIn("has not ended", found[0])
        self.assertLess(time.monotonic() - began, 2 * health.PATIENCE)
        self.assertEqual(1, len(checks))
        goes_on.set()
        base.wait_until(lambda: probe.reasons() == [])
