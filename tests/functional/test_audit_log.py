# SPDX-License-Identifier: Apache-2.0
"""The audit log: who changed what, from the events."""

import json
import pathlib
import stat

import fixtures

from placement_rpc import exception
from placement_rpc.cmd import manage
from placement_rpc.context import RequestContext
from placement_rpc.db.queries import events
from placement_rpc.notifications.audit_log import AuditLog
from placement_rpc.notifications.event import Event
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class AuditLogTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService())
        self.api = self.service.api
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "audit.json"
        self.seen = self.last()

    def last(self):
        with self.service.database.reader() as tx:
            return events.last_position(tx)

    def written(self):
        """Handle the events since the last call; return all lines of the file."""
        base.wait_published(self.service.database, 20)
        with self.service.database.reader() as tx:
            rows = events.after(tx, self.seen, 1000)
        log = AuditLog(self.path)
        for row in rows:
            log(Event.of_row(row))
        self.seen = rows[-1].position if rows else self.seen
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def test_who_changed_what(self):
        ada = RequestContext(user_id="ada", project_id="blue", auth_token="secret")
        eve = RequestContext(user_id="eve", project_id="red", auth_token="secret")
        node = self.api.create_provider(ada, "node").uuid
        self.api.set_inventory(ada, node, [base.inventory("VCPU", 8)])
        self.api.create_trait(ada, "CUSTOM_A")
        claim = base.claim({node: {"VCPU": 2}})
        self.api.claim_allocations(eve, claim)
        self.assertRaises(exception.CapacityExceeded, self.api.claim_allocations, eve,
                          base.claim({node: {"VCPU": 99}}))
        self.api.release_allocations(ada, claim.consumer_uuid)
        lines = self.written()
        self.assertEqual(
            [("resource_provider.create", "ada", "provider", node, "success"),
             ("inventory.create", "ada", "provider", node, "success"),
             ("trait.create", "ada", "trait", "CUSTOM_A", "success"),
             ("allocation.create", "eve", "consumer", claim.consumer_uuid, "success")],
            [(each["action"], each["user_id"], each["target_type"], each["target"],
              each["outcome"]) for each in lines[:4]])
        self.assertEqual(("allocation.claim.refused", "eve", "red", "failure"), tuple(
            lines[4][name] for name in ("action", "user_id", "project_id", "outcome")))
        self.assertEqual(("allocation.delete", "ada", claim.consumer_uuid), tuple(
            lines[5][name] for name in ("action", "user_id", "target")))
        change, = lines[3]["details"]["providers"]
        self.assertEqual(({}, {"VCPU": 2}), (change["before"], change["after"]))
        self.assertEqual(sorted(each["position"] for each in lines),
                         [each["position"] for each in lines])
        self.assertNotIn("secret", self.path.read_text())

    def test_a_change_of_the_service_itself_has_no_initiator(self):
        self.api.create_provider(None, "node")
        line, = self.written()
        self.assertEqual((None, None), (line["user_id"], line["project_id"]))

    def test_reports_of_what_is_stored_are_no_changes(self):
        node = self.api.create_provider(None, "node").uuid
        self.api.set_inventory(None, node, [base.inventory("VCPU", 8)])
        self.api.claim_allocations(None, base.claim({node: {"VCPU": 1}}))
        before = len(self.written())
        self.assertEqual(0, manage.main([
            "--database", self.service.conf.database.connection, "outbox", "snapshot"]))
        self.assertEqual(before, len(self.written()))
        self.assertLess(before, self.seen)

    def test_the_file_is_private_and_can_be_rotated(self):
        self.api.create_provider(None, "first")
        self.written()
        self.assertEqual(0, stat.S_IMODE(self.path.stat().st_mode) & 0o007)
        self.path.rename(f"{self.path}.1")
        self.api.create_provider(None, "second")
        self.assertEqual(["second"], [each["details"]["name"] for each in self.written()])

    def test_a_line_that_a_killed_process_left_unfinished(self):
        self.path.write_text('{"time": "20')
        self.api.create_provider(None, "node")
        base.wait_published(self.service.database, 20)
        with self.service.database.reader() as tx:
            row, = events.after(tx, self.seen, 10)
        AuditLog(self.path)(Event.of_row(row))
        unfinished, line = self.path.read_text().splitlines()
        self.assertEqual('{"time": "20', unfinished)
        self.assertEqual("resource_provider.create", json.loads(line)["action"])

    def test_it_needs_a_broker(self):
        errors = self.useFixture(fixtures.StringStream("stderr")).stream
        self.useFixture(fixtures.MonkeyPatch("sys.stderr", errors))
        self.assertNotEqual(0, manage.main([
            "--transport-url", "inprocess://none/", "--database", "sqlite://",
            "audit-log", "--file", str(self.path)]))
        errors.seek(0)
        self.assertIn("only RabbitMQ has events for a queue", errors.read())
