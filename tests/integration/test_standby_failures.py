# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL primary is killed or frozen, and a standby takes its place."""

import json
import sys
import unittest

from placement_rpc import api
from placement_rpc.cmd import manage
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.standbys import PostgreSQLStandbys
from tests import base, programs, servers, stream_books
from tests.integration import ledger
from tests.integration.load import Load


# tests.integration.test_patroni has the same faults, and does not choose the next primary itself.
@unittest.skipUnless(base.FULL, "a failover without Patroni is run: make test FULL=1")
class SynchronousTest(base.TestCase):
    """Each commit is confirmed by a standby: nothing that was answered is lost."""

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(PostgreSQLStandbys())
        self.service = self.useFixture(placement_fixtures.RunningService(
            database_url=self.cluster.create_database(), placement_client__deadline=60.0))
        self.load = Load(self.service.api)
        self.addCleanup(self.load.end)

    def fail_over(self, fault):
        """Let the primary fail; return the standby that takes its place."""
        def act():
            fault()
            return self.cluster.promote()

        promoted, found = self.load.survive(act)
        print(f"\n{self.id()}: {found:.1f} s without an answer", file=sys.stderr)
        return promoted

    def test_the_primary_is_killed_then_the_next_one_frozen(self):
        first, *_ = self.cluster.servers
        second = self.fail_over(first.kill)
        # A standby is left after the second failover too: each commit needs one.
        first.follow(second)
        self.fail_over(second.freeze)
        self.load.end()
        ledger.check(self, self.service.database, self.load.reports)


class AsynchronousTest(base.TestCase):
    """Standbys may lack the last commits: what was published may be lost with the primary."""

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(PostgreSQLStandbys(synchronous=0))
        self.broker = self.useFixture(servers.VirtualHost())
        self.service = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, database_url=self.cluster.create_database(),
            placement_client__deadline=60.0))
        self.api = self.service.api

    def claim(self, provider, amount, consumer=None):
        wanted = base.claim({provider: {"VCPU": amount}}, consumer)
        self.api.claim_allocations(None, wanted)
        return wanted.consumer_uuid

    def outbox(self, *arguments):
        """Run a command of the operator; return its JSON."""
        conf = self.service.conf
        done = programs.run(
            manage, "--database", conf.database.connection, "--transport-url",
            conf.transport_url, "outbox", *arguments, "--format", "json")
        self.assertEqual((0, ""), (done.code, done.stderr))
        return json.loads(done.stdout)

    def books(self):
        """Return the books of a listener that reads the stream from its first event on."""
        return stream_books.read(
            self.broker.url, self.service.conf.notifications.stream)

    def lose(self, change):
        """Have the primary die with a change that was published, and no standby have it."""
        first, *standbys = self.cluster.servers
        position = first.position()
        for standby in standbys:
            standby.wait_for(position)
            # A frozen one would find the change in its socket.
            standby.stop()
        change()
        last = base.wait_published(self.service.database)
        first.stop()
        for standby in standbys:
            standby.start()
        self.cluster.promote()
        return last

    def test_what_is_lost_is_taken_back(self):
        provider, other = [self.api.create_provider(None, name).uuid for name in ("a", "b")]
        for uuid in (provider, other):
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", 100)])
        kept = self.claim(provider, 1)
        base.wait_published(self.service.database)
        lost = []

        def change():
            lost.append(self.claim(provider, 2))
            self.claim(provider, 4, kept)
            lost.append(self.api.create_provider(None, "c").uuid)

        last = self.lose(change)
        relay = self.service.conductor.relay
        # The store goes on, and a change of another provider waits for its publication.
        waiting = self.claim(other, 8)
        base.wait_until(lambda: relay.difference)
        status, = self.outbox("status")
        self.assertIn(f"up to position {last}", status["difference"])
        self.assertLess(status["published_position"], last)
        self.assertEqual({provider: {"VCPU": 1}}, self.held(kept))
        self.assertEqual(99, self.room(provider))
        self.assertEqual([last] * 2, [self.books().position for _ in range(2)])
        dry, = self.outbox("reconcile", "--dry-run")
        self.assertEqual((3, 0, 2, 2), tuple(dry[name] for name in (
            "lost", "moved", "providers", "consumers")))
        found, = self.outbox("reconcile")
        self.assertEqual(dry | {"epoch": found["epoch"]}, found)
        self.assertNotEqual(dry["epoch"], found["epoch"])
        base.wait_until(lambda: relay.difference is None)
        self.claim(provider, 16)
        base.wait_published(self.service.database)
        books = self.books()
        self.assertEqual(stream_books.stored(self.service.database), books.as_stored())
        self.assertIn(waiting, books.held)
        self.assertEqual(([], []), (books.gaps, books.broken))
        self.assertEqual([dry["epoch"], found["epoch"]], books.epochs)
        self.assertEqual(0, self.outbox("reconcile")[0]["lost"])
        self.assertEqual("", self.outbox("status")[0]["difference"])

    def held(self, consumer):
        return self.api.get_allocations(None, consumer).by_provider()

    def room(self, provider):
        """Return the free amount of a provider by the candidate index."""
        found = self.api.get_allocation_candidates(None, api.CandidatesRequest(groups=[
            api.CandidateGroup(resources={"VCPU": 1}, in_tree=provider)]))
        summary = found.provider_summaries[provider]["resources"]["VCPU"]
        return summary["capacity"] - summary["used"]
