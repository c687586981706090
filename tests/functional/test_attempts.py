# SPDX-License-Identifier: Apache-2.0
"""Attempts at messages that were delivered again."""

import amqp

from placement_rpc.amqp import dead_letters
from placement_rpc.service.attempts import Attempts
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class AttemptsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.attempts = Attempts(self.useFixture(placement_fixtures.Store()).database)

    def begin(self, body, replay=None):
        """Begin an attempt at a message; return how many were made."""
        headers = {} if replay is None else {dead_letters.REPLAYED: replay}
        return self.attempts.begin(self.attempts.id_of(
            amqp.Message(body, application_headers=headers)))

    def test_the_attempts_at_a_replayed_message_are_counted_from_zero(self):
        replay = "2f4b0a55-6a02-4f8a-9d5e-0d6b3a1f7c11"
        self.assertEqual([1, 2], [self.begin(b"a"), self.begin(b"a")])
        self.assertEqual([1, 2], [self.begin(b"a", replay), self.begin(b"a", replay)])

    def test_a_replay_that_no_program_names_so_is_none(self):
        for number, replay in enumerate(("\x00", "\ud800", "\u00e9" * 36, "", 5, ["a"]), 1):
            self.assertEqual(number, self.begin(b"a", replay))
