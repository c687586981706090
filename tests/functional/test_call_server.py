# SPDX-License-Identifier: Apache-2.0
"""The server of a request queue answers calls, each once, whatever happens to its connection."""



from placement_rpc.rpc import monitored_calls
from tests import base
from tests.functional import call_server_case


class CallsTest(call_server_case.CallServerTest):

    def test_calls_are_answered_and_acknowledged(self):
        for number in range(10):
            self.call(f"client {number}")
        base.wait_until(lambda: len(self.answers) == 10)
        self.assertEqual({f"client {number}" for number in range(10)},
                         {client for client, _ in self.answers})
        base.wait_until(lambda: not self.server.busy)
        self.assertEqual(10, max(self.connections[0].acknowledged))

    def test_a_client_that_monitors_its_call_hears_of_it(self):
        self.patch(monitored_calls, "_PERIOD", 0.01)
        go_on = self.hold()
        self.call("client", monitored=True)
        base.wait_until(lambda: len(self.answers) > 2)
        self.assertFalse(any(answer["ending"] for _, answer in self.answers))
        go_on.set()
        base.wait_until(lambda: self.answers[-1][1]["ending"])

    def test_one_client_does_not_hold_all_that_the_server_may_take(self):
        """The calls of other clients behind them could not even be seen."""
        go_on = self.hold()
        self.call("good")
        base.wait_until(lambda: self.server.busy)
        for _ in range(self.server.places):
            self.call("greedy")
            self.call("greedy", "list_providers")
        base.wait_until(lambda: not self.connections[0].delivered)
        self.assertLess(self.server.busy, 0.75 * self.server.places)
        self.assertTrue(all(client == "greedy" and answer["failure"]
                            for client, answer in self.answers))
        go_on.set()

    def test_what_was_begun_is_answered_when_it_stops(self):
        go_on = self.hold()
        for _ in range(12):
            self.call("client")
        base.wait_until(lambda: self.server.busy == 12)
        self.server.stop()
        base.wait_until(lambda: self.connections[0].is_cancelled)
        # It was on its way.
        self.call("late")
        base.wait_until(lambda: self.connections[0].requeued == [13])
        go_on.set()
        self.server.wait()
        self.assertEqual(["client"] * 12, [client for client, _ in self.answers])
        self.assertEqual(0, self.server.busy)

    def test_calls_of_a_connection_that_is_lost_are_forgotten(self):
        go_on = self.hold()
        for _ in range(12):
            self.call("client")
        base.wait_until(lambda: self.server.busy == 12)
        self.connections[0].shut()
        base.wait_until(lambda: len(self.connections) == 2 and self.connections[1].take)
        go_on.set()
        self.call("another")
        base.wait_until(lambda: self.answers)
        base.wait_until(lambda: not self.server.busy)
        self.assertEqual(["another"], [client for client, _ in self.answers])
