# SPDX-License-Identifier: Apache-2.0
"""The hold of the store: no change is committed after it, and none is lost."""

import threading

import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.accounting import holding
from placement_rpc.accounting.batch_settler import BatchSettler
from placement_rpc.accounting.claims import ClaimChange
from placement_rpc.accounting.idempotency import Request
from placement_rpc.db.queries import events, hold
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration.command_case import CommandTest

_REASON = "a test holds it"
_WRITERS = 4


def set_hold(database):
    """Hold the store, as an import does."""
    database.write(lambda tx: hold.set_(tx, _REASON), "hold")


def release(database):
    """Accept changes again."""
    database.write(hold.release, "hold")


def last_event(database):
    """Return the id of the newest event that is committed."""
    with database.reader() as tx:
        return events.last_id(tx)


class AirtightTest(testscenarios.WithScenarios, base.TestCase):
    """Changes that begin before the hold is set, on each database."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            None if self.kind == "sqlite" else servers.new_database(self.kind)))
        self.database = self.store.database
        self.manager = manager.Manager(self.store.conf, self.database)
        self.api = api.PlacementAPI("local", self.store.conf, manager=self.manager)
        self.provider = self.api.create_provider(None, "provider").uuid
        self.api.set_inventory(None, self.provider, [base.inventory("VCPU", 10 ** 6)])

    def test_a_change_that_has_begun_is_awaited(self):
        """Whether it has written its events, or only looked for stored outcomes."""
        if self.kind == "sqlite":
            self.skipTest("A change on SQLite has the only write lock from its start")
        reached, may_commit, done = (threading.Event() for _ in range(3))

        def slow(tx):
            outcome = settle_once(tx)
            reached.set()
            self.assertTrue(may_commit.wait(60))
            return outcome

        def settle_once(tx):
            from placement_rpc.accounting import batch
            wanted = base.claim({self.provider: {"VCPU": 1}})
            return batch.settle_once(tx, [ClaimChange(
                Request.of(base.new_uuid(), "claim", {"claim": wanted}), wanted)])

        writer = self.in_thread(self.database.write, slow)
        self.assertTrue(reached.wait(60))
        before = last_event(self.database)
        holder = self.in_thread(lambda: (set_hold(self.database), done.set()))
        self.assertFalse(done.wait(0.3))
        may_commit.set()
        writer.join(60)
        holder.join(60)
        self.assertTrue(done.is_set())
        self.assertEqual(before + 1, last_event(self.database))
        self.assertEqual(1, self.api.get_usages(None, self.provider).objects[0].used)

    def test_a_change_that_looked_before_the_hold_and_writes_after_it_is_refused(self):
        """On PostgreSQL it holds no lock in between; on the others the hold waits for it."""
        looked, may_write = threading.Event(), threading.Event()
        wanted = base.claim({self.provider: {"VCPU": 1}})

        class Slow(ClaimChange):

            def apply(self, state, outbox):
                looked.set()
                may_write.wait(60)
                return super().apply(state, outbox)

        outcomes = []

        def settle():
            try:
                outcomes.extend(BatchSettler().settle(self.database, [Slow(
                    Request.of(base.new_uuid(), "claim", {"claim": wanted}), wanted)]))
            except exception.PlacementException as error:
                outcomes.append(error)

        writer = self.in_thread(settle)
        self.assertTrue(looked.wait(60))
        is_set = threading.Event()
        holder = self.in_thread(lambda: (set_hold(self.database), is_set.set()))
        waits_for_the_writer = self.kind != "postgresql"
        self.assertEqual(
            not waits_for_the_writer, is_set.wait(0.5 if waits_for_the_writer else 60))
        may_write.set()
        writer.join(60)
        holder.join(60)
        used = self.api.get_usages(None, self.provider).objects[0].used
        if waits_for_the_writer:
            self.assertIsNone(outcomes[0].error)
            self.assertEqual(1, used)
        else:
            self.assertIsInstance(outcomes[0], exception.StoreHeld)
            self.assertEqual(0, used)

    def test_no_change_is_committed_after_the_hold_under_load(self):
        ended = threading.Event()
        accepted, refused = [], []

        def claims():
            while not ended.is_set():
                wanted = base.claim({self.provider: {"VCPU": 1}})
                try:
                    self.api.claim_allocations(None, wanted)
                    accepted.append(wanted.consumer_uuid)
                except exception.StoreHeld:
                    refused.append(wanted.consumer_uuid)

        def providers():
            while not ended.is_set():
                try:
                    self.api.create_provider(None, base.new_uuid())
                except exception.StoreHeld:
                    refused.append(None)

        writers = [self.in_thread(claims) for _ in range(_WRITERS)]
        writers += [self.in_thread(providers) for _ in range(2)]
        for _ in range(5):
            count = len(accepted)
            base.wait_until(lambda count=count: len(accepted) > count + 5)
            set_hold(self.database)
            newest, used = last_event(self.database), self.used()
            count = len(refused)
            base.wait_until(lambda count=count: len(refused) > count + 20)
            self.assertEqual((newest, used), (last_event(self.database), self.used()))
            release(self.database)
        ended.set()
        for each in writers:
            each.join(60)
        self.assertEqual(len(accepted), self.used())

    def used(self):
        return self.api.get_usages(None, self.provider).objects[0].used

    def in_thread(self, call, *arguments):
        thread = threading.Thread(target=call, args=arguments, daemon=True)
        thread.start()
        return thread


class CastWhileHeldTest(CommandTest):
    """Casts wait in their queue for as long as the store is held."""

    def setUp(self):
        super().setUp()
        # As many as would exhaust the attempts at a command, if each counted one.
        self.others = [self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, database_url=self.running.conf.database.connection,
            topic=self.running.topic, queues__dead_letters=self.running.conf.queues.dead_letters,
            queues__commands_attempts=3,
            notifications__stream=self.running.conf.notifications.stream)) for _ in range(4)]
        # One that is not there yet would wait without having met a command.
        base.wait_until(lambda: self.consumers() == 5)

    def consumers(self):
        """How many have subscribed to the command queue"""
        return self.broker.rabbitmqctl("list_consumers", "queue_name").split().count(self.queue)

    def test_casts_are_settled_in_order_after_the_release(self):
        set_hold(self.database)
        consumer = base.new_uuid()
        casts = [self.cast({self.uuid: {"VCPU": amount}}, consumer) for amount in (1, 2, 3)]
        base.wait_until(lambda: self.log.output.count("Commands wait in their queue") >= 5)
        self.assertRaises(exception.RequestNotFound, self.api.get_request_result, None, casts[0])
        self.assertTrue(holding.is_held(self.database))
        release(self.database)
        self.assertEqual([2, 3, 4], [
            self.outcome(each).generations[self.uuid] for each in casts])
        self.assertEqual(3, self.used())
        self.assertEqual([], self.dead_letters().all())
