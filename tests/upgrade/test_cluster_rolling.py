# SPDX-License-Identifier: Apache-2.0
"""A whole deployment is rolled under load: conductors, then brokers, then the database.

The order and the steps are those of the page on upgrading. Each step ends one process in an
orderly way, waits until more requests are settled without it, starts it again, and waits until it
is complete. No call of a client fails; some take longer.
"""

import concurrent.futures
import pathlib
import subprocess
import unittest

import fixtures
from oslo_db import exception as db_exception
from testtools import content

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.testing.galera import GaleraCluster
from placement_rpc.testing.rabbitmq_cluster import RabbitMQCluster
from placement_rpc.testing.server_process import reserve_port
from placement_rpc.testing.standbys import PostgreSQLStandbys
from tests import base
from tests.integration import ledger, machine, processes
from tests.upgrade.release_case import ReleasesTest

# Seconds within which requests have to be settled again: failovers take longer beside other tests.
_SETTLED_WITHIN = 120
_PROXY = """
defaults
    mode tcp
    retries 3
    option redispatch
    timeout connect 2s
    timeout client 1h
    timeout server 1h
listen galera
    bind 127.0.0.1:{port}
    default-server check inter 200ms fall 1 rise 2 on-marked-down shutdown-sessions
{servers}
"""


class Galera(fixtures.Fixture):
    """A Galera cluster of which HAProxy uses one node at a time; ``url`` is a database's."""

    def _setUp(self):
        self.cluster = self.useFixture(GaleraCluster())
        self.database = self.cluster.create_database()
        port = reserve_port(self)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "haproxy.cfg")
        path.write_text(_PROXY.format(port=port, servers="\n".join(
            f"    server {node.name} 127.0.0.1:{node.port}" + (" backup" if number else "")
            for number, node in enumerate(self.cluster.nodes))))
        process = subprocess.Popen(
            [machine.program("haproxy"), "-db", "-f", str(path)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        node, = self.cluster.nodes[:1]
        self.url = node.url_of(self.database).replace(f":{node.port}/", f":{port}/")

    def roll(self, settle_some):
        """Restart each node, the writer last; of the others one, unless tests run in full."""
        writer, *others = self.cluster.nodes
        for node in (*others[:None if base.FULL else 1], writer):
            node.shut_down()
            settle_some()
            # Returns when it has what it missed.
            node.start()
            settle_some()


class PostgreSQL(fixtures.Fixture):
    """A PostgreSQL server with standbys; ``url`` is a database's, with all addresses."""

    def _setUp(self):
        self.cluster = self.useFixture(PostgreSQLStandbys())
        self.url = self.cluster.create_database()

    def roll(self, settle_some):
        """Restart the standbys, and let one of them take the place of the primary.

        One standby is restarted, unless tests run in full.
        """
        first, *standbys = self.cluster.servers
        for standby in standbys[:None if base.FULL else 1]:
            standby.shut_down()
            settle_some()
            standby.start()
            standby.wait_for(first.position())
        # It ends when a standby has all of its changes.
        first.shut_down()
        newest = self.cluster.promote()
        settle_some()
        first.follow(newest)
        first.wait_for(newest.position())
        settle_some()


class ClusterRollingCase(ReleasesTest):
    """Two conductors on a cluster of three brokers, and on the database of a subclass."""

    time_limit = 1200 if base.FULL else 600

    def make_broker(self):
        cluster = RabbitMQCluster()
        self.database = self.make_database()
        with concurrent.futures.ThreadPoolExecutor() as threads:
            begun = threads.submit(cluster.setUp)
            try:
                self.useFixture(self.database)
            finally:
                if begun.exception() is None:
                    self.addCleanup(cluster.cleanUp)
        begun.result()
        return cluster

    def new_database(self):
        return self.database.url

    def check_rolling(self):
        """Roll everything, and compare what is left with what the clients were answered."""
        conductors = [self.begin(self.old, self.url, self.store) for _ in range(2)]
        for each in conductors:
            self.wait_for(each, self.store)
        client = self.client(self.new)
        providers = [self.provider(client, 400) for _ in range(4)]
        until = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "until")
        self.claimers = processes.Claimers([{
            "transport_url": self.url, "providers": providers, "threads": 4, "reads": 0.2,
            "requests": 10_000_000, "until": str(until), "deadline": 90, "casts": 0.1,
            "attempt_timeout": 5, "seed": "rolling"}], [self.new.python])
        self.addCleanup(self.claimers.kill)
        self.settle_some()
        for conductor in conductors:
            self.end(conductor)
            self.start(conductor, self.new)
            self.settle_some()
        self.roll_brokers()
        self.database.roll(self.settle_some)
        until.touch()
        reports = self.claimers.results()
        self.addDetail("reports", content.text_content("".join(
            f"{report['sent']} requests, the longest took {report['longest']:.1f} s\n"
            for report in reports)))
        for name in ("accepted", "casts", "moves", "reads"):
            self.assertGreater(sum(report[name] for report in reports), 5)
        ledger.check(self, self.store.database, reports)
        ledger.check_events(self, self.store.database, self.events())

    def roll_brokers(self):
        """Restart each node; the leader of the commands alone, unless tests run in full."""
        leader = base.wait_until(lambda: self.broker.leader_of("placement_commands"))
        for node in self.broker.nodes if base.FULL else [leader]:
            base.wait_until(lambda node=node: not node.is_quorum_critical())
            node.shut_down()
            self.settle_some()
            node.start()
            self.broker.wait_until_complete(self.broker.nodes)
            self.settle_some()

    def settle_some(self, number=40):
        """Wait until a number of further requests are settled."""
        def settled():
            self.assertTrue(self.claimers.running())
            try:
                return self.count(models.requests)
            except (db_exception.DBError, exception.StoreUnavailable):
                # The test has no retries: its connection was to a server that is restarted.
                return None

        enough = base.wait_until(settled) + number
        base.wait_until(lambda: (settled() or 0) > enough, seconds=_SETTLED_WITHIN,
                        message=lambda: "no more requests are settled")


class GaleraRollingTest(ClusterRollingCase):

    make_database = Galera

    def test_no_call_fails_and_no_claim_is_lost_or_doubled(self):
        self.check_rolling()


@unittest.skipUnless(base.FULL, "rolling the Galera cluster is run: make test FULL=1")
class PostgreSQLRollingTest(ClusterRollingCase):

    make_database = PostgreSQL

    def test_no_call_fails_and_no_claim_is_lost_or_doubled(self):
        self.check_rolling()
