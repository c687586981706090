# SPDX-License-Identifier: Apache-2.0
"""Columns hold what was put into them, as a dict would."""

import hypothesis
import numpy as np
from hypothesis import strategies as st

from placement_rpc.candidates.sorted_table import SortedTable
from tests import base

_KEYS = st.sets(st.integers(1, 60), max_size=12)
_STEPS = st.lists(st.tuples(st.sampled_from(("put", "remove")), _KEYS), max_size=12)


class ColumnsTest(base.TestCase):

    @hypothesis.settings(deadline=None)
    @hypothesis.given(_STEPS)
    def test_as_a_dict(self, steps):
        columns, model = SortedTable(number=np.int64, text=object), {}
        for count, (what, keys) in enumerate(steps):
            # In any order: those who call need not sort.
            given = np.array(sorted(keys, key=lambda key: key * 7 % 31), np.int64)
            if what == "put":
                texts = np.empty(len(given), object)
                texts[:] = [f"{key} {count}" for key in given]
                columns.put(given, number=given * 100 + count, text=texts)
                model |= {int(key): (int(key) * 100 + count, f"{key} {count}") for key in given}
            else:
                columns.remove(given)
                for key in keys:
                    model.pop(key, None)
            self.assertEqual(sorted(model), columns.keys.tolist())
            self.assertEqual([model[key] for key in sorted(model)], list(zip(
                columns["number"].tolist(), columns["text"].tolist(), strict=True)))
        for key in range(1, 61):
            row = columns.row_of(key)
            self.assertEqual(key in model, row is not None)
        rows, there = columns.rows_of(np.arange(1, 61))
        self.assertEqual([key in model for key in range(1, 61)], there.tolist())
        self.assertEqual(sorted(model), columns.keys[rows[there]].tolist() if model else [])

    def test_what_comes_at_the_end_is_put_into_the_room_that_there_is(self):
        columns = SortedTable(number=np.int64)
        columns.put(np.arange(1000), number=np.arange(1000))
        held = columns["number"].base
        columns.put(np.arange(1000, 1100), number=np.arange(1100, 1200))
        self.assertIs(held, columns["number"].base)
