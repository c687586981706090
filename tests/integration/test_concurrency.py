# SPDX-License-Identifier: Apache-2.0
"""Many clients at once: never over capacity, nothing lost, nothing doubled."""

import testscenarios

from placement_rpc import api, manager
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import ledger, processes

_PROCESSES = 8


class ConcurrencyTest(testscenarios.WithScenarios, base.TestCase):
    """Eight processes, each with a store and a group commit of its own, on one database."""

    time_limit = 180
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def test_more_is_claimed_than_fits(self):
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), database__sqlite_synchronous=False))
        client = api.PlacementAPI(
            "local", store.conf, manager=manager.Manager(store.conf, store.database))
        providers = []
        for number in range(6):
            uuid = client.create_provider(None, f"provider {number}").uuid
            client.set_inventory(None, uuid, [
                base.inventory("VCPU", {"total": 40, "allocation_ratio": 2.0, "reserved": 5}),
                base.inventory("MEMORY_MB", 60_000)])
            providers.append(uuid)
        reports = processes.Claimers([
            {"database": store.conf.database.connection, "providers": providers,
             "requests": 30, "threads": 3, "seed": f"{self.kind} {number}"}
            for number in range(_PROCESSES)]).results()
        ledger.check(self, store.database, reports)
        self.assertGreater(sum(report["accepted"] for report in reports), 100)
        self.assertGreater(sum(report["refused"] for report in reports), 100)
