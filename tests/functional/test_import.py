# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement import`` on SQLite; tests/integration has other databases."""

import datetime
import pathlib
import subprocess
import sys
from unittest import mock

import fixtures
import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.accounting import holding, snapshot
from placement_rpc.cmd import manage_placement_import
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events, leases, relaying, services
from placement_rpc.db.queries import hold as queries
from placement_rpc.moving import hold, importing, own_store, placement_store, rows
from placement_rpc.notifications.usage import UsageAccount
from tests import base, placement_cloud, placement_contents, placement_oddities
from tests.functional.import_case import FilledCase


class ImportTest(FilledCase):
    """Which rows are brought over."""

    def test_all_rows_are_brought_over_and_a_second_run_writes_nothing(self):
        done = self.run_import()
        self.assert_equal()
        self.assertEqual(set(rows.KINDS), self.work(done))
        before = self.contents()
        again = self.run_import()
        self.assertEqual(set(), self.work(again))
        self.assertEqual([each["read"] for each in done["kinds"]],
                         [each["read"] for each in again["kinds"]])
        self.assertEqual(before, self.contents())

    def test_times_are_carried_over(self):
        with self.cloud.engine.begin() as connection:
            for table in ("resource_providers", "inventories", "consumers", "allocations"):
                connection.exec_driver_sql(
                    f"UPDATE {table} SET created_at = '2019-02-03 04:05:06', "
                    "updated_at = '2020-03-04 05:06:07'")
        self.run_import()
        self.assertEqual({("2019-02-03 04:05:06", "2020-03-04 05:06:07")}, {
            (str(row.created_at), str(row.updated_at)) for name in (
                "resource_providers", "inventories", "consumers", "allocations")
            for row in self.contents()[name]})

    def test_a_later_run_brings_what_has_changed_and_takes_away_what_has_gone(self):
        self.run_import()
        for number in range(2):
            placement_contents.change(self.cloud, number)
            done = self.run_import()
            self.assert_equal()
        # A new provider with an inventory, and a consumer with two.
        self.assertEqual(
            {"providers", "inventories", "consumers", "allocations"}, self.work(done))

    def test_names_go_round_between_providers(self):
        self.run_import()
        names = [f"compute{number}.example" for number in range(3)]
        uuids = [placement_contents.uuid_of(name) for name in names]
        with self.cloud.engine.begin() as connection:
            for name, uuid in (*zip(("a", "b", "c"), uuids, strict=True),
                               *zip(names[1:] + names[:1], uuids, strict=True)):
                connection.exec_driver_sql(
                    f"UPDATE resource_providers SET name = '{name}' "
                    f"WHERE uuid = '{uuid}'")
        # In one transaction, and in one for each.
        for batch in ("1000", "1"):
            self.run_import("--batch", batch)
            self.assert_equal()

    def test_a_new_provider_takes_the_name_of_a_deleted_one(self):
        self.run_import()
        self.cloud.send("DELETE", "/resource_providers/" + placement_contents.uuid_of(
            "without anything"))
        self.cloud.send("POST", "/resource_providers", {"name": "without anything"})
        self.run_import()
        self.assert_equal()

    def test_trees_are_turned_round_and_deleted(self):
        self.cloud.send("POST", "/resource_providers", {
            "name": "top", "uuid": placement_contents.uuid_of("top")})
        for name, parent in (("middle", "top"), ("bottom", "middle"), ("leaf", "bottom")):
            self.writer.provider(name, parent)
        self.run_import()
        for name in ("top", "middle", "bottom", "leaf"):
            self.writer.change_provider(name, name)
        for name, parent in (("bottom", "leaf"), ("middle", "bottom"), ("top", "middle")):
            self.writer.change_provider(name, name, parent)
        self.run_import("--batch", "1")
        self.assert_equal()
        for name in ("top", "middle", "bottom", "leaf"):
            self.cloud.send("DELETE", "/resource_providers/" + placement_contents.uuid_of(name))
        self.run_import("--batch", "1")
        self.assert_equal()

    def test_all_goes_with_the_cloud(self):
        self.run_import()
        self.cloud.empty()
        self.run_import()
        self.assert_equal()
        found = self.contents()
        self.assertEqual({"consumer_types": 0, "resource_providers": 0, "consumers": 0},
                         {name: len(found[name]) for name in (
                             "consumer_types", "resource_providers", "consumers")})

    def test_odd_rows_are_listed_with_what_is_done(self):
        placement_oddities.spoil(self.cloud)
        done = self.run_import()
        self.assert_equal()
        self.assertGreater(len(done["findings"]), len(placement_oddities.ODDITIES) / 2)
        self.assertEqual(done["findings"], self.run_import()["findings"])

    def test_a_run_that_is_interrupted_is_run_again(self):
        """Each run ends after one batch, or before it announces what was changed."""
        for change, least in ((lambda: None, 10), (lambda: placement_contents.change(
                self.cloud), 5)):
            change()
            before, number = len(self.imports()), 0
            while self.interrupt(1):
                self.assertEqual(before, len(self.imports()))
                number += 1
            self.assertGreater(number, least)
            self.assert_equal()
            # The last run, which changed nothing, announces what the others have changed.
            self.assertEqual(before + 1, len(self.imports()))


class StateTest(FilledCase):
    """When an import begins, when it is refused, and when it is finished."""

    def test_a_run_that_is_overtaken_by_another_ends(self):
        with placement_store.opened(self.cloud.url) as source, own_store.opened(
                self.database) as target:
            first = hold.begin_pass(self.database, self.cloud.url)
            importing.Pass(source, target).run(self.database, first, 100)
            self.run_import()
            self.assertRaises(exception.ImportOvertaken, importing.Pass(source, target).run,
                              self.database, first, 100)
            self.assertRaises(exception.ImportOvertaken, hold.end_pass, self.database, first)
        self.assert_equal()

    def test_a_dry_run_changes_nothing_and_says_what_a_run_would_do(self):
        before = self.contents()
        planned = self.run_import("--dry-run")
        self.assertEqual(before, self.contents())
        self.api().create_trait(None, "CUSTOM_TRIAL")
        self.api().delete_trait(None, "CUSTOM_TRIAL")
        done = self.run_import()
        self.assertEqual(
            [(each["kind"], each["read"], each["created"]) for each in done["kinds"]],
            [(each["kind"], each["read"], each["to_create"]) for each in planned["kinds"]])

    def test_a_finished_import_is_not_run_again(self):
        self.run_import("--finish")
        self.assertIn("The import is finished", self.errors)
        provider = self.api().create_provider(None, "of a client")
        before = self.contents()
        for arguments in ((), ("--finish",), ("--dry-run",)):
            self.run_import(*arguments, code=1)
            self.assertIn("the import was finished at", self.errors)
        self.manage("import", "--finish", code=1)
        self.assertEqual(before, self.contents())
        self.assertEqual("of a client", self.api().get_provider(None, provider.uuid).name)

    def test_the_last_complete_run_can_be_finished(self):
        self.manage("import", "--finish", code=1)
        self.assertIn("no pass was made", self.errors)
        self.assertTrue(self.interrupt(3))
        self.manage("import", "--finish", code=1)
        self.assertIn("the last pass was interrupted", self.errors)
        self.run_import()
        self.manage("import", "--finish")
        self.assertFalse(holding.is_held(self.database))
        self.assert_equal()

    def test_the_snapshot_of_a_finish_that_was_interrupted_is_completed(self):
        self.run_import()
        hold.finish(self.database)
        self.run_import("--finish")
        self.assertEqual(["allocation.snapshot.begin", "allocation.snapshot.end"], [
            each for each in self.types() if each.startswith("allocation.snapshot")])
        self.run_import("--finish", code=1)

    def test_a_later_snapshot_is_not_taken_for_that_of_the_import(self):
        self.run_import("--finish")
        begun = snapshot.begin(self.database)
        self.run_import("--finish", code=1)
        self.assertIn("the import was finished at", self.errors)
        self.assertFalse(snapshot.progress(self.database, begun.snapshot_id).complete)

    def test_changes_are_accepted_before_the_snapshot_is_complete(self):
        """The operator reads so, and can switch the clients over meanwhile."""
        seen = []
        go_on = snapshot.go_on

        def step(database):
            seen.append((self.errors_so_far(), holding.is_held(self.database)))
            return go_on(database)

        with mock.patch.object(snapshot, "go_on", step):
            self.run_import("--finish")
        said, is_held = seen[0]
        self.assertIn("the store accepts changes", said)
        self.assertNotIn("snapshot", said)
        self.assertFalse(is_held)
        self.assertIn("The snapshot of all allocations is complete", self.errors)

    def test_the_snapshot_goes_on_after_the_database_was_away(self):
        go_on, refusals = snapshot.go_on, [
            exception.StoreUnavailable(reason="away"), exception.StoreBusy(method="x", attempts=1)]

        def step(database):
            if refusals:
                raise refusals.pop()
            return go_on(database)

        with mock.patch.object(snapshot, "go_on", step):
            self.run_import("--finish")
        self.assertIn("The snapshot of all allocations is complete", self.errors)
        self.assertEqual("allocation.snapshot.end", self.types()[-1])

    def test_the_database_stays_away_during_the_snapshot(self):
        away = mock.Mock(side_effect=exception.StoreUnavailable(reason="away"))
        with mock.patch.object(snapshot, "go_on", away), \
                mock.patch.object(manage_placement_import, "PATIENCE", 0.2):
            self.run_import("--finish", code=1)
        self.assertIn("run the import with --finish again", self.errors)
        self.run_import("--finish")
        self.assertEqual("allocation.snapshot.end", self.types()[-1])

    def test_what_no_import_has_brought_is_not_taken_away(self):
        self.api().create_provider(None, "of a client")
        self.api().create_trait(None, "CUSTOM_OF_A_CLIENT")
        before = self.contents()
        for arguments in ((), ("--finish",), ("--dry-run",)):
            self.run_import(*arguments, code=1)
            self.assertIn("resource providers, custom traits that no import has brought",
                          self.errors)
        self.assertEqual(before, self.contents())
        self.assertFalse(holding.is_held(self.database))

    def test_a_later_run_may_not_read_another_database(self):
        """It would replace the cloud by another one, such as that of a test."""
        self.run_import()
        before = self.contents()
        other = self.useFixture(placement_cloud.PlacementCloud(self.source_kind))
        for arguments in ((), ("--dry-run",), ("--finish",)):
            self.manage("import", "--from", other.url, *arguments, code=1)
            self.assertIn("the import began with", self.errors)
            self.assertIn("--force", self.errors)
        self.assertEqual(before, self.contents())
        # As after a move of Placement's database. Options of the connection are no matter.
        self.manage("import", "--from", other.url, "--force", "--dry-run")
        self.manage("import", "--from", other.url, "--force")
        self.cloud = other
        self.assert_equal()
        self.manage("import", "--from", f"{other.url}?timeout=5", "--finish")

    def test_databases_that_differ_in_parameters_of_the_url(self):
        url = "mysql+pymysql://root@/placement?unix_socket="
        hold.begin_pass(self.database, f"{url}/one&charset=utf8")
        hold.check(self.database, f"{url}/one&charset=utf8mb4")
        for other in (f"{url}/two", f"{url}/one&port=1", "mysql+pymysql://root@/placement"):
            error = self.assertRaises(
                exception.ImportRefused, hold.check, self.database, other)
            self.assertIn("the import began with", error.text)

    def test_a_reader_of_its_output_that_ends(self):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", "--database",
             self.database.engine.url.render_as_string(hide_password=False), "placement",
             "import", "--from", self.cloud.url, "--finish"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        errors = process.stderr.read()
        self.assertEqual(141, process.wait(), errors)
        process.stderr.close()
        self.assertIn("The import is finished", errors)
        self.assertIsNotNone(hold.in_use_since(self.database).store)

    def test_changes_that_broke_the_hold_are_found(self):
        """As on another node of a Galera cluster, or by a conductor that was asleep."""
        self.run_import()
        self.database.write(lambda tx: events.insert_while_held(tx, [events.NewEvent(
            base.new_uuid(), "resource_provider.create", bulk.now(), "{}", "")]))
        self.run_import(code=1)
        self.assertIn("(1 resource_provider.create)", self.errors)
        self.database.write(queries.release)
        self.run_import(code=1)
        self.assertIn("released without '--finish'", self.errors)

    def publish_and_prune(self):
        """Delete all events, as a relay and housekeeping do in the course of time."""
        later = bulk.now() + datetime.timedelta(hours=1)

        def change(tx):
            leases.acquire(tx, "relay", "test", 60)
            batch = relaying.next_batch(tx, "relay", "test", None, 1000)
            relaying.mark_published(tx, batch.read_from, batch.last)
            events.prune(tx, later)

        self.database.write(change)
        self.assertEqual([], self.types())

    def test_changes_whose_events_were_pruned_are_found(self):
        self.api().create_trait(None, "CUSTOM_TRIAL")
        self.api().delete_trait(None, "CUSTOM_TRIAL")
        self.publish_and_prune()
        # Those of before the import and those of the import count for nothing.
        self.run_import()
        placement_contents.change(self.cloud)
        self.run_import()
        self.publish_and_prune()
        self.run_import()
        self.database.write(lambda tx: events.insert_while_held(tx, [events.NewEvent(
            base.new_uuid(), "resource_provider.create", bulk.now(), "{}", "")]))
        self.publish_and_prune()
        for arguments in ((), ("--dry-run",), ("--finish",)):
            self.run_import(*arguments, code=1)
            self.assertIn("(1 whose events were pruned)", self.errors)

    def test_an_import_that_an_earlier_release_began_goes_on(self):
        """It has not counted the events before it."""
        self.run_import()
        self.database.write(lambda tx: tx.execute(
            sa.update(models.import_state).values(events_before=None)))
        placement_contents.change(self.cloud)
        self.run_import("--finish")

    def test_services_of_older_releases_are_not_left_alive(self):
        identity = {"binary": "placement-rpc-conductor", "host": "old", "worker": 0}
        self.database.write(lambda tx: services.beat(tx, identity, {
            "version": "0.9", "rpc_version": "1.2"}, started=True))
        for arguments in ((), ("--dry-run",)):
            self.run_import(*arguments, code=1)
            self.assertIn("placement-rpc-conductor 0 on old (version 0.9)", self.errors)
        self.database.write(lambda tx: services.remove(tx, identity))
        self.run_import()

    def test_wrong_arguments_and_databases(self):
        for arguments in ((), ("--dry-run",), ("--from", "x", "--dry-run", "--finish")):
            self.manage("import", *arguments, code=2)
        self.manage("import", "--from", self.store.conf.database.connection, code=1)
        self.manage("import", "--from", "sqlite:////nowhere/at/all.sqlite", code=1)
        self.assertFalse(holding.is_held(self.database))

    def test_the_address_may_be_in_a_file(self):
        path = self.useFixture(fixtures.TempDir()).join("placement.conf")
        pathlib.Path(path).write_text(f"[placement_database]\nconnection = {self.cloud.url}\n")
        self.manage("import", "--from-config", path)
        self.assert_equal()

    def test_billing_begins_when_it_is_finished(self):
        """Whether the report begins before the import, after it, or ends before it is over."""
        began = now()
        self.run_import()
        held = now()
        self.run_import("--finish")
        finished = now()
        end = finished + datetime.timedelta(hours=1)
        consumers = len(self.contents()["consumers"])
        for begin in (began, held, finished):
            account = UsageAccount(begin, end)
            for event in self.published():
                account.apply(event)
            self.assertTrue(account.complete)
            hours = sum(line.resource_hours / line.held for line in account.lines())
            self.assertGreater(consumers, 10)
            # An hour of each amount that is held, and not what went before.
            lines = len(account.lines())
            self.assertAlmostEqual(lines, float(hours), delta=lines * 0.01)
        account = UsageAccount(began, held)
        for event in self.published():
            account.apply(event)
        self.assertEqual((True, []), (account.complete, [
            line for line in account.lines() if line.held or line.resource_hours]))


def now():
    return datetime.datetime.now(datetime.UTC)
