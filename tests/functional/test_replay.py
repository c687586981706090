# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage outbox replay``: it says what it cannot publish again."""

import sqlalchemy as sa

from placement_rpc.cmd import manage
from placement_rpc.db import models
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, programs


class ReplayTest(base.TestCase):

    def setUp(self):
        super().setUp()
        service = self.useFixture(placement_fixtures.RunningService())
        self.database = service.database
        self.url = service.conf.database.connection
        for number in range(5):
            service.api.create_provider(None, f"node-{number}")
        base.wait_published(self.database)
        # So that nothing is published again while the counts are looked at.
        service.conductor.stop()

    def replay(self, *arguments):
        return programs.run(
            manage, "--database", self.url, "--transport-url", "rabbit://nowhere.invalid/",
            "outbox", "replay", *arguments)

    def delete(self, *positions):
        self.database.write(lambda tx: tx.execute(sa.delete(models.events).where(
            models.events.c.position.in_(positions))))

    def test_events_that_were_pruned(self):
        self.delete(1, 2)
        for number in "1", "-7", "999":
            for more in (), ("--provider", base.new_uuid()):
                done = self.replay("--position", number, *more)
                self.assertEqual(1, done.code)
                self.assertIn("both stored and published: 3 to 5", done.stderr)
        done = self.replay("--position", "6")
        self.assertEqual((0, ""), (done.code, done.stderr))
        done = self.replay("--since", "2020-01-01T00:00Z")
        self.assertEqual(0, done.code)
        self.assertIn("3 events are published again", done.stdout)
        self.assertIn("events before position 3 are no longer kept", done.stderr)

    def test_positions_that_the_store_has_lost_are_not_counted(self):
        self.delete(3, 4)
        self.assertIn("3 events are published again", self.replay("--position", "1").stdout)

    def test_nothing_since_then(self):
        for more in (), ("--provider", base.new_uuid()):
            done = self.replay("--since", "2999-01-01T00:00Z", *more)
            self.assertEqual((0, ""), (done.code, done.stderr))
            self.assertIn("0 events are published again", done.stdout)

    def test_no_events(self):
        self.delete(*range(1, 6))
        done = self.replay("--position", "1")
        self.assertEqual(1, done.code)
        self.assertIn("both stored and published: there are none", done.stderr)
