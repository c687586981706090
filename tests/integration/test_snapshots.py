# SPDX-License-Identifier: Apache-2.0
"""Snapshots: a new listener learns all allocations, whatever changes while one is taken."""

import datetime
import threading

import sqlalchemy as sa
import testscenarios

from placement_rpc.accounting import snapshot
from placement_rpc.cmd import local
from placement_rpc.db import models
from placement_rpc.db.queries import relaying, snapshots
from placement_rpc.notifications.usage import UsageAccount
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


def now():
    return datetime.datetime.now(datetime.UTC)


class SnapshotTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 120
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        store = self.useFixture(placement_fixtures.Store(servers.new_database(self.kind)))
        self.database, self.conf = store.database, store.conf
        self.client = placement_fixtures.api.PlacementAPI(
            "local", self.conf, manager=placement_fixtures.manager.Manager(
                self.conf, self.database))
        self.providers = []
        for number in range(3):
            uuid = self.client.create_provider(None, f"provider {number}").uuid
            self.client.set_inventory(None, uuid, [
                base.inventory("VCPU", 1_000_000), base.inventory("DISK_GB", 1_000_000)])
            self.providers.append(uuid)
        self.patch(snapshot, "_STEP", 10)

    def claim(self, number, project="project"):
        """Claim for so many consumers in one call; returns their uuids."""
        claims = [base.claim({self.providers[n % 3]: {"VCPU": 1 + n % 4, "DISK_GB": 10}},
                             project_id=project) for n in range(number)]
        for each in self.client.claim_batch(None, claims):
            self.assertEqual(1, each.consumer_generation)
        return [each.consumer_uuid for each in claims]

    def snapshot(self):
        snapshot.begin(self.database)
        while snapshot.go_on(self.database) is not None:
            pass

    def events(self, first=1):
        """Everything in the outbox, in the order in which it is published."""
        self.database.write(self.give_positions)
        return list(local.stored_events(self.database, first - 1))

    def give_positions(self, tx):
        last = tx.execute(sa.select(sa.func.coalesce(
            sa.func.max(models.events.c.position), 0))).scalar()
        while rows := relaying.give_positions(tx, last, 500):
            last = rows[-1].position

    def begin_position(self, found):
        return [event for event in found
                if event.event_type == "allocation.snapshot.begin"][-1].position

    def account(self, begin, end, first=1):
        account = UsageAccount(begin, end)
        for event in self.events(first):
            account.apply(event)
        return account

    def test_it_tells_what_every_consumer_holds(self):
        consumers = self.claim(25)
        self.snapshot()
        found = self.events()
        told = found[self.begin_position(found) - 1:]
        self.assertEqual(["allocation.snapshot.begin", *["allocation.exists"] * 25,
                          "allocation.snapshot.end"], [event.event_type for event in told])
        self.assertEqual(25, told[-1].payload["consumers"])
        self.assertEqual(told[0].payload["snapshot_id"], told[-1].payload["snapshot_id"])
        self.assertEqual(sorted(consumers), [event.payload["consumer_uuid"]
                                             for event in told[1:-1]])
        for event in told[1:-1]:
            for each in event.payload["providers"]:
                self.assertEqual(each["before"], each["after"])
                self.assertEqual(
                    self.client.get_allocations(None, event.payload["consumer_uuid"])
                    .by_provider()[each["provider_uuid"]], each["after"])

    def test_a_late_listener_agrees_with_one_that_was_always_there(self):
        """While others claim, move and release as fast as they can."""
        consumers = self.claim(60)
        ended, errors, moves = threading.Event(), [], []

        def work(mine):
            try:
                while not ended.is_set():
                    consumer = mine.pop(0)
                    self.client.release_allocations(None, consumer)
                    mine.append(self.claim(1, "other")[0])
                    target = base.new_uuid()
                    self.client.move_allocations(None, mine.pop(0), target)
                    mine.append(target)
                    moves.append(target)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(consumers[start::3],))
                   for start in range(3)]
        for thread in threads:
            thread.start()
        base.wait_until(lambda: errors or len(moves) >= 10)
        self.snapshot()
        begin, before = now(), len(moves)
        base.wait_until(lambda: errors or len(moves) >= before + 10)
        ended.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)
        end = now()
        first = self.begin_position(self.events())
        always, late = self.account(begin, end), self.account(begin, end, first)
        self.assertEqual((True, True), (always.complete, late.complete))
        self.assertEqual(always.lines(), late.lines())
        self.assertEqual(60, sum(line.held for line in late.lines()
                                 if line.resource_class == "DISK_GB") // 10)

    def test_an_interrupted_snapshot_is_continued(self):
        self.claim(25)
        snapshot.begin(self.database)
        self.assertEqual(10, snapshot.go_on(self.database))
        # Another process; begin() does not restart the snapshot under way.
        snapshot.begin(self.database)
        self.assertEqual(20, snapshot.go_on(self.database, period=0))
        self.assertEqual(25, snapshot.go_on(self.database, period=0))
        self.assertIsNone(snapshot.go_on(self.database))
        found = self.events()
        self.assertEqual(25, len([event for event in found
                                  if event.event_type == "allocation.exists"]))

    def test_two_processes_at_once_take_one(self):
        self.claim(60)
        snapshot.begin(self.database)

        def work():
            while snapshot.go_on(self.database) is not None:
                pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [event for event in self.events() if event.event_type.startswith((
            "allocation.exists", "allocation.snapshot"))]
        self.assertEqual((62, 60), (len(found), found[-1].payload["consumers"]))
        self.assertEqual(60, len({event.payload["consumer_uuid"] for event in found[1:-1]}))

    def test_the_first_period_begins_with_the_service(self):
        self.claim(1)
        self.assertIsNone(snapshot.go_on(self.database, 3600))
        self.assertIsNone(snapshot.go_on(self.database, 3600))
        hour_ago = now().replace(tzinfo=None) - datetime.timedelta(hours=1)
        self.database.write(lambda tx: snapshots.begin(
            tx, base.new_uuid(), hour_ago, ended_at=hour_ago))
        self.assertEqual(0, snapshot.go_on(self.database, 3600))
        self.assertEqual(1, snapshot.go_on(self.database, 3600))
        self.assertIsNone(snapshot.go_on(self.database, 3600))
        self.assertIsNone(snapshot.go_on(self.database, 3600))


class PeriodTest(base.TestCase):

    def test_a_conductor_takes_them_by_itself(self):
        running = self.useFixture(placement_fixtures.RunningService(
            notifications__snapshot_period=1, conductor__report_interval=1))
        uuid = running.api.create_provider(None, "provider").uuid
        running.api.set_inventory(None, uuid, [base.inventory("VCPU", 10)])
        running.api.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}))

        def kinds():
            return [event.event_type for event in local.stored_events(running.database)]

        base.wait_until(lambda: kinds().count("allocation.snapshot.end") >= 2)
        self.assertGreaterEqual(kinds().count("allocation.exists"), 2)
