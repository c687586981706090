# SPDX-License-Identifier: Apache-2.0
"""Last night's backup is restored, and listeners have events that the store does not have.

The commands are those of ``docs/source/backup.rst``.
"""

import json
import pathlib

import fixtures
import testscenarios

from placement_rpc.cmd import manage, status
from placement_rpc.testing import fixtures as placement_fixtures
from tests import backups, base, programs, servers, stream_books


class RestoreTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in (
        servers.DATABASES if base.FULL else ("sqlite", "mariadb"))]

    def setUp(self):
        super().setUp()
        directory = self.useFixture(fixtures.TempDir())
        self.url = servers.new_database(self.kind) if self.kind != "sqlite" else (
            f"sqlite:///{directory.join('placement.sqlite')}")
        self.backup = backups.BACKUPS[self.kind](self.url, directory.path)
        self.file = pathlib.Path(directory.join("placement-rpc.conf"))
        self.use_new_broker()

    def use_new_broker(self):
        self.broker = self.useFixture(servers.VirtualHost())
        self.file.write_text(f"[DEFAULT]\ntransport_url = {self.broker.url}\n"
                             f"[database]\nconnection = {self.url}\n")

    def running(self):
        return placement_fixtures.RunningService(
            transport_url=self.broker.url, database_url=self.url)

    def run_program(self, program, *arguments):
        done = programs.run(program, "--config-file", str(self.file), *arguments)
        self.assertEqual("", done.stderr)
        return json.loads(done.stdout)

    def checked(self):
        """Return the results of the checks of an upgrade that concern the stream."""
        checks = self.run_program(status, "upgrade", "check", "--json")["checks"]
        return [each["result"] for each in checks if "stream" in each["check"]]

    def books(self, stream):
        """Return the books of a listener that reads the stream from its first event on."""
        return stream_books.read(self.broker.url, stream)

    def claim(self, service, provider, amount, consumer=None):
        wanted = base.claim({provider: {"VCPU": amount}}, consumer)
        service.api.claim_allocations(None, wanted)
        return wanted.consumer_uuid

    def before(self):
        """Take a backup while the service runs, and lose what is changed after it."""
        with self.running() as service:
            kept = service.api.create_provider(None, "kept").uuid
            service.api.set_inventory(None, kept, [base.inventory("VCPU", 100)])
            consumer = self.claim(service, kept, 1)
            base.wait_published(service.database)
            self.backup.take()
            lost = service.api.create_provider(None, "lost").uuid
            service.api.set_inventory(None, lost, [base.inventory("VCPU", 10)])
            self.claim(service, lost, 2)
            self.claim(service, kept, 3, consumer)
            service.api.set_inventory(None, kept, [base.inventory("VCPU", 50)])
            service.api.create_trait(None, "CUSTOM_LOST")
            last = base.wait_published(service.database)
        self.backup.restore()
        return service.conf.notifications.stream, kept, consumer, last

    def test_the_store_and_its_listeners_are_brought_together(self):
        stream, kept, consumer, last = self.before()
        found, = self.run_program(manage, "outbox", "status")
        self.assertIn(f"events up to position {last}", found["difference"])
        found, = self.run_program(manage, "outbox", "reconcile", "--dry-run")
        self.assertEqual((6, 2, 2), (found["lost"], found["providers"], found["consumers"]))
        self.run_program(manage, "outbox", "reconcile")
        with self.running() as service:
            self.assertEqual(
                {kept: {"VCPU": 1}},
                service.api.get_allocations(None, consumer).by_provider())
            self.claim(service, kept, 5)
            base.wait_published(service.database)
            books, now = self.books(stream), stream_books.stored(service.database)
        self.assertEqual(now, books.as_stored())
        self.assertEqual(([], [], 2), (books.gaps, books.broken, len(books.epochs)))
        taken_back, = books.reconciled
        self.assertEqual({"CUSTOM_LOST": False}, taken_back.payload["traits"])
        found, = self.run_program(manage, "outbox", "status")
        self.assertEqual("", found["difference"])

    def test_a_broker_that_was_replaced_gets_the_events_again(self):
        with self.running() as service:
            provider = service.api.create_provider(None, "provider").uuid
            service.api.set_inventory(None, provider, [base.inventory("VCPU", 100)])
            self.claim(service, provider, 1)
            last = base.wait_published(service.database)
        self.use_new_broker()
        found, = self.run_program(manage, "outbox", "status")
        self.assertEqual((last, 0), (found["published_position"], found["unsent"]))
        self.assertIn(f"events up to position {last} were published", found["difference"])
        self.assertEqual([0], self.checked())
        done = programs.run(
            manage, "--config-file", str(self.file), "outbox", "replay", "--position", "1")
        self.assertEqual((0, ""), (done.code, done.stderr))
        with self.running() as service:
            self.claim(service, provider, 2)
            base.wait_published(service.database)
            books = self.books(service.conf.notifications.stream)
            self.assertEqual(stream_books.stored(service.database), books.as_stored())
        self.assertEqual(([], []), (books.gaps, books.broken))
        found, = self.run_program(manage, "outbox", "status")
        self.assertEqual("", found["difference"])

    def test_services_that_were_started_too_early_publish_nothing(self):
        stream, kept, _, last = self.before()
        with self.running() as service:
            base.wait_until(lambda: service.conductor.relay.difference)
            self.claim(service, kept, 5)
            self.assertEqual(last, self.books(stream).position)
            self.assertEqual([2], self.checked())
            self.run_program(manage, "outbox", "reconcile")
            base.wait_until(lambda: service.conductor.relay.difference is None)
            base.wait_published(service.database)
            self.assertEqual(stream_books.stored(service.database),
                             self.books(stream).as_stored())
