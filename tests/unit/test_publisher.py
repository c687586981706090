# SPDX-License-Identifier: Apache-2.0
"""The connection of a publisher, with a simulated broker."""

from placement_rpc.amqp import publisher
from placement_rpc.backoff import Backoff
from tests import base


class _Channel:
    """Stands in for a channel with confirms; fails if its connection is lost."""

    def __init__(self, connection):
        self._connection = connection

    def keep_alive(self):
        if self._connection.lost:
            raise ConnectionResetError(104, "reset")


class _Broker:
    """Makes connections, unless it is away; counts the attempts."""

    def __init__(self):
        self.away, self.attempts, self.lost = False, 0, False

    @staticmethod
    def backoff():
        return Backoff(first=60, longest=60)

    def connect(self):
        self.attempts += 1
        if self.away:
            raise ConnectionRefusedError(111, "refused")
        self.lost = False
        return self

    def drop(self, lost):
        """Close a connection."""


class KeepAliveTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.patch(publisher, "ConfirmedChannel", _Channel)
        self.broker = _Broker()
        self.publisher = publisher.Publisher(self.broker, lambda connection: None)
        self.publisher.keep_alive()

    def test_a_connection_that_is_lost_is_replaced_at_once(self):
        self.broker.lost = True
        self.publisher.keep_alive()
        self.assertEqual((2, False), (self.broker.attempts, self.broker.lost))
        self.publisher.keep_alive()
        self.assertEqual(2, self.broker.attempts)

    def test_further_attempts_come_after_a_pause(self):
        self.broker.lost = self.broker.away = True
        for _ in range(5):
            self.publisher.keep_alive()
        self.assertEqual(2, self.broker.attempts)
