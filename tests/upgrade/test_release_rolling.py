# SPDX-License-Identifier: Apache-2.0
"""Conductors go from the old release to the new one, and back, under load."""

import json
import pathlib

import fixtures

from placement_rpc.db import models
from tests import base
from tests.integration import ledger, processes
from tests.upgrade import side_by_side
from tests.upgrade.release_case import ReleasesTest, claim


class RollingTest(ReleasesTest):
    """Two conductors go from the old release to the new one, and back, under load."""

    # tests.upgrade.test_cluster_rolling does the same on PostgreSQL.
    scenarios = [(kind, {"kind": kind}) for kind in (
        ("postgresql", "mariadb") if base.FULL else ("mariadb",))]

    def test_no_call_fails_and_no_claim_is_lost_or_doubled(self):
        conductors = [self.begin(self.old, self.url, self.store) for _ in range(2)]
        for each in conductors:
            self.wait_for(each, self.store)
        client = self.client(self.new)
        providers = [self.provider(client, 400) for _ in range(4)]
        until = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "until")
        claimers = processes.Claimers([{
            "transport_url": self.url, "providers": providers, "threads": 3,
            "requests": 10_000_000, "until": str(until), "deadline": 90, "casts": 0.2,
            "attempt_timeout": 5, "seed": installation.name}
            for installation in (self.old, self.new)], [self.old.python, self.new.python])
        self.addCleanup(claimers.kill)
        self.settle_some(claimers)
        for installation in (self.new, self.old):
            for conductor in conductors:
                self.end(conductor)
                self.start(conductor, installation)
                self.settle_some(claimers)
        until.touch()
        reports = claimers.results()
        for name in ("accepted", "casts", "moves"):
            # The threads of the old client come first.
            for part in (reports[:3], reports[3:]):
                self.assertGreater(sum(report[name] for report in part), 5)
        ledger.check(self, self.store.database, reports)
        ledger.check_events(self, self.store.database, self.events())

    def settle_some(self, claimers, number=60):
        """Wait until a number of further requests are settled."""
        before = self.count(models.requests)

        def settled():
            self.assertTrue(claimers.running())
            return self.count(models.requests) > before + number

        base.wait_until(settled)


class CallsOfEveryServiceTest(ReleasesTest):
    """Calls that an older service would misread wait; before the first of them is the way back."""

    scenarios = [(kind, {"kind": kind}) for kind in (
        ("postgresql", "mariadb") if base.FULL else ("postgresql",))]

    def status(self):
        """Return what this release's program says of the calls, and the way back."""
        found = json.loads(side_by_side.manage(
            self.new, self.useFixture(fixtures.TempDir()).path,
            self.store.conf.database.connection, "upgrade", "status", "--format", "json"))
        return found["calls"], found["way_back"]

    def refused(self, client, method, **arguments):
        """Return whether a call is refused because of an older service."""
        error = client.ask(method, **arguments).get("error", {})
        return error.get("code") in (
            "placement.service.upgrade_in_progress", "placement.service.too_old")

    def check_closed(self, client, node, conductor):
        """Check that the calls wait for one conductor, and that going back is possible."""
        calls, way_back = self.status()
        self.assertFalse(calls["open"])
        self.assertIn(conductor.host, "".join(calls["held_by"]))
        self.assertEqual({"release": "2026.2", "stored": []}, way_back)
        base.wait_until(lambda: self.refused(client, "create_trait", name="CUSTOM_A"))
        for method, arguments in (
                ("set_provider_traits", {"provider_uuid": node, "traits": ["HW_CPU_X86_AVX2"]}),
                ("create_provider", {"name": "child", "parent_provider_uuid": node})):
            self.assertTrue(self.refused(client, method, **arguments), method)

    def use(self, client, node):
        """Check that what every release knows is answered."""
        consumer = base.new_uuid()
        client.call("claim_allocations", claim=claim({node: {"VCPU": 1}}, consumer))
        client.call("release_allocations", consumer_uuid=consumer)

    def test_forward_and_back_and_forward(self):
        one, two = (self.begin(self.old, self.url, self.store) for _ in range(2))
        for each in (one, two):
            self.wait_for(each, self.store)
        old, new = self.client(self.old), self.client(self.new)
        node = self.provider(old)
        self.end(one)
        self.start(one, self.new)
        self.check_closed(new, node, two)
        self.use(new, node)
        self.use(old, node)
        # Back: the release before takes over the store as it is.
        self.end(one)
        self.start(one, self.old)
        self.use(old, node)
        self.use(new, node)
        for each in (one, two):
            self.end(each)
            self.start(each, self.new)
        calls, way_back = self.status()
        self.assertEqual(({"contract": "1.3", "open": True, "held_by": []}, "2026.2"),
                         (calls, way_back["release"]))
        base.wait_until(lambda: "result" in new.ask("create_trait", name="CUSTOM_A"))
        new.call("set_provider_traits", provider_uuid=node, traits=["CUSTOM_A"])
        child = base.new_uuid()
        new.call("create_provider", name="child", provider_uuid=child, parent_provider_uuid=node)
        self.use(old, node)
        self.assertEqual({"release": "2027.1", "stored": [
            "parents of resource providers", "traits of resource providers"]}, self.status()[1])
        # What it does not know is held by foreign keys if a service of that release comes back.
        self.end(two)
        self.start(two, self.old)
        self.assertIn(two.host, "".join(self.status()[0]["held_by"]))
        base.wait_until(lambda: self.refused(new, "create_trait", name="CUSTOM_B"))
        self.assertIn("error", old.ask("delete_provider", provider_uuid=node))
        self.assertEqual(node, old.call("get_provider", provider_uuid=node)["uuid"])
