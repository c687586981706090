# SPDX-License-Identifier: Apache-2.0
"""A sorted table behaves as a dict of its rows."""

import hypothesis
import numpy as np
from hypothesis import strategies as st

from placement_rpc.candidates.sorted_table import SortedTable
from tests import base

_KEYS = st.sets(st.integers(1, 60), max_size=12)
_STEPS = st.lists(st.tuples(st.sampled_from(("put", "remove")), _KEYS), max_size=12)


class SortedTableTest(base.TestCase):

    @hypothesis.settings(deadline=None)
    @hypothesis.given(_STEPS)
    def test_it_behaves_as_a_dict(self, steps):
        table, model = SortedTable(number=np.int64, text=object), {}
        for count, (what, keys) in enumerate(steps):
            # The keys of a call may be in any order.
            given = np.array(sorted(keys, key=lambda key: key * 7 % 31), np.int64)
            if what == "put":
                texts = np.empty(len(given), object)
                texts[:] = [f"{key} {count}" for key in given]
                table.put(given, number=given * 100 + count, text=texts)
                model |= {int(key): (int(key) * 100 + count, f"{key} {count}") for key in given}
            else:
                table.remove(given)
                for key in keys:
                    model.pop(key, None)
            self.assertEqual(sorted(model), table.keys.tolist())
            self.assertEqual([model[key] for key in sorted(model)], list(zip(
                table["number"].tolist(), table["text"].tolist(), strict=True)))
        for key in range(1, 61):
            row = table.row_of(key)
            self.assertEqual(key in model, row is not None)
        rows, there = table.rows_of(np.arange(1, 61))
        self.assertEqual([key in model for key in range(1, 61)], there.tolist())
        self.assertEqual(sorted(model), table.keys[rows[there]].tolist() if model else [])

    def test_rows_at_the_end_are_written_into_spare_room(self):
        table = SortedTable(number=np.int64)
        table.put(np.arange(1000), number=np.arange(1000))
        held = table["number"].base
        table.put(np.arange(1000, 1100), number=np.arange(1100, 1200))
        self.assertIs(held, table["number"].base)
