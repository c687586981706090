# SPDX-License-Identifier: Apache-2.0
"""When a client concludes that its calls do not reach their queue."""

from placement_rpc.rpc.routes import Routes
from tests import base


class RoutesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.routes = Routes(lambda: self.now)

    def call(self, seconds, key="placement"):
        """Make a call that waits in vain."""
        self.routes.sending(key)
        self.now += seconds
        self.routes.stopped(key)

    def is_lost(self):
        try:
            self.routes.check()
        except TimeoutError:
            return True
        return False

    def waits(self):
        """Return for how many seconds calls wait in vain before the connection is replaced."""
        began = self.now
        while not self.is_lost():
            self.assertLess(self.now - began, 1000)
            self.call(1)
        self.routes.opened()
        return self.now - began

    def test_after_some_seconds_without_an_answer(self):
        self.call(3)
        self.assertFalse(self.is_lost())
        self.call(1)
        self.assertTrue(self.is_lost())

    def test_one_call_that_waits_long(self):
        self.routes.sending("placement")
        self.now += 9
        # It may take as long as that.
        self.assertFalse(self.is_lost())
        self.now += 1
        self.routes.stopped("placement")
        self.assertTrue(self.is_lost())

    def test_time_without_calls_does_not_count(self):
        for _ in range(3):
            self.call(1)
            self.now += 3600
            self.assertFalse(self.is_lost())
        self.call(1)
        self.assertTrue(self.is_lost())

    def test_an_answer_to_another_call_is_enough(self):
        for _ in range(10):
            self.call(3)
            self.routes.answered("placement")
            self.assertFalse(self.is_lost())

    def test_calls_that_wait_at_the_same_time_count_once(self):
        for _ in range(64):
            self.routes.sending("placement")
        self.now += 1
        for _ in range(64):
            self.routes.stopped("placement")
        self.assertFalse(self.is_lost())

    def test_each_routing_key_by_itself(self):
        for _ in range(4):
            self.call(1, "placement")
            self.call(1, "placement_claims")
            self.routes.answered("placement")
        self.assertTrue(self.is_lost())
        self.routes.answered("placement_claims")
        self.assertFalse(self.is_lost())

    def test_a_new_connection_begins_again(self):
        self.call(10)
        self.routes.opened()
        self.assertFalse(self.is_lost())

    def test_what_waited_for_the_last_connection_does_not_count(self):
        self.routes.sending("placement")
        self.now += 10
        self.routes.opened()
        self.routes.stopped("placement")
        self.assertFalse(self.is_lost())

    def test_without_a_service_it_takes_longer_each_time(self):
        """Many clients of a service that stands still are no storm of connections."""
        self.assertEqual([4, 8, 16, 32, 60, 60], [self.waits() for _ in range(6)])
        self.routes.answered("placement")
        self.assertEqual(4, self.waits())
