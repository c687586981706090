# SPDX-License-Identifier: Apache-2.0
"""A server reports on calls to the clients that monitor them."""

import json
import threading

from placement_rpc.rpc import envelope, monitored_calls
from tests import base


class MonitoredCallsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.patch(monitored_calls, "_PERIOD", 0.01)
        self.calls, self.reports = monitored_calls.MonitoredCalls(), []

    def call(self, client, monitored=True):
        found = envelope.Call("ping", "1.0", {}, {})
        found.message_id, found.reply_to, found.monitored = "an id", client, monitored
        self.calls.add(found)
        return found

    def clients(self):
        return [client for client, _ in self.reports]

    def answer(self, client, body):
        self.reports.append((client, body))

    def test_it_reports_until_the_answer(self):
        self.call("quiet", monitored=False)
        first, _ = self.call("first"), self.call("second")
        with self.calls.reported(self.answer):
            base.wait_until(lambda: self.clients().count("second") > 2)
            self.calls.remove(first)
            # One report may be under way.
            base.wait_until(lambda: self.clients()[-3:] == ["second"] * 3)
        self.assertNotIn("quiet", self.clients())
        self.assertFalse(json.loads(json.loads(self.reports[0][1])["oslo.message"])["ending"])

    def test_it_ends_with_the_connection_and_begins_with_another(self):
        self.call("client")
        ended = threading.Event()

        def lose(_client, _body):
            ended.set()
            raise ConnectionResetError(104, "reset")

        with self.calls.reported(lose):
            self.assertTrue(ended.wait(10))
        with self.calls.reported(self.answer):
            base.wait_until(lambda: self.reports)

    def test_a_call_that_cannot_be_reported_on_delays_no_other(self):
        self.call("bad")
        self.call("good")

        def answer(client, body):
            if client == "bad":
                raise ValueError("a body that cannot be made")
            self.answer(client, body)

        with self.calls.reported(answer):
            base.wait_until(lambda: len(self.reports) > 2)
        self.assertIn("ValueError", self.log.output)
