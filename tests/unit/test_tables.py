# SPDX-License-Identifier: Apache-2.0
"""The tables of the programs: which columns are folded."""

import io

from placement_rpc.cmd import output
from tests import base

_UUID = "5b8a1c3e-0d2f-4e6a-9c7b-1f3d5e7a9b0c"


class TableTest(base.TestCase):

    def table(self, *values):
        """Return a table that is too wide for a terminal, as text."""
        stream = io.StringIO()
        output.show([{"id": value, "text": "word " * 30} for value in values], ["id", "text"],
                    "table", stream=stream)
        return stream.getvalue()

    def test_ids_are_not_folded(self):
        keystone = _UUID.replace("-", "")
        for ids in ((_UUID,), (keystone,), (_UUID, "all"), ("p", keystone)):
            table = self.table(*ids)
            for each in ids:
                self.assertIn(f" {each} ", table)

    def test_other_texts_are(self):
        self.assertNotIn(_UUID * 3, self.table(_UUID * 3))
