# SPDX-License-Identifier: Apache-2.0
"""When a client concludes that its calls do not reach their queue."""

from placement_rpc.rpc.routes import Routes
from tests import base


class RoutesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.routes = Routes(lambda: self.now)

    def lost_after(self, key="placement", most=1000):
        """Send a call every second; return after how many seconds its route counts as lost."""
        began = self.now
        while not self.routes.is_lost(key):
            self.assertLess(self.now - began, most)
            self.routes.sending(key)
            self.now += 1
        return self.now - began

    def test_after_some_seconds_without_an_answer(self):
        self.assertEqual(4, self.lost_after())

    def test_once_for_each_connection(self):
        self.lost_after()
        self.assertFalse(self.routes.is_lost("placement"))

    def test_an_answer_to_another_call_is_enough(self):
        for _ in range(10):
            self.routes.sending("placement")
            self.now += 1
            self.routes.answered("placement")
            self.assertFalse(self.routes.is_lost("placement"))

    def test_each_routing_key_by_itself(self):
        for _ in range(4):
            self.routes.sending("placement")
            self.routes.sending("placement_claims")
            self.now += 1
            self.routes.answered("placement")
        self.assertFalse(self.routes.is_lost("placement"))
        self.assertTrue(self.routes.is_lost("placement_claims"))

    def test_a_call_of_an_hour_ago_does_not_count(self):
        self.routes.sending("placement")
        self.now += 3600
        self.routes.sending("placement")
        self.now += 0.2
        self.assertFalse(self.routes.is_lost("placement"))

    def test_one_call_that_waits_long(self):
        self.routes.sending("placement")
        self.now += 10
        self.assertTrue(self.routes.is_lost("placement"))

    def test_a_new_connection_begins_again(self):
        self.routes.sending("placement")
        self.now += 10
        self.routes.opened()
        self.assertFalse(self.routes.is_lost("placement"))

    def test_without_a_service_it_takes_longer_each_time(self):
        """Many clients of a service that stands still are no storm of connections."""
        self.assertEqual([4, 8, 16, 32, 60, 60], [self.lost_after() for _ in range(6)])
        self.routes.answered("placement")
        self.assertEqual(4, self.lost_after())
