# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a statement runs: the program ends, rather than report an error and go on."""

import sqlalchemy as sa

from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class InterruptedStatementTest(base.TestCase):

    def setUp(self):
        super().setUp()
        service = self.useFixture(placement_fixtures.RunningService("local"))
        self.api, self.engine = service.api, service.database.engine
        self.kept = self.api.create_provider(None, "node-1")

    def interrupt(self, call, prefix):
        """Make a call, interrupt its first statement that begins so, and expect that it ends."""
        left = [prefix]

        def after(_connection, _cursor, statement, *_arguments):
            if left and statement.startswith(left[0]):
                left.clear()
                raise KeyboardInterrupt

        sa.event.listen(self.engine, "after_cursor_execute", after)
        self.addCleanup(sa.event.remove, self.engine, "after_cursor_execute", after)
        self.assertRaises(KeyboardInterrupt, call)
        self.assertEqual([], left)

    def names(self):
        return [each.name for each in self.api.all_provider_summaries(None)]

    def test_of_a_read(self):
        self.interrupt(lambda: self.api.get_provider(None, self.kept.uuid), "SELECT")
        self.assertEqual("node-1", self.api.get_provider(None, self.kept.uuid).name)

    def test_of_a_snapshot(self):
        self.interrupt(self.names, "SELECT")
        self.assertEqual(["node-1"], self.names())

    def test_of_a_change(self):
        self.interrupt(lambda: self.api.create_provider(None, "node-2"), "INSERT")
        self.assertEqual(["node-1"], self.names())
        self.api.create_provider(None, "node-2")
        self.assertEqual({"node-1", "node-2"}, set(self.names()))
