# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement export``, on SQLite; tests/integration has the others."""

import datetime
import json
import time

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.placement import export_state
from placement_rpc.moving import fitting, rows
from tests import base, moving_stores, placement_cloud, placement_contents
from tests.placement_contents import Writer, inventory, uuid_of


class ExportTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(moving_stores.MovedTo())
        cloud = self.useFixture(placement_cloud.PlacementCloud())
        writer = Writer(cloud)
        for name in ("one.example", "two.example"):
            writer.provider(name)
            writer.inventories(name, VCPU=inventory(8))
        writer.claim("server", {"one.example": {"VCPU": 2}})
        self.store.done("import", "--from", cloud.url, "--finish")
        self.back = self.useFixture(placement_cloud.PlacementCloud())

    def export(self, *arguments, code=0):
        return self.store.done("export", "--to", self.back.url, *arguments, code=code)

    def test_counts(self):
        kinds = {each["kind"]: each for each in json.loads(self.export())["kinds"]}
        self.assertEqual({"kind": "providers", "read": 2, "created": 2, "changed": 0,
                          "deleted": 0}, kinds["providers"])
        self.assertEqual(1, kinds["consumers"]["created"])
        again = json.loads(self.export())["kinds"]
        self.assertEqual(0, sum(each["created"] + each["changed"] + each["deleted"]
                                for each in again))

    def test_consumers_at_generation_0(self):
        """As an older release brought them over."""
        with self.store.database.writer() as tx:
            tx.execute(sa.update(models.consumers).values(generation=0))
        self.assertEqual(1, {each["kind"]: each for each in json.loads(self.export())["kinds"]}[
            "consumers"]["created"])
        self.assertEqual(1, self.back.send(
            "GET", f"/allocations/{uuid_of('server')}")["consumer_generation"])

    def test_a_filled_database_is_refused(self):
        Writer(self.back).provider("other.example")
        self.assertIn("not empty: there are rows in resource_providers", self.export(code=1))

    def test_a_database_that_placement_has_changed_is_refused(self):
        self.export()
        Writer(self.back).claim("late", {"one.example": {"VCPU": 1}})
        self.assertIn("it has been changed since the export of", self.export(code=1))

    def test_changes_that_raise_no_generation_are_refused_too(self):
        self.export()
        uuid = uuid_of("one.example")
        for method, path, body, minor in (
                ("PUT", f"/resource_providers/{uuid}", {"name": "renamed.example"}, 0),
                ("PUT", f"/resource_providers/{uuid}/aggregates", [uuid_of("aggregate")], 1)):
            back = self.useFixture(placement_cloud.PlacementCloud())
            self.back = back
            self.export()
            time.sleep(1)
            back.send(method, path, body, minor=minor)
            self.assertIn("it has been changed since the export of", self.export(code=1), path)

    def interrupt(self, ago):
        """Make the last export one that was interrupted some minutes ago."""
        at = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=ago)
        with self.back.engine.begin() as tx:
            tx.exec_driver_sql(
                "UPDATE placement_rpc_export SET ended_at = NULL, signature = "
                f"'{{\"at\": \"{at:%Y-%m-%dT%H:%M:%S}\"}}'")

    def test_what_placement_has_changed_since_an_export_was_interrupted(self):
        self.export()
        self.interrupt(ago=0)
        self.export()
        Writer(self.back).claim("late", {"one.example": {"VCPU": 1}})
        self.interrupt(ago=5)
        self.assertIn("it has been changed since the export of", self.export(code=1))

    def test_an_export_that_was_killed_before_it_wrote_anything(self):
        self.export()
        with self.back.engine.begin() as tx:
            export_state.begin(tx)
        # Nothing has changed the database since.
        self.export()
        with self.back.engine.begin() as tx:
            export_state.begin(tx)
            began = json.loads(tx.exec_driver_sql(
                "SELECT signature FROM placement_rpc_export").scalar())["at"]
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        self.assertLess(abs(now - datetime.datetime.fromisoformat(began)),
                        datetime.timedelta(minutes=1))
        Writer(self.back).claim("late", {"one.example": {"VCPU": 1}})
        # As if the beginning were longer ago than clocks may differ.
        self.interrupt(ago=5)
        self.assertIn("it has been changed since the export of", self.export(code=1))

    def test_a_finished_export_is_the_last(self):
        self.export("--finish")
        self.assertNotIn("placement_rpc_export", sa.inspect(self.back.engine).get_table_names())
        self.assertIn("not empty", self.export(code=1))

    def test_an_older_revision_is_refused(self):
        self.back = self.useFixture(placement_cloud.PlacementCloud(
            revision=placement_cloud.REVISIONS[2]))
        self.assertIn(placement_cloud.REVISIONS[2], self.export(code=1))

    def test_no_placement_database(self):
        self.assertIn("which is not known", self.store.done(
            "export", "--to", self.useFixture(moving_stores.MovedTo()).url, code=1))

    def test_standard_classes_have_their_ids_without_a_start_of_placement(self):
        """``placement-manage db sync`` alone writes none."""
        with self.back.without_foreign_keys() as connection:
            before = connection.exec_driver_sql(
                "SELECT id, name FROM resource_classes ORDER BY id").all()
            connection.exec_driver_sql("DELETE FROM resource_classes")
            connection.exec_driver_sql("DELETE FROM traits")
        self.export()
        with self.back.engine.connect() as connection:
            self.assertEqual(before, connection.exec_driver_sql(
                "SELECT id, name FROM resource_classes ORDER BY id").all())
        self.assertEqual({"VCPU": 2}, self.back.send(
            "GET", f"/allocations/{uuid_of('server')}")["allocations"][
                uuid_of("one.example")]["resources"])

    def test_exchanged_names_and_moved_trees(self):
        self.export()
        with moving_stores.Serving(self.store.url) as serving:
            writer = Writer(serving)
            writer.change_provider("one.example", "none")
            writer.change_provider("two.example", "one.example")
            writer.change_provider("one.example", "two.example", "two.example")
            there = placement_contents.dump(serving.send)
        self.export()
        self.assertEqual(there, placement_contents.dump(self.back.send))


class FittedTest(base.TestCase):
    """What Placement's columns cannot hold."""

    class Source:

        def rows(self, kind, report=None):
            yield from {
                "providers": [rows.ProviderRow("u", "name", 2 ** 40, None, "u"),
                              rows.ProviderRow("v", "other", 7, None, "v")],
                "inventories": [rows.InventoryRow("u", "VCPU", 1, 0, 1, 1, 1, 1.23456789),
                                rows.InventoryRow("v", "VCPU", 1, 0, 1, 1, 1, 0.9)],
                "consumers": [rows.ConsumerRow("c", "project", "user", None, 0),
                              rows.ConsumerRow("d", "project", "user", None, 7)],
            }.get(kind, ())

    def fit(self, kind, is_single):
        found = []
        return list(fitting.Fitted(self.Source(), is_single).rows(kind, found.append)), found

    def test_generation(self):
        fitted, found = self.fit("providers", False)
        self.assertEqual([2 ** 31 - 1, 7], [row.generation for row in fitted])
        self.assertEqual(["generation_changed"], [each.what for each in found])

    def test_generation_of_a_consumer(self):
        """An older release could bring over consumers at generation 0."""
        fitted, found = self.fit("consumers", False)
        self.assertEqual([1, 7], [row.generation for row in fitted])
        self.assertEqual(["generation_changed"], [each.what for each in found])

    def test_ratio(self):
        fitted, found = self.fit("inventories", True)
        self.assertEqual([1.23457, 0.9], [row.allocation_ratio for row in fitted])
        self.assertEqual(["values_changed"], [each.what for each in found])
        fitted, found = self.fit("inventories", False)
        self.assertEqual(([1.23456789, 0.9], []), (
            [row.allocation_ratio for row in fitted], found))
