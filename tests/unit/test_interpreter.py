# SPDX-License-Identifier: Apache-2.0
"""How long Python's collections of garbage stop a process."""

import gc
import itertools

import fixtures

from placement_rpc.service.interpreter import Collections, importing
from tests import base


class CollectionsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        # No collections but those of the test.
        gc.disable()
        self.addCleanup(gc.enable)
        self.addCleanup(gc.unfreeze)
        # Counted, since gc.get_freeze_count() looks at all objects.
        self.freeze = self.useFixture(
            fixtures.MockPatchObject(gc, "freeze", wraps=gc.freeze)).mock
        self.now = 0.0
        self.collections = Collections(lambda: self.now)

    def collect(self, seconds, generation=2):
        """Notice a collection; return whether what survived it is not looked at any more."""
        before = self.freeze.call_count
        self.collections.note("start", {"generation": generation})
        self.now += seconds
        self.collections.note("stop", {"generation": generation})
        return self.freeze.call_count > before

    def test_what_survives_a_long_one_is_not_looked_at_again(self):
        survivor = [[]]
        self.assertTrue(self.collect(0.1))
        self.assertFalse(any(each is survivor for each in gc.get_objects()))

    def test_short_ones_and_those_of_young_objects_change_nothing(self):
        self.assertFalse(self.collect(0.001))
        self.assertFalse(self.collect(0.1, generation=1))

    def test_it_becomes_rarer(self):
        moments = []
        while self.now < 100:
            if self.collect(1):
                moments.append(self.now)
        waits = [after - before for before, after in itertools.pairwise(moments)]
        self.assertEqual(sorted(waits), waits)
        self.assertGreater(waits[-1], 20 * waits[0])

    def test_a_process_that_an_old_one_starts_counts_from_its_own_start(self):
        self.now = 10_000
        self.assertTrue(self.collect(1))
        self.assertFalse(self.collect(1))
        self.collections.restart()
        self.assertTrue(self.collect(1))


class ImportingTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.enable)

    def test_nothing_is_collected_meanwhile_or_looked_at_later(self):
        gc.enable()
        with importing():
            self.assertFalse(gc.isenabled())
            made = [[]]
        self.assertTrue(gc.isenabled())
        self.assertFalse(any(each is made for each in gc.get_objects()))

    def test_after_an_error_garbage_is_collected_again(self):
        gc.enable()
        with self.assertRaises(ModuleNotFoundError), importing():
            raise ModuleNotFoundError
        self.assertTrue(gc.isenabled())

    def test_where_garbage_is_not_collected_it_is_not_afterwards(self):
        gc.disable()
        with importing():
            pass
        self.assertFalse(gc.isenabled())
