# SPDX-License-Identifier: Apache-2.0
"""What a batch locks and reads before it is settled: the same on each database."""

import contextlib
import datetime
from concurrent import futures

import sqlalchemy as sa
import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.accounting import batch, idempotency
from placement_rpc.accounting.claims import ClaimChange, request_of_claim
from placement_rpc.db import api as db
from placement_rpc.db import models
from placement_rpc.db.queries import claims, hold, inventories, locked_reads, locking, requests
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import lock_waits


class _ReadsTest(testscenarios.WithScenarios, base.TestCase):

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(servers.new_database(self.kind)))
        self.database = self.store.database
        self.api = api.PlacementAPI("local", self.store.conf, manager=manager.Manager(
            self.store.conf, self.database))
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.uuids = sorted(self.provider(f"provider {number}") for number in range(3))

    def provider(self, name):
        uuid = self.api.create_provider(None, name).uuid
        self.api.set_inventory(None, uuid, [
            base.inventory("VCPU", {"total": 100, "allocation_ratio": 16.123456789}),
            base.inventory("CUSTOM_GOLD", 10)])
        return uuid

    def claimed(self, *providers, **fields):
        """Return the uuid of a new consumer of providers."""
        wanted = base.claim(
            {uuid: {"VCPU": 1, "CUSTOM_GOLD": 2} for uuid in providers}, **fields)
        self.api.claim_allocations(None, wanted)
        return wanted.consumer_uuid

    def assert_locked(self, consumer, is_locked, providers):
        """Check what no other transaction can lock: a consumer or not, and which providers."""
        other = db.Database(self.store.conf)
        self.addCleanup(other.close)
        with other.writer() as tx:
            self.assertEqual({consumer} if is_locked else set(),
                             locking.lock_free_consumers(tx, [consumer])[1])
            self.assertEqual(set(providers), locking.lock_free_providers(tx, self.uuids)[1])

    def stored(self):
        """Store the outcome of a request; return its id."""
        found = idempotency.Request(base.new_uuid(), "claim_allocations", "f" * 64)
        with self.database.writer() as tx:
            requests.insert(tx, [requests.NewRequest(*found.row('{"text": "\\u00fc \\\\ \\" "}'))])
        return found.request_id


class LockedReadsTest(_ReadsTest):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def expected(self, consumers, providers):
        """Return the same, read without a lock and each kind of row by itself."""
        with self.database.reader() as tx:
            def rows(table, column, values, *names):
                return sorted(tuple(row) for row in tx.execute(sa.select(
                    *(table.c[name] for name in names)).where(table.c[column].in_(values))))

            found = rows(models.consumers, "uuid", consumers, *locked_reads.Consumer._fields)
            held = rows(models.allocations, "consumer_id", [row[0] for row in found],
                        *locked_reads.Held._fields)
            named = rows(models.resource_providers, "uuid", providers,
                         *locked_reads.Provider._fields)
            found_inventories = rows(
                models.inventories, "resource_provider_id", [row[0] for row in named],
                *inventories.COLUMNS)
        return found, held, named, found_inventories

    def found(self, consumers, providers):
        with self.database.writer() as tx:
            rows = locked_reads.lock(tx, consumers, providers)
        self.assertEqual({}, rows.stored)
        return (sorted(tuple(row) for row in rows.consumers),
                sorted((row.consumer_id, row.resource_provider_id, row.resource_class_id, row.used)
                       for row in rows.held),
                sorted(tuple(row) for row in rows.providers),
                sorted(tuple(row) for row in rows.inventories))

    def test_it_finds_what_is_named_and_where_the_consumers_hold_something(self):
        first, second, third = self.uuids
        typed = self.claimed(first, third, consumer_type="INSTANCE")
        other = self.claimed(third)
        named = {typed, other, base.new_uuid()}
        found = self.found(named, {second, base.new_uuid()})
        self.assertEqual([2, 6, 3, 6], [len(rows) for rows in found])
        # Of the same types, too: a whole ratio is not an int.
        self.assertEqual(repr(self.expected(named, self.uuids)), repr(found))

    def test_providers_alone(self):
        consumer = self.claimed(self.uuids[0])
        found = self.found((), self.uuids[:2])
        self.assertEqual(([], [], *self.expected([consumer], self.uuids[:2])[2:]), found)
        self.assertEqual([0, 0, 2, 4], [len(rows) for rows in found])

    def test_consumers_alone(self):
        consumer = self.claimed(self.uuids[1])
        found = self.found([consumer], ())
        self.assertEqual(self.expected([consumer], self.uuids[1:2]), found)
        self.assertEqual([1, 2, 1, 2], [len(rows) for rows in found])

    def test_values_keep_their_types_and_all_their_digits(self):
        consumer = self.claimed(self.uuids[0])
        at = datetime.datetime(2026, 11, 27, 1, 2, 3)
        for microsecond in (0, 100, 120_000):
            with self.database.writer() as tx:
                tx.execute(sa.update(models.consumers).values(
                    created_at=at.replace(microsecond=microsecond), generation=2 ** 62 + 1,
                    project_id="ü \\ \" '"))
                tx.execute(sa.update(models.resource_providers).values(generation=2 ** 53 + 1))
                tx.execute(sa.update(models.inventories).values(
                    capacity=2 ** 62 + 1, allocation_ratio=1e-7))
            self.assertEqual(repr(self.expected([consumer], self.uuids)),
                             repr(self.found([consumer], self.uuids)))

    def test_nothing(self):
        self.assertEqual(([], [], [], []), self.found((), ()))
        self.assertEqual(([], [], [], []), self.found([base.new_uuid()], [base.new_uuid()]))

    def test_a_request_that_has_an_outcome(self):
        consumer, stored = self.claimed(self.uuids[0]), self.stored()
        with self.database.writer() as tx:
            rows = locked_reads.lock(tx, [consumer], self.uuids, {stored, base.new_uuid()})
            expected = requests.find(tx, [stored])
        self.assertEqual({stored: tuple(expected[stored])},
                         {id_: tuple(row)[:4] for id_, row in rows.stored.items()})
        self.assertEqual([0] * 4, [len(each) for each in (
            rows.consumers, rows.held, rows.providers, rows.inventories)])

    def test_a_request_of_a_store_that_is_held(self):
        consumer, stored = self.claimed(self.uuids[0]), self.stored()
        with self.database.writer() as tx:
            hold.set_(tx, "it is moved")
        with self.database.writer() as tx:
            error = self.assertRaises(exception.StoreHeld, locked_reads.lock, tx, [consumer],
                                      self.uuids, {stored, base.new_uuid()})
            self.assertIn("it is moved", error.text)
            rows = locked_reads.lock(tx, [consumer], self.uuids, {stored})
            self.assertEqual([stored], list(rows.stored))


class SettledBatchTest(_ReadsTest):
    """A batch of requests that were settled before, new ones, and ones that come too late."""

    scenarios = LockedReadsTest.scenarios

    def change(self, deadline=None):
        wanted = base.claim({self.uuids[0]: {"VCPU": 1}})
        return ClaimChange(request_of_claim(base.new_uuid(), wanted), wanted, deadline)

    def settle(self, *pending):
        """Return of each outcome whether it is a replay, and the type of its error."""
        return [(each.replayed, type(each.error)) for each in batch.settle(
            self.database, pending)]

    def test_each_has_its_outcome(self):
        done, new, late = self.change(), self.change(), self.change(deadline=1.0)
        none = type(None)
        self.assertEqual([(False, none)], self.settle(done))
        self.assertEqual(
            [(True, none), (False, none), (True, none), (False, exception.RequestExpired)],
            self.settle(done, new, ClaimChange(new.request, new.claim), late))
        self.assertEqual([(True, none)] * 2, self.settle(new, done))
        self.assertEqual([(False, exception.RequestExpired)], self.settle(late))
        self.assertEqual(2, {each.resource_class: each.used for each in self.api.get_usages(
            None, self.uuids[0]).objects}["VCPU"])


class LockTest(_ReadsTest):
    """Which rows are locked afterwards.

    On SQLite a transaction that writes is the only one.
    """

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    def setUp(self):
        super().setUp()
        self.consumer = self.claimed(self.uuids[0])

    def test_what_was_found(self):
        with self.database.writer() as tx:
            locked_reads.lock(tx, [self.consumer], self.uuids[1:2], {base.new_uuid()})
            self.assert_locked(self.consumer, True, self.uuids[:2])

    def test_nothing_for_a_request_that_has_an_outcome(self):
        stored = self.stored()
        with self.database.writer() as tx:
            locked_reads.lock(tx, [self.consumer], self.uuids, {stored, base.new_uuid()})
            self.assert_locked(self.consumer, False, ())

    def test_nothing_while_the_store_is_held(self):
        with self.database.writer() as tx:
            hold.set_(tx, "it is moved")
        with self.database.writer() as tx:
            self.assertRaises(exception.StoreHeld, locked_reads.lock, tx, [self.consumer],
                              self.uuids, {base.new_uuid()})
            self.assert_locked(self.consumer, False, ())


class WaitTest(_ReadsTest):
    """What another transaction commits while its locks are waited for is read."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    @contextlib.contextmanager
    def waiting(self, lock, uuid, *wanted):
        """Lock a row in another transaction, and have a thread wait for it.

        :param lock: locks a row, as :func:`claims.lock_providers`
        :param uuid: of the row
        :param wanted: what the thread locks: uuids of consumers, and uuids of providers

        :returns: the connection of the other transaction, and the future of what is found
        """
        other = db.Database(self.store.conf)
        self.addCleanup(other.close)

        def read():
            with self.database.writer() as tx:
                return locked_reads.lock(tx, *wanted)

        with futures.ThreadPoolExecutor(1) as pool, other.writer() as tx:
            lock(tx, [uuid])
            found = pool.submit(read)
            lock_waits.wait_for_waiter(self.database)
            yield tx, found

    def test_of_a_provider(self):
        uuid = self.uuids[0]
        with self.waiting(claims.lock_providers, uuid, (), [uuid]) as (tx, found):
            provider, = claims.lock_providers(tx, [uuid])
            tx.execute(sa.update(models.inventories).where(
                models.inventories.c.resource_provider_id == provider.id).values(used=7))
            claims.set_generations(tx, {provider.id: 99}, {provider.id: provider.generation})
        rows = found.result()
        self.assertEqual([99], [row.generation for row in rows.providers])
        self.assertEqual([7, 7], [row[3] for row in rows.inventories])

    def test_of_a_consumer(self):
        first, second, _ = self.uuids
        consumer = self.claimed(second)
        with self.waiting(claims.lock_consumers, consumer, [consumer], ()) as (tx, found):
            row, = claims.lock_consumers(tx, [consumer])
            provider, = claims.lock_providers(tx, [first])
            tx.execute(sa.update(models.allocations).where(
                models.allocations.c.consumer_id == row.id).values(
                    resource_provider_id=provider.id))
            claims.update_consumers(tx, {row.id: {
                "project_id": "another", "user_id": "user", "generation": 5,
                "consumer_type_id": None}})
        rows = found.result()
        self.assertEqual([("another", 5)], [
            (row.project_id, row.generation) for row in rows.consumers])
        self.assertEqual([provider.id], [row.id for row in rows.providers])
        self.assertEqual({provider.id}, {row.resource_provider_id for row in rows.held})

    def test_providers_are_locked_in_the_order_of_their_uuids(self):
        first, second, third = self.uuids
        consumer = self.claimed(first)
        with self.waiting(claims.lock_providers, second, [consumer], [third, second]):
            self.assert_locked(consumer, True, [first, second])

    def test_consumers_are_locked_before_providers(self):
        consumer = self.claimed(self.uuids[0])
        with self.waiting(claims.lock_consumers, consumer, [consumer], self.uuids):
            self.assert_locked(consumer, True, ())
