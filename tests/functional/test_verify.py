# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement verify``: what it finds, prints and exits with."""

import contextlib
import datetime
import json
import pathlib
import sqlite3
import time
from unittest import mock

import fixtures
import sqlalchemy as sa

from placement_rpc.cmd import manage, manage_placement_verify
from placement_rpc.db import models
from placement_rpc.db.placement import schema
from placement_rpc.db.queries import import_state
from tests import base, moving_stores, placement_cloud, placement_contents, programs
from tests.filled_placement import FilledCloud
from tests.placement_contents import Writer, uuid_of


def _dump(url):
    with contextlib.closing(sqlite3.connect(sa.make_url(url).database)) as connection:
        return list(connection.iterdump())


class VerifyCase(base.TestCase):
    """A filled Placement database, and a store that it was imported into."""

    is_filled = True

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(
            FilledCloud() if self.is_filled else placement_cloud.PlacementCloud())
        self.store = self.useFixture(moving_stores.MovedTo())

    def bring(self, *arguments):
        self.store.done("import", "--from", self.cloud.url, *arguments)

    def verify(self, *arguments, wait="0"):
        """Run it; return its exit code and its JSON document."""
        done = self.store.run("verify", "--from", self.cloud.url, "--wait", wait,
                              "--format", "json", *arguments)
        return done.code, json.loads(done.stdout)

    def differences(self, *arguments, code=1):
        """Run it; return its exit code's differences by kind and key."""
        found, document = self.verify(*arguments)
        self.assertEqual(code, found, document)
        return {(each["kind"], each["key"]): each for each in document["differences"]}

    def spoil_store(self, statement):
        """Change a row of this service's store behind its back."""
        with self.store.database.writer() as tx:
            self.assertEqual(1, tx.execute(statement).rowcount)

    def change_placement(self, statement):
        with self.cloud.engine.begin() as tx:
            self.assertEqual(1, tx.execute(statement).rowcount)


class VerifyTest(VerifyCase):

    def test_an_imported_store_is_the_same(self):
        self.bring()
        code, document = self.verify()
        self.assertEqual((0, []), (code, document["differences"]))
        counts = {each["kind"]: each for each in document["kinds"]}
        with self.cloud.engine.connect() as tx:
            number = tx.execute(sa.select(sa.func.count()).select_from(
                schema.allocations)).scalar()
        self.assertEqual({"kind": "allocations", "placement": number, "store": number,
                          "different": 0, "younger": 0}, counts["allocations"])
        self.assertEqual(0, self.store.run(
            "verify", "--from", self.cloud.url, "--format", "table").code)

    def test_an_empty_store_lacks_everything(self):
        found, document = self.verify()
        self.assertEqual(1, found)
        for each in document["kinds"]:
            self.assertEqual((0, each["placement"], 0),
                             (each["store"], each["different"], each["younger"]), each)
            self.assertLess(0, each["placement"])

    def test_each_kind_of_row_is_compared(self):
        """A change of any value of any kind is found, whichever side it is on."""
        self.bring()
        changes = {
            "providers": sa.update(models.resource_providers).where(
                models.resource_providers.c.name == "compute0.example").values(name="other"),
            "inventories": sa.update(models.inventories).where(
                models.inventories.c.total == 64, models.inventories.c.resource_provider_id ==
                sa.select(models.resource_providers.c.id).where(
                    models.resource_providers.c.name == "compute1.example").scalar_subquery(),
            ).values(allocation_ratio=3.9),
            "consumers": sa.update(models.consumers).where(
                models.consumers.c.uuid == uuid_of("iron")).values(user_id="other"),
            "allocations": sa.update(models.allocations).where(
                models.allocations.c.consumer_id == sa.select(models.consumers.c.id).where(
                    models.consumers.c.uuid == uuid_of("iron")).scalar_subquery()).values(used=2)}
        for statement in changes.values():
            self.spoil_store(statement)
        found = self.differences()
        self.assertEqual(list(changes), [kind for kind, _ in found])
        self.assertEqual([
            ({"name": "compute0.example"}, {"name": "other"}),
            ({"allocation_ratio": 4.0}, {"allocation_ratio": 3.9}),
            ({"user": "Ünïcode user"}, {"user": "other"}),
            ({"used": 1}, {"used": 2})],
            [(each["placement"], each["store"]) for each in found.values()])
        self.assertEqual({None}, {each["younger"] for each in found.values()})

    def test_a_table_says_the_same(self):
        self.bring()
        self.spoil_store(sa.update(models.consumers).where(
            models.consumers.c.uuid == uuid_of("iron")).values(user_id="other"))
        done = self.store.run("verify", "--from", self.cloud.url, "--format", "table",
                              "--wait", "0")
        self.assertEqual(1, done.code)
        self.assertIn(f"consumers {uuid_of('iron')}: user Ünïcode user in Placement, other here\n",
                      done.stdout)
        self.assertNotIn("hold the same", done.stdout)

    def test_the_lines_of_a_table_are_limited(self):
        done = self.store.run("verify", "--from", self.cloud.url, "--format", "table",
                              "--wait", "0", "--limit", "2")
        lines = [line for line in done.stdout.splitlines() if line.startswith("allocations ")]
        self.assertEqual(2, len(lines), lines)
        self.assertIn("only in Placement: used ", lines[0])
        self.assertRegex(done.stdout, r"allocations: \d+ more; --limit prints them")

    def test_nothing_is_changed(self):
        self.bring()
        self.change_placement(sa.delete(schema.consumers).where(
            schema.consumers.c.uuid == uuid_of("iron")))
        before = [_dump(self.cloud.url), _dump(self.store.url)]
        self.assertEqual(1, self.verify()[0])
        self.assertEqual(before, [_dump(self.cloud.url), _dump(self.store.url)])

    def test_the_url_may_come_from_placements_configuration(self):
        self.bring()
        path = self.useFixture(fixtures.TempDir()).join("placement.conf")
        pathlib.Path(path).write_text(f"[placement_database]\nconnection = {self.cloud.url}\n")
        self.assertEqual(0, self.store.run("verify", "--from-config", path).code)


class YoungerTest(VerifyCase):
    """Both stores are in use while they are compared."""

    def test_what_changed_in_placement_since_the_import_is_younger(self):
        self.bring()
        placement_contents.change(self.cloud)
        found = self.differences()
        self.assertEqual({"changed in Placement since the last import",
                          "deleted in Placement since the last import"},
                         {each["younger"] for each in found.values()})
        # Of a released allocation there is no trace in Placement.
        self.assertIn(("consumers", uuid_of("server01")), found)
        self.differences("--allow-younger", code=0)
        self.bring()
        self.assertEqual({}, self.differences(code=0))

    def test_times_of_whole_seconds(self):
        """Placement's row of the second in which the import began may be younger than that."""
        self.bring()
        Writer(self.cloud).provider("late.example")
        with self.store.database.reader() as tx:
            began = import_state.get(tx).pass_begun_at
        table = schema.resource_providers
        for earlier, code in ((0, 0), (1, 1)):
            self.change_placement(sa.update(table).where(
                table.c.uuid == uuid_of("late.example")).values(
                    created_at=began.replace(microsecond=0) - datetime.timedelta(seconds=earlier),
                    updated_at=None))
            found = self.differences("--allow-younger", code=code)
            self.assertIn(("providers", uuid_of("late.example")), found)

    def test_what_no_import_has_brought_is_not(self):
        self.bring()
        placement_contents.change(self.cloud)
        self.spoil_store(sa.update(models.consumers).where(
            models.consumers.c.uuid == uuid_of("iron")).values(user_id="other"))
        found = self.differences("--allow-younger")
        self.assertEqual([("consumers", uuid_of("iron"))],
                         [key for key, each in found.items() if each["younger"] is None])

    def test_what_changed_here_since_the_import_was_finished_is_younger(self):
        self.bring("--finish")
        service = self.useFixture(moving_stores.Serving(self.store.url))
        placement_contents.change(service)
        found = self.differences()
        self.assertEqual({"changed here since the import was finished",
                          "deleted here since the import was finished"},
                         {each["younger"] for each in found.values()})

    def test_a_row_that_changes_between_the_looks_is_younger(self):
        self.bring()
        self.use(7)
        with self.meanwhile(8):
            found = self.differences()
        self.assertEqual(["changed while it was compared"],
                         [each["younger"] for each in found.values()])
        self.assertEqual([{"used": 8}], [each["placement"] for each in found.values()])

    def test_a_difference_that_is_gone_at_the_second_look_was_none(self):
        self.bring()
        self.use(7)
        with self.meanwhile(1):
            self.assertEqual({}, self.differences(code=0))

    def meanwhile(self, amount):
        """Return a context in which an allocation changes between the first look and the next."""
        # No other thread of this process may sleep by it.
        clock = mock.Mock(wraps=time, sleep=lambda _: self.use(amount))
        return mock.patch.object(manage_placement_verify, "time", clock)

    def use(self, amount):
        """Change an allocation in Placement without the traces that its API leaves."""
        self.change_placement(sa.update(schema.allocations).where(
            schema.allocations.c.consumer_id == uuid_of("iron")).values(used=amount))


class RefusedTest(VerifyCase):
    """Databases that are none of Placement's, or of revisions that are not known."""

    is_filled = False

    def error(self, url):
        done = self.store.run("verify", "--from", url)
        # Not 1, which says that there are differences.
        self.assertEqual((2, ""), (done.code, done.stdout))
        return done.stderr

    def test_an_unknown_revision_is_refused_by_name(self):
        self.change_placement(sa.update(schema.alembic_version).values(
            version_num="0123456789ab"))
        error = self.error(self.cloud.url)
        for text in ("0123456789ab", *schema.REVISIONS):
            self.assertIn(text, error)

    def test_no_database_of_placement(self):
        path = self.useFixture(fixtures.TempDir()).join("empty.sqlite")
        pathlib.Path(path).touch()
        self.assertIn("no table alembic_version", self.error(f"sqlite:///{path}"))

    def test_a_store_of_this_service_is_none_of_placements(self):
        self.assertIn("is not known", self.error(self.store.url))

    def test_a_file_that_does_not_exist(self):
        self.assertIn("there is no file /nowhere/x", self.error("sqlite:////nowhere/x"))

    def test_a_server_that_does_not_answer(self):
        for url in ("mysql://user:secret@127.0.0.1:1/placement",
                    "postgresql://user:secret@127.0.0.1:1/placement"):
            error = self.error(url)
            self.assertIn("cannot be reached", error)
            self.assertNotIn("secret", error)

    def test_a_database_without_a_table(self):
        with self.cloud.engine.begin() as tx:
            schema.projects.drop(tx)
        self.assertIn("has no table projects", self.error(self.cloud.url))

    def test_wrong_arguments(self):
        for arguments in ((), ("--from", "a", "--from-config", "b"),
                          ("--from", "a", "--wait", "-1"), ("--from", "a", "--wait", "x"),
                          ("--from", "a", "--limit", "-1")):
            error = self.assertRaises(SystemExit, programs.run, manage, "--database",
                                      self.store.url, "placement", "verify", *arguments)
            self.assertEqual(2, error.code)
