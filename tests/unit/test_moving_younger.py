# SPDX-License-Identifier: Apache-2.0
"""Which differences come of use since the last import."""

import datetime
import tracemalloc

from placement_rpc.moving import rows, younger
from placement_rpc.moving.compare import Difference
from tests import base

_IMPORT = datetime.datetime(2026, 1, 2)
_FINISH = datetime.datetime(2026, 1, 3)
_BEFORE, _LATER = datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 4)
_HELD = younger.Since(_IMPORT)
_FINISHED = younger.Since(_IMPORT, _FINISH)


def _consumer(generation=1, created_at=_BEFORE, **values):
    return rows.ConsumerRow("c", "p", "u", None, generation, created_at)._replace(**values)


def _allocation(used=1, created_at=_BEFORE):
    return rows.AllocationRow("c", "provider", "VCPU", used, created_at)


class YoungerTest(base.TestCase):

    def reasons(self, since, *pairs):
        found = []
        with younger.Judge(since) as judge:
            for source, target in pairs:
                row = source or target
                kind = next(kind for kind, cls in rows.KINDS.items() if type(row) is cls)
                reason = judge.reason(Difference(kind, row.key, source, target))
                found.append(reason and " ".join(reason.split()[:3]))
        return found

    def test_a_generation_says_which_side_is_younger(self):
        for since, of_target in ((younger.Since(), "changed here since"), (_HELD, None),
                                 (_FINISHED, "changed here since")):
            self.assertEqual(
                ["changed in Placement", of_target],
                [*self.reasons(since, (_consumer(3), _consumer(2))),
                 *self.reasons(since, (_consumer(2), _consumer(3)))])

    def test_a_row_that_was_deleted_and_made_again_in_placement(self):
        """While the store is held, nothing can have changed here."""
        self.assertEqual(["changed in Placement"], self.reasons(
            _HELD, (_consumer(1, created_at=_LATER), _consumer(3))))

    def test_what_belongs_to_a_younger_one_is_younger(self):
        self.assertEqual(["changed in Placement"] * 2, self.reasons(
            _HELD, (_consumer(3), _consumer(2)), (_allocation(1), _allocation(2))))
        provider = rows.ProviderRow("provider", "name", 3, None, "provider")
        self.assertEqual(["changed in Placement"] * 2, self.reasons(
            _HELD, (provider, provider._replace(generation=1)), (_allocation(1), _allocation(2))))

    def test_of_the_same_generation_nothing_explains_a_difference(self):
        self.assertEqual([None, None], self.reasons(
            _FINISHED, (_consumer(), _consumer(user="x")), (_allocation(1), _allocation(2))))

    def test_a_row_that_is_newer_than_the_import(self):
        self.assertEqual(["changed in Placement"], self.reasons(
            _HELD, (_allocation(created_at=_LATER), None)))
        self.assertEqual([None], self.reasons(_HELD, (_allocation(), None)))
        self.assertEqual([None], self.reasons(_HELD, (_allocation(created_at=None), None)))

    def test_a_row_that_went_from_a_store_in_use(self):
        self.assertEqual(["deleted in Placement"], self.reasons(_HELD, (None, _allocation())))
        self.assertEqual(["deleted here since"], self.reasons(_FINISHED, (_allocation(), None)))
        self.assertEqual(["changed here since"], self.reasons(
            _FINISHED, (None, _allocation(created_at=_LATER))))

    def test_without_an_import_only_generations_speak(self):
        self.assertEqual([None, None], self.reasons(
            younger.Since(), (None, _allocation(created_at=_LATER)),
            (_allocation(created_at=_LATER), None)))

    def test_younger_ones_take_no_memory(self):
        wanted = 20000
        with younger.Judge(_HELD) as judge:
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            for number in range(wanted):
                source = _consumer(3, uuid=f"{number:036}")
                self.assertIsNotNone(judge.reason(Difference(
                    "consumers", source.key, source, source._replace(generation=2))))
            held, _ = tracemalloc.get_traced_memory()
            # The uuids alone would be 1.7 MB.
            self.assertLess(held, 500_000)
            for number in range(0, wanted, 1000):
                source = _allocation()._replace(consumer=f"{number:036}")
                self.assertIn("changed in Placement", judge.reason(Difference(
                    "allocations", source.key, source, source._replace(used=2))))
