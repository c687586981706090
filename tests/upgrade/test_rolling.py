# SPDX-License-Identifier: Apache-2.0
"""Rolling upgrades of pins under load, one conductor after the other.

The conductors and the clients are of this tree, and speak and store as the releases do that they
are pinned to: newton and ocata, of which there is no wheel. Release 2026.2 itself, forward and
back on PostgreSQL and MariaDB, is rolled by :mod:`tests.upgrade.test_release_rolling`. Pins do not
depend on the database, so they are rolled on SQLite, which that test leaves out.
"""

import pathlib
import signal

import fixtures
import sqlalchemy as sa

from placement_rpc import api, exception
from placement_rpc.db import models
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import ledger, processes

_RELEASES = ("newton", "ocata", "2026.2")


class RollingTest(base.TestCase):

    time_limit = 400

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.store = self.useFixture(placement_fixtures.Store(
            transport_url=self.broker.url))
        self.names = {name: f"{name}_{base.new_uuid()[:8]}" for name in ("stream", "topic")}
        self.conductors = [self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "notifications": {**self.names, "lease": 2, "payload_pin": "newton"},
            "upgrade_levels": {"placement": "newton"},
            "conductor": {"host": f"host{number}", "workers": 1, "threads": 8,
                          "report_interval": 1}})) for number in range(2)]

    def client(self, pin="auto"):
        client = api.PlacementAPI(conf=self.store.conf, pin=pin)
        self.addCleanup(client.close)
        return client

    def test_no_call_fails_and_no_claim_is_lost_or_doubled(self):
        client = self.client()
        for conductor in self.conductors:
            self.wait_for(conductor)
        providers = []
        for number in range(4):
            uuid = client.create_provider(None, f"provider {number}").uuid
            client.set_inventory(None, uuid, [
                base.inventory("VCPU", 400), base.inventory("MEMORY_MB", 300_000)])
            providers.append(uuid)
        self.assertRaises(exception.ServiceTooOld, client.claim_batch, None, [])
        until = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "until")
        claimers = processes.Claimers([{
            "transport_url": self.broker.url, "providers": providers, "threads": 3,
            "requests": 10_000_000, "until": str(until), "deadline": 90, "casts": 0.2,
            "attempt_timeout": 5, "seed": pin, "pin": pin, "moves": False}
            for pin in ("newton", "auto")])
        seen = [self.releases()]
        for release in _RELEASES[1:]:
            for conductor in self.conductors:
                self.settle_some(claimers)
                self.roll(conductor, release)
                seen.append(self.releases())
        self.settle_some(claimers)
        until.touch()
        reports = claimers.results()
        # Both at once were at work, of two releases each time.
        self.assertEqual([["newton", "newton"], ["newton", "ocata"], ["ocata", "ocata"],
                          ["2026.2", "ocata"], ["2026.2", "2026.2"]], seen)
        self.assertGreater(sum(report["sent"] for report in reports), 100)
        self.assertGreater(sum(report["casts"] for report in reports), 10)
        ledger.check(self, self.store.database, reports)
        ledger.check_events(self, self.store.database, self.events())
        client.reload()
        self.assertEqual([], client.claim_batch(None, []))

    def settle_some(self, claimers):
        """Wait until a number of further requests are settled."""
        def settled():
            self.assertTrue(claimers.running())
            with self.store.database.reader() as tx:
                return tx.execute(
                    sa.select(sa.func.count()).select_from(models.requests)).scalar()

        before = settled()
        base.wait_until(lambda: settled() > before + 60)

    def roll(self, conductor, release):
        """Drain a conductor, and start it again with another pin."""
        conductor.signal(signal.SIGTERM)
        conductor.process.wait(60)
        conductor.options["upgrade_levels"]["placement"] = release
        conductor.options["notifications"]["payload_pin"] = release
        conductor.write()
        conductor.start()
        self.wait_for(conductor)

    def wait_for(self, conductor):
        host = conductor.options["conductor"]["host"]
        base.wait_until(lambda: any(row.host == host for row in self.services()),
                        message=conductor.said)

    def services(self):
        with self.store.database.reader() as tx:
            return tx.execute(sa.select(models.services)).all()

    def releases(self):
        return sorted(row.pin for row in self.services())

    def events(self):
        with self.store.database.reader() as tx:
            last = tx.execute(sa.select(sa.func.count()).select_from(models.events)).scalar()
        reader = listener.StreamReader(self.broker.url, self.names["stream"], 1)
        found = []
        for event in reader.events(60):
            found.append(event)
            if event.position == last:
                break
        versions = {"consumer_generation" in event.payload for event in found
                    if event.event_type == "allocation.create"}
        self.assertEqual({True, False}, versions, "of both sorts of payloads there are some")
        return found
