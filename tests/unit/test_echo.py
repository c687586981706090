# SPDX-License-Identifier: Apache-2.0
"""A client's check of its connection, with a simulated clock."""

import types

from placement_rpc.rpc import echo
from tests import base


class EchoTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.now, self.sent, self.is_writing = 100.0, [], False
        self.patch(echo, "time", types.SimpleNamespace(monotonic=lambda: self.now))
        self.echo = echo.Echo(self, "reply_1")

    def send(self, message, timeout):
        if self.is_writing:
            raise TimeoutError("another thread writes")
        self.sent.append((message.correlation_id, message.exchange, message.routing_key))

    def pass_time(self, seconds, is_waiting=True):
        for _ in range(seconds):
            self.now += 1
            self.echo.check(is_waiting)

    def test_nothing_is_sent_while_no_answer_is_expected(self):
        self.pass_time(100, is_waiting=False)
        self.assertEqual([], self.sent)

    def test_nothing_is_sent_while_messages_come(self):
        for _ in range(100):
            self.pass_time(1)
            self.echo.heard()
        self.assertEqual([], self.sent)

    def test_it_is_sent_once_and_again_when_it_has_returned(self):
        self.pass_time(6)
        self.assertEqual([("echo", "", "reply_1")], self.sent)
        self.echo.heard()
        self.pass_time(6)
        self.assertEqual(2, len(self.sent))

    def test_it_waits_for_a_long_call_of_another_thread(self):
        self.is_writing = True
        self.pass_time(60)
        self.is_writing = False
        self.pass_time(1)
        self.assertEqual(1, len(self.sent))

    def test_what_came_while_the_process_was_suspended_is_read_first(self):
        """Or while the thread that reads was busy: the echo may be among it."""
        self.pass_time(4)
        self.assertEqual(1, len(self.sent))
        self.now += 600
        self.echo.check(True)
        self.pass_time(2)
        self.assertRaises(TimeoutError, self.pass_time, 6)

    def test_one_that_does_not_return_ends_the_connection(self):
        error = self.assertRaises(TimeoutError, self.pass_time, 20)
        self.assertIn("did not return a message within 5 s", str(error))
        self.assertLess(self.now, 110)
