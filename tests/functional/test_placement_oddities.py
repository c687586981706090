# SPDX-License-Identifier: Apache-2.0
"""What Placement's database may hold and this store may not: each row is found, and said."""

import re

import sqlalchemy as sa
import testscenarios

from placement_rpc.db.placement import schema
from placement_rpc.moving import placement_store, rows
from tests import base, placement_oddities
from tests.filled_placement import FilledCloud
from tests.placement_contents import uuid_of

#: Dict of each oddity to what is found: kind, what, and how often
EXPECTED = {
    "allocation_without_inventory": ["inventories allocation_without_inventory"],
    "orphaned_consumer": ["consumers consumer_without_allocations"],
    "orphaned_consumer_of_a_later_generation": ["consumers consumer_without_allocations"],
    "missing_consumer": ["consumers consumer_missing"],
    "consumer_at_generation_0": ["consumers generation_changed"],
    "over_capacity": ["inventories over_capacity"],
    "loop": ["providers parent_loop", *["providers root_changed"] * 3],
    "own_parent": ["providers parent_loop"],
    "unknown_parent": ["providers parent_missing"],
    "unknown_root": ["providers root_changed"],
    "root_of_another_tree": ["providers root_changed"],
    "without_root": ["providers root_changed"] * 2,
    "without_name": ["providers name_missing"],
    "without_generation": ["providers generation_changed"],
    "consumers_of_one_uuid": [
        "allocations allocation_twice", *["consumers uuid_twice"] * 2,
        *["consumers uuid_unusual"] * 2],
    "providers_of_one_uuid": ["providers uuid_twice", "providers uuid_unusual"],
    "allocation_twice": ["allocations allocation_twice"],
    "allocation_of_nothing": ["allocations amount_not_positive"] * 2,
    "unknown_provider": [
        "allocations reference_missing", "consumers consumer_without_allocations",
        "inventories reference_missing", "provider_aggregates reference_missing"],
    "unknown_aggregate": ["provider_aggregates reference_missing"],
    "aggregate_without_uuid": ["provider_aggregates reference_missing"],
    "unknown_class": [
        "allocations reference_missing", "consumers consumer_without_allocations",
        "inventories reference_missing"],
    "unknown_project": ["consumers project_missing", "consumers user_missing"],
    # Of nine, min_unit above max_unit and a ratio of 0 are none; four have no room for what is
    # allocated.
    "odd_inventories": [*["inventories over_capacity"] * 4, *["inventories values_changed"] * 7],
    "names_of_a_later_release": [
        "resource_classes standard_unknown", "traits standard_unknown"],
    "names_that_differ_in_blanks": ["providers name_changed"],
    "not_a_uuid": ["consumers uuid_unusual"],
    "negative_generations": ["providers generation_changed"],
}


class OddityTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(name, {"oddity": name}) for name in placement_oddities.ODDITIES]

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(FilledCloud())

    def findings(self):
        found = []
        with placement_store.opened(self.cloud.url) as store:
            store.findings(found.append)
        return found

    def test_it_is_found(self):
        before = self.findings()
        placement_oddities.spoil(self.cloud, self.oddity)
        found = [each for each in self.findings() if each not in before]
        self.assertEqual(EXPECTED[self.oddity],
                         sorted(f"{each.kind} {each.what}" for each in found))
        for each in found:
            self.assertNotEqual("", each.done)
            self.assertTrue(all(isinstance(part, str) and part for part in each.key), each)


class FilledTest(base.TestCase):
    """What is done about some of them, row by row."""

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(FilledCloud())

    def rows(self, kind, *oddities):
        placement_oddities.spoil(self.cloud, *oddities)
        with placement_store.opened(self.cloud.url, "no project", "no user") as store:
            return {row.key: row for row in store.rows(kind)}

    def test_what_the_api_has_written_is_no_oddity(self):
        found = []
        with placement_store.opened(self.cloud.url) as store:
            store.findings(found.append)
        # Hardware that has shrunk, and what Placement never deletes.
        self.assertEqual(["inventories over_capacity", "aggregates unused", "projects unused",
                          "users unused"], [f"{each.kind} {each.what}" for each in found])

    def test_a_loop_becomes_a_tree(self):
        found = self.rows("providers", "loop")
        loop = {uuid_of(f"odd: loop {number}") for number in range(3)}
        root = min(loop)
        self.assertEqual({root: None}, {uuid: found[uuid,].parent for uuid in loop
                                        if found[uuid,].parent not in loop})
        self.assertEqual({root}, {found[uuid,].root for uuid in (
            *loop, uuid_of("odd: below the loop"))})

    def test_a_missing_consumer_has_the_configured_owner(self):
        self.assertEqual(
            ("no project", "no user", None, 1),
            self.rows("consumers", "missing_consumer")[uuid_of("odd: missing"),].values)

    def test_a_consumer_with_allocations_is_not_at_generation_0(self):
        """That would say that it has none."""
        found = self.rows("consumers", "consumer_at_generation_0")
        self.assertEqual(1, found[uuid_of("odd: generation 0"),].generation)

    def test_allocations_without_inventory_get_one_that_is_full(self):
        self.assertEqual((3, 0, 1, 3, 1, 1.0), self.rows(
            "inventories", "allocation_without_inventory")[
                uuid_of("without anything"), "VCPU"].values)

    def test_an_allocation_of_a_missing_provider_leaves_no_consumer(self):
        self.assertNotIn((uuid_of("odd: unknown provider"),), self.rows(
            "consumers", "unknown_provider"))

    def test_the_amounts_of_a_consumer_that_is_written_twice_are_added(self):
        found = self.rows("allocations", "consumers_of_one_uuid")
        uuid = uuid_of("odd: written twice")
        self.assertEqual(
            {(uuid_of("compute0.example"), "VCPU"): 3,
             **{(uuid_of(f"compute{number}.example"), "CUSTOM_LICENSE"): 1
                for number in range(3)}},
            {key[1:]: row.used for key, row in found.items() if key[0] == uuid})

    def test_every_reference_is_to_a_row(self):
        placement_oddities.spoil(self.cloud)
        with placement_store.opened(self.cloud.url) as store:
            found = {kind: {row.key: row for row in store.rows(kind)} for kind in rows.KINDS}
        for row in found["providers"].values():
            self.assertIn((row.root,), found["providers"])
            self.assertIn((row.parent or row.root,), found["providers"])
        for kind in ("inventories", "provider_traits", "provider_aggregates"):
            self.assertEqual(set(), {key[:1] for key in found[kind]} - {*found["providers"]})
        self.assertEqual({*found["consumers"]}, {key[:1] for key in found["allocations"]})
        self.assertEqual(set(), {key[1:] for key in found["allocations"]} -
                         {*found["inventories"]})
        self.assertEqual(set(), {(row.consumer_type,) for row in found["consumers"].values()
                                 if row.consumer_type} - {*found["consumer_types"]})

    def test_uuids_are_written_in_one_way(self):
        placement_oddities.spoil(self.cloud)
        usual = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
        with placement_store.opened(self.cloud.url) as store:
            for kind in ("providers", "consumers", "allocations"):
                for row in store.rows(kind):
                    self.assertRegex(row.key[0], usual)

    def test_a_schema_without_consumer_types(self):
        for revision in list(schema.REVISIONS)[:3]:
            with self.cloud.engine.begin() as tx:
                tx.execute(sa.update(schema.alembic_version).values(version_num=revision))
            with placement_store.opened(self.cloud.url) as store:
                self.assertEqual(revision, store.revision)
                self.assertEqual([], list(store.rows("consumer_types")))
                self.assertEqual({None}, {row.consumer_type for row in store.rows("consumers")})

    def test_a_stream_may_be_left_before_its_end(self):
        with placement_store.opened(self.cloud.url) as store:
            first = next(store.rows("allocations"))
            self.assertEqual(first, next(store.rows("allocations")))
            self.assertLess(1, len(list(store.rows("providers"))))
