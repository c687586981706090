# SPDX-License-Identifier: Apache-2.0
"""What the cycle of a resource tracker asks of the database, seen in this process."""

import time

from tests import base, statements
from tests.functional import test_sync


class OldSnapshotTest(test_sync.SyncTest):
    def test_it_asks_for_no_deletions(self):
        self.sync()
        with statements.recorded(self.database) as sent:
            self.sync({base.new_uuid(): {"VCPU": 2}}, at=time.time() - 7200, heal=True)
        self.assertTrue(sent)
        self.assertFalse([each for each in sent if "released_consumer" in each
                          and each.startswith("SELECT")])
