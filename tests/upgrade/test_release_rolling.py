# SPDX-License-Identifier: Apache-2.0
"""Conductors go from the old release to the new one, and back, under load."""

import pathlib

import fixtures

from placement_rpc.db import models
from tests import base
from tests.integration import ledger, processes
from tests.upgrade.release_case import ReleasesTest


class RollingTest(ReleasesTest):
    """Two conductors go from the old release to the new one, and back, under load."""

    scenarios = [(kind, {"kind": kind}) for kind in ("postgresql", "mariadb")]

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
