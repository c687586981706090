# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a program is at something in which Python ignores exceptions."""

import signal
import sys
import threading

from placement_rpc.cmd import errors, interrupts
from tests import base


class _Ended:
    """An object that is ended when it happens."""

    def __init__(self, happens):
        self.happens = happens

    def __del__(self):
        self.happens()


class InterruptTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.ignored = []
        # A shell may have had it ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.patch(sys, "unraisablehook", lambda each: self.ignored.append(each.exc_type))

    def run_program(self, happens, seconds):
        """Return the exit code of a program that works for some seconds, None at their end."""
        @errors.one_line_errors("program")
        def main(_args):
            _Ended(happens)
            threading.Event().wait(seconds)

        hook = sys.unraisablehook
        try:
            return main()
        finally:
            self.assertIs(hook, sys.unraisablehook)

    def test_an_interrupt_in_a_destructor_ends_the_program(self):
        self.assertEqual(130, self.run_program(lambda: signal.raise_signal(signal.SIGINT), 60))
        self.assertEqual([], self.ignored)

    def test_a_program_that_ends_meanwhile_is_not_interrupted(self):
        timers = []

        class Timer:
            """Runs its function when it is told to."""

            def __init__(self, _seconds, function):
                self.function = function
                timers.append(self)

            def start(self):
                pass

        self.patch(interrupts.threading, "Timer", Timer)
        self.assertIsNone(self.run_program(lambda: signal.raise_signal(signal.SIGINT), 0))
        timer, = timers
        timer.function()

    def test_other_errors_in_a_destructor_are_reported_as_before(self):
        self.assertIsNone(self.run_program(lambda: 1 / 0, 0))
        self.assertEqual([ZeroDivisionError], self.ignored)
