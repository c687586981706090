# SPDX-License-Identifier: Apache-2.0
"""What the cycle of a resource tracker asks of the database, seen in this process."""

import time

import sqlalchemy as sa

from tests import base
from tests.functional import test_sync


class OldSnapshotTest(test_sync.SyncTest):
    def test_it_asks_for_no_deletions(self):
        self.sync()
        statements = []
        sa.event.listen(self.database.engine, "before_cursor_execute",
                        lambda *arguments: statements.append(arguments[2]))
        self.sync({base.new_uuid(): {"VCPU": 2}}, at=time.time() - 7200, heal=True)
        self.assertTrue(statements)
        self.assertFalse([each for each in statements if "released_consumer" in each
                          and each.startswith("SELECT")])
