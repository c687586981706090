# SPDX-License-Identifier: Apache-2.0
"""The progress that programs show, and what they say after an interrupt."""

import io

import fixtures

from placement_rpc.cmd import errors, moving_output, output
from tests import base


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


class ProgressTest(base.TestCase):

    def shown(self, stream, work):
        """Return what a work printed to standard error, a stream."""
        for name, value in (("COLUMNS", "120"), ("TERM", "xterm")):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        with fixtures.MonkeyPatch("sys.stderr", stream):
            work()
        return stream.getvalue()

    @staticmethod
    def counted():
        with output.progress("Reading rows", lambda: 50) as advance:
            for _ in range(5):
                advance(5, "rows")

    def test_a_terminal_has_a_bar_with_the_rate_and_the_time_left(self):
        text = self.shown(Terminal(), self.counted)
        self.assertIn("25/50", text)
        self.assertIn("/s", text)
        # The time left, or that it is not known yet.
        self.assertRegex(text, r"/s .*0:00:\d\d.*[-\d]:[-\d]{2}:[-\d]{2}")

    def test_a_size_may_become_known_later(self):
        def work():
            with output.progress("Comparing") as advance:
                advance(5, size=40)

        self.assertIn("5/40", self.shown(Terminal(), work))

    def test_a_pipe_has_nothing_and_nothing_is_counted_for_it(self):
        def work():
            with output.progress("Reading rows", self.fail) as advance:
                advance(1)

        self.assertEqual("", self.shown(io.StringIO(), work))


class InterruptTest(base.TestCase):

    def interrupted(self, work):
        """Run a program whose work is interrupted; return what it printed to standard error."""
        @errors.one_line_errors("program")
        def main(_args):
            work()

        stream = io.StringIO()
        with fixtures.MonkeyPatch("sys.stderr", stream):
            self.assertEqual(130, main([]))
        return stream.getvalue()

    def test_it_says_what_is_done_and_how_to_go_on(self):
        def work():
            done = 0
            with output.interruptible("program", lambda: f"{done} rows are done", "run it again"):
                done = 7
                raise KeyboardInterrupt

        self.assertEqual("program: interrupted: 7 rows are done; run it again\n",
                         self.interrupted(work))

    def test_what_moves_a_cloud_says_the_rows_of_each_kind(self):
        def work():
            with moving_output.progress(dict, "run the import again") as advance:
                advance("resource_providers", 3)
                advance("resource_providers", 4)
                raise KeyboardInterrupt

        self.assertIn("7 resource providers are read; run the import again",
                      self.interrupted(work))


class DebugTest(base.TestCase):

    def test_both_spellings_ask_for_the_traceback(self):
        for args, asked in ((["--debug"], True), (["-d"], True), (["--version"], False)):
            self.assertEqual(asked, errors.is_debug(args), args)
