# SPDX-License-Identifier: Apache-2.0
"""The rules of claims, compared with a model that is too simple to be wrong."""

import dataclasses
import math
from fractions import Fraction

import hypothesis
import testtools
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.accounting.inventories import columns
from placement_rpc.accounting.ledger import DesiredAllocations, Ledger
from placement_rpc.accounting.locked_state import (
    ConsumerEntry,
    InventoryEntry,
    LockedState,
    ProviderEntry,
)
from placement_rpc.db.queries import inventories
from placement_rpc.objects.inventory import Inventory, capacity_of
from tests import base

PROVIDERS = ("provider a", "provider b")
CLASSES = {"VCPU": 0, "DISK_GB": 2}
CONSUMERS = ("one", "two", "three")

_inventories = st.fixed_dictionaries({
    (provider, name): st.fixed_dictionaries({
        "capacity": st.integers(0, 30), "min_unit": st.integers(1, 4),
        "max_unit": st.integers(1, 30), "step_size": st.sampled_from([1, 1, 2, 3])})
    for provider in PROVIDERS for name in CLASSES})
_allocations = st.dictionaries(
    st.sampled_from(PROVIDERS),
    st.dictionaries(st.sampled_from(list(CLASSES)), st.integers(1, 20), min_size=1),
    max_size=2)
_changes = st.lists(st.tuples(st.sampled_from(CONSUMERS), _allocations), max_size=25)


def _entry(provider_id, class_id, rules):
    return InventoryEntry(
        id=100 * provider_id + class_id, resource_provider_id=provider_id,
        resource_class_id=class_id, used=0, total=rules["capacity"], reserved=0,
        allocation_ratio=1.0, **rules)


def _ledger(inventories):
    return Ledger(LockedState(
        {uuid: ConsumerEntry(uuid) for uuid in CONSUMERS},
        [ProviderEntry(id_, uuid, 0, 0, {
            class_id: _entry(id_, class_id, inventories[uuid, name])
            for name, class_id in CLASSES.items()}) for id_, uuid in enumerate(PROVIDERS, 1)],
        CLASSES, {class_id: name for name, class_id in CLASSES.items()}))


def _inventory(ledger, provider_id, name):
    return ledger.providers[provider_id].inventories[CLASSES[name]]


class _Model:
    """A model of the allocations only: everything else is computed from them each time."""

    def __init__(self, inventories):
        self.inventories = inventories
        self.held = {uuid: {} for uuid in CONSUMERS}

    def used(self, key):
        return sum(held.get(key, 0) for held in self.held.values())

    def accepts(self, consumer, wanted):
        before = self.held[consumer]
        for key, amount in wanted.items():
            rules = self.inventories[key]
            if amount == before.get(key):
                continue
            if amount < rules["min_unit"] or amount % rules["step_size"]:
                return False
            if amount > before.get(key, 0) and (
                    amount > rules["max_unit"]
                    or self.used(key) - before.get(key, 0) + amount > rules["capacity"]):
                return False
        return True


class LedgerPropertyTest(base.TestCase):

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(_inventories, _changes)
    def test_it_accepts_what_the_model_does_and_is_never_over_capacity(self, inventories, changes):
        ledger, model = _ledger(inventories), _Model(inventories)
        ids = {entry.uuid: entry.id for entry in ledger.providers.values()}
        for consumer, allocations in changes:
            wanted = {(provider, name): amount for provider, resources in allocations.items()
                      for name, amount in resources.items()}
            generations = {id_: entry.generation for id_, entry in ledger.providers.items()}
            accepted = model.accepts(consumer, wanted)
            try:
                ledger.apply([DesiredAllocations(consumer, allocations, "project", "user")])
                self.assertTrue(accepted, f"{consumer} got {wanted}")
            except exception.ClaimRefused:
                self.assertFalse(accepted, f"{consumer} was refused {wanted}")
                self.assertEqual(generations, {
                    id_: entry.generation for id_, entry in ledger.providers.items()})
            if accepted:
                before = model.held[consumer]
                touched = {key[0] for key, _ in before.items() ^ wanted.items()}
                model.held[consumer] = wanted
                for uuid, id_ in ids.items():
                    self.assertEqual(generations[id_] + (uuid in touched),
                                     ledger.providers[id_].generation)
            for (uuid, name), rules in inventories.items():
                entry = _inventory(ledger, ids[uuid], name)
                self.assertEqual(model.used((uuid, name)), entry.used)
                self.assertLessEqual(entry.used, rules["capacity"])

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(st.integers(1, 2 ** 31 - 1), st.data(),
                      st.decimals(min_value="0.01", max_value="1000", places=2))
    def test_capacity_is_the_formula_of_the_specification_rounded_down(self, total, data, ratio):
        reserved = data.draw(st.integers(0, total))
        exact = (total - reserved) * Fraction(str(ratio))
        self.assertEqual(math.floor(exact), capacity_of(total, reserved, float(ratio)))


class CapacityTest(base.TestCase):

    def test_ratios_that_are_not_binary_fractions(self):
        self.assertEqual(29, capacity_of(100, 0, 0.29))
        self.assertEqual(11, capacity_of(10, 0, 1.1))

    def test_a_capacity_that_no_column_would_hold_is_limited(self):
        self.assertEqual(2 ** 63 - 1, capacity_of(2 ** 31 - 1, 0, 3.40282e38))

    def test_the_example_of_the_specification(self):
        nfs = Inventory(resource_class="DISK_GB", total=100000, reserved=1000)
        self.assertEqual(99000, columns(nfs)["capacity"])


class LedgerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        rules = {"capacity": 10, "min_unit": 1, "max_unit": 10, "step_size": 1}
        self.ledger = _ledger({(uuid, name): rules for uuid in PROVIDERS for name in CLASSES})

    def hold(self, *desired):
        return self.ledger.apply([
            DesiredAllocations(consumer, allocations, "project", "user", **values)
            for consumer, allocations, values in desired])

    def test_all_of_several_or_none(self):
        self.assertRaises(
            exception.CapacityExceeded, self.hold,
            ("one", {"provider a": {"VCPU": 6}}, {}), ("two", {"provider a": {"VCPU": 5}}, {}))
        self.assertEqual({}, self.ledger.consumers["one"].held)
        self.hold(("one", {"provider a": {"VCPU": 5}}, {}),
                  ("two", {"provider a": {"VCPU": 5}}, {}))

    def test_what_one_consumer_frees_another_can_take(self):
        self.hold(("one", {"provider a": {"VCPU": 8}}, {}))
        self.hold(("one", {}, {}), ("two", {"provider a": {"VCPU": 9}}, {}))
        self.assertEqual(9, _inventory(self.ledger, 1, "VCPU").used)

    def test_the_error_says_what_was_free_for_the_consumer_that_claimed(self):
        self.hold(("one", {"provider a": {"VCPU": 4}}, {}))
        self.hold(("two", {"provider a": {"VCPU": 5}}, {}))
        error = self.assertRaises(
            exception.CapacityExceeded, self.hold, ("one", {"provider a": {"VCPU": 6}}, {}))
        self.assertEqual({"provider": "provider a", "resource_class": "VCPU", "requested": 6,
                          "free": 5, "capacity": 10}, error.kwargs)

    def test_a_refused_generation_changes_nothing(self):
        self.assertRaises(
            exception.ConsumerConflict, self.hold,
            ("one", {"provider a": {"VCPU": 4}}, {"generation": 3}))
        self.assertEqual(0, _inventory(self.ledger, 1, "VCPU").used)

    def test_a_moved_amount_skips_the_unit_checks(self):
        self.hold(("one", {"provider a": {"VCPU": 4}}, {}))
        _inventory(self.ledger, 1, "VCPU").max_unit = 2
        self.assertRaises(exception.ConstraintsViolated, self.hold,
                          ("one", {}, {}), ("two", {"provider a": {"VCPU": 4}}, {}))
        self.hold(("one", {}, {}),
                  ("two", {"provider a": {"VCPU": 4}}, {"skip_unit_checks": True}))
        self.assertEqual({(1, CLASSES["VCPU"]): 4}, self.ledger.consumers["two"].held)


    def test_a_set_raises_a_provider_once_and_a_move_for_each_consumer(self):
        self.hold(("one", {"provider a": {"VCPU": 4}}, {}))
        changes = self.hold(("one", {"provider b": {"VCPU": 4}}, {}),
                            ("two", {"provider a": {"VCPU": 5}, "provider b": {"VCPU": 5}}, {}),
                            ("three", {"provider b": {"VCPU": 1}}, {}))
        self.assertEqual([{1: (1, 2), 2: (0, 1)}, {1: (1, 2), 2: (0, 1)}, {2: (0, 1)}],
                         [each.generations for each in changes])
        self.assertEqual([2, 1], [each.generation for each in self.ledger.providers.values()])
        changes = self.ledger.apply([DesiredAllocations("two", {}), DesiredAllocations(
            "three", {"provider b": {"VCPU": 2}}, "project", "user")], one_step=False)
        self.assertEqual([{1: (2, 3), 2: (1, 2)}, {2: (2, 3)}],
                         [each.generations for each in changes])

    def test_the_generations_of_a_set_do_not_go_back(self):
        """A consumer that keeps what it has shares the step that one before it has made."""
        self.hold(*((name, {"provider a": {"VCPU": 1}}, {}) for name in ("one", "two", "three")))
        changes = self.hold(*((name, {"provider a": {"VCPU": amount}}, {"consumer_type": "OTHER"})
                              for name, amount in (("one", 1), ("two", 2), ("three", 1))))
        self.assertEqual([{1: (1, 1)}, {1: (1, 2)}, {1: (1, 2)}],
                         [each.generations for each in changes])

    def test_the_generation_of_a_consumer_is_checked_before_what_it_asks_for(self):
        self.assertRaises(
            exception.ConsumerConflict, self.hold, ("one", {"nowhere": {"VCPU": 4}}, {}),
            ("two", {"provider a": {"VCPU": 1}}, {"generation": 3}))

    def test_several_changes_are_undone_together(self):
        self.hold(("one", {"provider a": {"VCPU": 4}}, {}))
        state = self.ledger._state
        before = repr((state.consumers, state.providers, state.used_changes()))
        with testtools.ExpectedException(exception.CapacityExceeded), state.all_or_nothing():
            self.hold(("one", {"provider b": {"VCPU": 4}}, {"consumer_type": "INSTANCE"}),
                      ("two", {"provider a": {"DISK_GB": 1}}, {}))
            del state.providers[2].inventories[CLASSES["DISK_GB"]]
            self.hold(("one", {"provider b": {"DISK_GB": 1}}, {}))
        self.assertEqual(before, repr((state.consumers, state.providers, state.used_changes())))
        with state.all_or_nothing():
            self.hold(("one", {"provider b": {"VCPU": 4}}, {}))
        self.assertEqual(4, _inventory(self.ledger, 2, "VCPU").used)


class InventoryEntryTest(base.TestCase):

    def test_its_fields_are_the_columns_that_are_read(self):
        self.assertEqual(
            inventories.COLUMNS, tuple(each.name for each in dataclasses.fields(InventoryEntry)))
