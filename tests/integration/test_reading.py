# SPDX-License-Identifier: Apache-2.0
"""Reading transactions: what they see, and how they leave the connections of the pool."""

import contextlib
from unittest import mock

import sqlalchemy as sa
import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.accounting import providers as accounting_providers
from placement_rpc.accounting.provider_lists import ProviderLists
from placement_rpc.db import api as db
from placement_rpc.db.queries import providers
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, database_sessions, servers


class ReadingTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        conf = self.useFixture(placement_fixtures.Store(servers.new_database(self.kind))).conf
        # One connection, which all transactions use in turn.
        self.database = db.Database(conf, connections=1)
        self.addCleanup(self.database.close)
        self.other = db.Database(conf)
        self.addCleanup(self.other.close)

    def names(self):
        with self.database.reader() as tx:
            return [row.name for row in providers.page(tx, limit=10).rows]

    def fail_to_write(self):
        def change(tx):
            providers.insert(tx, base.new_uuid(), "forgotten")
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, self.database.write, change)

    def test_a_change_that_fails_is_rolled_back(self):
        self.assertEqual([], self.names())
        self.fail_to_write()
        self.database.write(lambda tx: providers.insert(tx, base.new_uuid(), "kept"))
        self.assertEqual(["kept"], self.names())

    def test_reads_that_fail(self):
        def fails(tx):
            tx.execute(sa.select(sa.literal(1)))
            raise ZeroDivisionError

        def wrong(tx):
            tx.exec_driver_sql("SELECT nothing FROM nowhere")

        for snapshot in (False, True):
            for read, error in ((fails, ZeroDivisionError), (wrong, Exception)):
                def attempt(read=read, snapshot=snapshot):
                    with self.database.reader(snapshot) as tx:
                        read(tx)

                self.assertRaises(error, attempt)
                self.fail_to_write()
                self.assertEqual([], self.names())

    def test_a_snapshot_sees_one_state(self):
        with self.database.reader(snapshot=True) as tx:
            self.assertEqual([], providers.page(tx, limit=10).rows)
            self.other.write(lambda tx: providers.insert(tx, base.new_uuid(), "later"))
            self.assertEqual([], providers.page(tx, limit=10).rows)
        self.assertEqual(["later"], self.names())

    def test_a_name_with_a_blank_at_its_end_is_another_one(self):
        """MariaDB takes them for equal."""
        self.database.write(lambda tx: providers.insert(tx, base.new_uuid(), "name"))
        with self.database.reader() as tx:
            self.assertEqual([], providers.page(tx, name="name ", limit=10).rows)
            self.assertEqual(1, len(providers.page(tx, name="name", limit=10).rows))

    def test_a_page_after_a_provider_that_was_deleted_meanwhile(self):
        """Between its check and the page."""
        uuids = [base.new_uuid() for _ in range(3)]
        for uuid in uuids:
            self.database.write(lambda tx, uuid=uuid: providers.insert(tx, uuid, uuid))
        get = accounting_providers.get_or_404

        def deleted(tx, uuid):
            found = get(tx, uuid)
            if self.kind != "sqlite":
                # There, a reader sees one state.
                self.other.write(lambda tx: providers.delete(tx, found.id))
            return found

        with mock.patch.object(accounting_providers, "get_or_404", deleted):
            page = ProviderLists(self.database).page(10, marker=uuids[0])
        self.assertEqual(uuids[1:], [each.uuid for each in page.objects])

    def test_a_session_that_was_ended(self):
        if self.kind == "sqlite":
            # It has no sessions.
            return

        def attempt():
            with self.database.reader() as tx:
                database_sessions.end(self.kind, tx, self.other)
                providers.page(tx, limit=1)

        self.assertRaises(exception.StoreUnavailable, attempt)
        self.assertEqual([], self.names())
        self.fail_to_write()
        self.assertEqual([], self.names())

    def test_a_session_that_was_ended_after_its_last_statement(self):
        """What was read is right; the one that has the connection next may learn of it."""
        if self.kind == "sqlite":
            # It has no sessions.
            return

        def read(fails, snapshot):
            with self.database.reader(snapshot) as tx:
                found = [row.name for row in providers.page(tx, limit=10).rows]
                database_sessions.end(self.kind, tx, self.other)
                if fails:
                    raise ZeroDivisionError
                return found

        for snapshot in (False, True):
            self.assertEqual([], read(False, snapshot))
            self.await_connection()
            self.assertRaises(ZeroDivisionError, read, True, snapshot)
            self.await_connection()
            self.fail_to_write()
            self.assertEqual([], self.names())

    def await_connection(self):
        """Read once more, which is refused at the most once."""
        try:
            self.names()
        except exception.StoreUnavailable:
            self.names()


class MomentTest(base.ContractTest):
    """What is read of a provider is of its generation, although others change it meanwhile."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def service_arguments(self):
        return {"transport": "local", "database_url": servers.new_database(self.kind)}

    def setUp(self):
        super().setUp()
        # Another process, whose changes are no part of what is read here.
        other = manager.Manager(self.service.conf, self.enterContext(
            contextlib.closing(db.Database(self.service.conf))))
        self.other = self.enterContext(contextlib.closing(
            api.PlacementAPI("local", self.service.conf, manager=other)))
        for number in range(8):
            self.api.create_trait(None, f"CUSTOM_{number}")

    def read(self, call, change):
        """Return the answer to a call of which each statement is followed by a change."""
        changes = iter(range(8))

        def change_one(*_arguments):
            change(next(changes))

        engine = self.service.database.engine
        sa.event.listen(engine, "after_cursor_execute", change_one)
        try:
            return call(None, self.uuid)
        finally:
            sa.event.remove(engine, "after_cursor_execute", change_one)

    def check(self, call, change, count):
        """Check that the generation of an answer says how many changes it contains."""
        self.uuid = self.provider(VCPU=100)
        begin = self.api.get_provider(None, self.uuid).generation
        change(0)
        found = self.read(call, lambda number: change(number + 1))
        self.assertEqual((begin + 1, 1), (found.generation, count(found)))
        # The changes were made, and the next answer has them.
        found = call(None, self.uuid)
        self.assertGreater(found.generation, begin + 1)
        self.assertEqual(found.generation - begin, count(found))

    def claim_one(self, _number):
        self.other.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))

    def test_inventories(self):
        self.check(self.api.get_inventory, self.claim_one, lambda found: found.objects[0].used)

    def test_usages(self):
        self.check(self.api.get_usages, self.claim_one, lambda found: found.objects[0].used)

    def test_allocations(self):
        self.check(self.api.get_provider_allocations, self.claim_one,
                   lambda found: len(found.objects))

    def test_aggregates(self):
        uuids = [base.new_uuid() for _ in range(9)]
        self.check(
            self.api.get_aggregates,
            lambda number: self.other.set_aggregates(None, self.uuid, uuids[:number + 1]),
            lambda found: len(found.aggregates))

    def test_traits(self):
        self.check(
            self.api.get_provider_traits, lambda number: self.other.set_provider_traits(
                None, self.uuid, [f"CUSTOM_{each}" for each in range(number + 1)]),
            lambda found: len(found.traits))
