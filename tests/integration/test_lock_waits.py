# SPDX-License-Identifier: Apache-2.0
"""A transaction that does not end: it delays only what needs its rows, and the server ends it."""

import contextlib
import json
import threading
import time

import sqlalchemy as sa
import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.accounting import batch
from placement_rpc.accounting.batch_settler import BatchSettler
from placement_rpc.accounting.claims import ClaimChange, MoveChange, ReleaseChange
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventory_batch import InventoryReplacement
from placement_rpc.db import api as db
from placement_rpc.db import models, sessions
from placement_rpc.db.queries import claims
from placement_rpc.http.facade import Facade
from placement_rpc.moving import own_store
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, http, servers
from tests.integration import lock_waits

_FOREVER = 3600.0
_LIMITS = {
    "postgresql": ("SHOW lock_timeout", "SHOW idle_in_transaction_session_timeout"),
    "mariadb": ("SELECT @@innodb_lock_wait_timeout", "SELECT @@idle_transaction_timeout")}

_SLEEP = {"postgresql": "SELECT pg_sleep(1.5)", "mariadb": "SELECT sleep(1.5)"}


def _claim(*providers, consumer=None):
    wanted = base.claim({uuid: {"VCPU": 1} for uuid in providers}, consumer)
    return ClaimChange(Request.of(base.new_uuid(), "claim", {"claim": wanted}), wanted)


def _release(consumer):
    return ReleaseChange(Request.of(base.new_uuid(), "release", {"uuid": consumer}), consumer)


class _LockTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]
    options = {}

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), **self.options))
        self.manager = manager.Manager(self.store.conf, self.store.database)
        self.api = api.PlacementAPI("local", self.store.conf, manager=self.manager)
        self.uuids = [self.api.create_provider(None, f"provider {number}").uuid
                      for number in range(3)]
        for uuid in self.uuids:
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", 100)])

    def claimed(self, provider):
        """Return the uuid of a new consumer of a provider."""
        wanted = base.claim({provider: {"VCPU": 1}})
        self.api.claim_allocations(None, wanted)
        return wanted.consumer_uuid

    @contextlib.contextmanager
    def locked(self, lock, uuid):
        """Have another process lock a row, as ``lock`` does, and stop."""
        other = db.Database(self.store.conf)
        try:
            with contextlib.suppress(exception.StoreUnavailable), other.writer() as tx:
                lock(tx, [uuid])
                yield
        finally:
            other.close()

    def stored_outcomes(self):
        with self.store.database.reader() as tx:
            return tx.execute(sa.select(sa.func.count()).select_from(models.requests)).scalar()

    def used(self, uuid):
        return self.api.get_usages(None, uuid).objects[0].used


class BatchTest(_LockTest):
    """Batches beside a transaction that would last for ever."""

    options = {"transactions__idle_timeout": _FOREVER}

    def settle(self, pending, settler=None):
        """Return the outcomes and the seconds that they took."""
        began = time.monotonic()
        outcomes = (settler or BatchSettler()).settle(self.store.database, pending)
        return outcomes, time.monotonic() - began

    def test_one_locked_provider_delays_only_what_needs_it(self):
        held, one, two = self.uuids
        consumer, moved, released = self.claimed(held), self.claimed(one), self.claimed(two)
        pending = [
            _claim(one), _claim(held), _claim(one, two), _claim(one, held), _release(consumer),
            _release(released), _claim(two),
            MoveChange(Request.of("move", "move", {}), moved, base.new_uuid()),
            InventoryReplacement(Request.of("inventory", "set", {}), held, []),
            InventoryReplacement(Request.of("other", "set", {}), two, [
                base.inventory("VCPU", 50)])]
        settler = BatchSettler()
        with self.locked(claims.lock_providers, held):
            before = self.stored_outcomes()
            outcomes, seconds = self.settle(pending, settler)
            self.assertLess(seconds, 2)
            # What was blocked has no outcome yet.
            self.assertEqual(before + 6, self.stored_outcomes())
            # The next batch does not wait again.
            again, _ = self.settle(pending, settler)
        self.assertEqual(
            [False, True, False, True, True, False, False, False, True, False],
            [each.blocked for each in outcomes])
        self.assertEqual([each.blocked for each in outcomes], [each.blocked for each in again])
        self.assertEqual([True] * 6, [each.replayed for each in again if not each.blocked])
        for each in outcomes:
            if each.blocked:
                self.assertIsInstance(each.error, exception.StoreBusy)
            else:
                self.assertIsNone(each.error)
        errors = [each.error for each in outcomes if each.blocked]
        self.assertEqual(len(errors), len({id(error) for error in errors}))
        self.assertEqual(
            [False] * 10, [each.blocked for each in self.settle(pending)[0]])

    def test_a_batch_waits_once_for_a_row_that_stays_locked(self):
        held, one, _ = self.uuids
        settler = BatchSettler()
        waits = []

        class Counting:
            write = staticmethod(lambda change, method, waits=True: counted(
                change, method, waits))

        def counted(change, method, patient):
            try:
                return self.store.database.write(change, method, patient)
            except db.Locked:
                waits.append(method)
                raise

        with self.locked(claims.lock_providers, held):
            for _ in range(5):
                blocked, free = settler.settle(Counting, [_claim(held), _claim(one)])
                self.assertEqual((True, None), (blocked.blocked, free.error))
        self.assertEqual(1, len(waits))

    def test_the_requests_of_a_consumer_keep_their_order(self):
        held, one, two = self.uuids
        consumer, another = base.new_uuid(), base.new_uuid()
        pending = [_claim(held, consumer=consumer), _claim(one, consumer=consumer),
                   _release(consumer), _claim(two, consumer=another)]
        with self.locked(claims.lock_providers, held):
            outcomes, _ = self.settle(pending)
        self.assertEqual([True, True, True, False], [each.blocked for each in outcomes])
        outcomes, _ = self.settle(pending)
        self.assertEqual([None] * 4, [each.error for each in outcomes])
        self.assertEqual([0, 0, 1], [self.used(uuid) for uuid in self.uuids])

    def test_a_locked_consumer_delays_only_its_own_requests(self):
        held, one, two = self.uuids
        consumer, other = self.claimed(held), self.claimed(held)
        with self.locked(claims.lock_consumers, consumer):
            outcomes, _ = self.settle([
                _release(consumer), _release(other), _claim(one, consumer=consumer),
                _claim(held), _claim(two)])
        self.assertEqual(
            [True, False, True, False, False], [each.blocked for each in outcomes])

    @contextlib.contextmanager
    def inserted(self, consumer):
        """Have another process insert a consumer, and stop before it commits."""
        inserted, go_on = threading.Event(), threading.Event()

        def attempt(tx):
            batch.settle_once(tx, [_claim(self.uuids[0], consumer=consumer)])
            inserted.set()
            go_on.wait(60)

        other = db.Database(self.store.conf)
        thread = threading.Thread(target=other.write, args=(attempt,))
        thread.start()
        try:
            self.assertTrue(inserted.wait(30))
            yield
        finally:
            go_on.set()
            thread.join()
            other.close()

    def test_a_row_that_cannot_be_found_beforehand(self):
        """The same new consumer in two transactions; the other one has inserted it."""
        _, two, three = self.uuids
        same = base.new_uuid()
        with self.inserted(same):
            outcomes, seconds = self.settle([
                _claim(two), _claim(two), _claim(two, consumer=same), _claim(three)])
        self.assertTrue(outcomes[2].blocked)
        self.assertFalse(outcomes[0].blocked)
        self.assertLess(seconds, 20)
        self.assertLess(0, self.used(two))

    def test_the_order_is_kept_if_the_row_cannot_be_found_beforehand(self):
        """The release alone would be refused, since the consumer has nothing yet."""
        _, two, three = self.uuids
        same = base.new_uuid()
        pending = [_claim(two, consumer=same), _release(same), _claim(three, consumer=same)]
        with self.inserted(same):
            outcomes, _ = self.settle(pending)
        self.assertEqual([True] * 3, [each.blocked for each in outcomes])
        outcomes, _ = self.settle(pending)
        self.assertEqual([None] * 3, [each.error for each in outcomes])
        self.assertEqual([0, 0, 1], [self.used(uuid) for uuid in self.uuids])

    def test_find_and_claim_passes_over_a_locked_provider(self):
        held, *_ = self.uuids
        wanted = base.claim(None)
        del wanted.allocations
        with self.locked(claims.lock_providers, held):
            for _ in range(6):
                claim = base.claim(None)
                del claim.allocations
                result = self.api.claim_by_request(
                    None, ResourceRequest(resources={"VCPU": 1}), claim, timeout=20)
                self.assertNotIn(held, result.generations)

    def test_no_candidate_is_refused_because_it_is_locked(self):
        for uuid in self.uuids[1:]:
            self.api.delete_provider(None, uuid)
        wanted = base.claim(None)
        del wanted.allocations
        with self.locked(claims.lock_providers, self.uuids[0]):
            self.assertRaises(
                exception.StoreBusy, self.api.claim_by_request, None,
                ResourceRequest(resources={"VCPU": 1}), wanted, timeout=2, request_id="one")
        self.assertEqual({self.uuids[0]}, set(self.api.claim_by_request(
            None, ResourceRequest(resources={"VCPU": 1}), wanted,
            request_id="one").generations))


class HTTPTest(_LockTest):
    """Clients of OpenStack Placement repeat what a lock was in the way of, by their own rules."""

    options = {"transactions__idle_timeout": _FOREVER, "api__auth_strategy": "noauth2",
               "placement_client__deadline": 3.0, "claims__max_attempts": 2}

    def test_a_locked_provider_is_a_concurrent_update(self):
        facade = Facade(self.store.conf, self.api)
        self.addCleanup(facade.close)
        uuid = self.uuids[0]
        path, resources = f"/resource_providers/{uuid}", {"resources": {"VCPU": 1}}
        with self.locked(claims.lock_providers, uuid):
            for where, words, body in (
                    (f"/allocations/{base.new_uuid()}",
                     "Inventory and/or allocations changed while attempting to allocate", {
                         "allocations": {uuid: resources}, "project_id": "project",
                         "user_id": "user", "consumer_generation": None}),
                    (f"{path}/inventories", "update conflict", {
                        "resource_provider_generation": 1, "inventories": {}}),
                    (f"{path}/traits", "Another thread concurrently updated the data", {
                        "resource_provider_generation": 1, "traits": ["HW_CPU_X86_AVX2"]})):
                answer = http.request(facade.application, "PUT", where, headers={
                    "X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.36",
                    "Content-Type": "application/json"}, body=json.dumps(body))
                error, = answer.json["errors"]
                self.assertEqual((409, "placement.concurrent_update", "placement.store.busy"), (
                    answer.status_code, error["code"], error["exact_code"]))
                self.assertTrue(error["detail"].startswith(words), error["detail"])


class ContentionTest(_LockTest):
    """A row that another transaction has locked for a short time."""

    options = {"transactions__lock_timeout": 30.0, "transactions__idle_timeout": _FOREVER}

    def test_it_is_waited_for(self):
        outcomes = []
        thread = threading.Thread(target=lambda: outcomes.extend(BatchSettler().settle(
            self.store.database, [_claim(self.uuids[0]), _claim(self.uuids[1])])))
        with self.locked(claims.lock_providers, self.uuids[0]):
            thread.start()
            lock_waits.wait_for_waiter(self.store.database)
        thread.join()
        self.assertEqual([None, None], [each.error for each in outcomes])


class IdleTest(_LockTest):
    """The database server ends a transaction without statements."""

    options = {"transactions__idle_timeout": 1.0, "transactions__lock_timeout": 0.2}

    def test_sessions_have_the_limits(self):
        with self.store.database.reader() as tx:
            self.assertEqual(
                {"postgresql": ["200ms", "1s"], "mariadb": [1, 1]}[self.kind],
                [tx.exec_driver_sql(query).scalar() for query in _LIMITS[self.kind]])

    def test_a_claim_goes_on_when_a_stopped_transaction_is_ended(self):
        with self.locked(claims.lock_providers, self.uuids[0]):
            began = time.monotonic()
            result = self.api.claim_allocations(
                None, base.claim({self.uuids[0]: {"VCPU": 1}}), timeout=30)
            self.assertLess(time.monotonic() - began, 10)
        self.assertEqual([self.uuids[0]], list(result.generations))

    def test_a_stream_outlives_the_limit(self):
        with own_store.opened(self.store.database) as snapshot:
            stream = snapshot.rows("providers")
            first = next(stream)
            # Goes on when a transaction that has stopped later is ended.
            self.test_a_claim_goes_on_when_a_stopped_transaction_is_ended()
            self.assertEqual(sorted(self.uuids), [first.uuid, *(row.uuid for row in stream)])
            self.assertEqual([], list(snapshot.rows("allocations")))

    def test_a_change_of_another_kind_goes_on_too(self):
        with self.locked(claims.lock_providers, self.uuids[0]):
            self.api.set_aggregates(None, self.uuids[0], [base.new_uuid()], timeout=30)
        self.assertEqual(1, len(self.api.get_aggregates(None, self.uuids[0]).aggregates))

    def test_the_stopped_transaction_changes_nothing_when_it_goes_on(self):
        other = db.Database(self.store.conf)
        self.addCleanup(other.close)
        stopped = threading.Event()
        wanted = base.claim({self.uuids[0]: {"VCPU": 1}})
        asked = Request.of("same", "claim_allocations", {"claim": wanted})

        def attempt(tx):
            batch.settle_once(tx, [ClaimChange(asked, wanted)])
            stopped.set()
            # As long as it takes another worker to settle the same request.
            self.api.claim_allocations(None, wanted, request_id="same", timeout=30)

        self.assertRaises(exception.StoreUnavailable, other.write, attempt)
        self.assertTrue(stopped.is_set())
        self.assertEqual(1, self.used(self.uuids[0]))

    def test_a_schema_change_has_no_limits(self):
        with self.store.database.writer() as tx:
            sessions.lift_limits(tx)
            # On MariaDB it waits for its locks as long as another variable says.
            self.assertEqual({"postgresql": ["0", "0"], "mariadb": [1, 0]}[self.kind], [
                tx.exec_driver_sql(query).scalar() for query in _LIMITS[self.kind]])
        self.test_sessions_have_the_limits()

    def test_a_schema_change_may_be_idle(self):
        """As between two revisions on a busy machine, and while a statement takes long."""
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), transactions__answer_timeout=1.0,
            transactions__idle_timeout=1.0))
        with store.database.writer() as tx:
            sessions.lift_limits(tx)
            tx.exec_driver_sql(_SLEEP[self.kind])
            time.sleep(1.5)
            tx.exec_driver_sql("SELECT 1")
