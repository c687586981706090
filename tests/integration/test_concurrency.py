# SPDX-License-Identifier: Apache-2.0
"""Many clients at once: never over capacity, nothing lost, nothing doubled."""

import threading

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
             "requests": 30, "threads": 3, "sets": 0.2, "seed": f"{self.kind} {number}"}
            for number in range(_PROCESSES)]).results()
        ledger.check(self, store.database, reports)
        self.assertGreater(sum(report["accepted"] for report in reports), 100)
        self.assertGreater(sum(report["refused"] for report in reports), 100)
        self.assertGreater(sum(report["sets"] for report in reports), 10)

    def test_consumers_swap_full_providers(self):
        """Two requests name the same consumers and providers in opposite orders."""
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), database__sqlite_synchronous=False))
        clients = [api.PlacementAPI(
            "local", store.conf, manager=manager.Manager(store.conf, store.database))
            for _ in range(4)]
        nodes = [clients[0].create_provider(None, f"provider {number}").uuid
                 for number in range(2)]
        for uuid in nodes:
            clients[0].set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        consumers = [base.new_uuid(), base.new_uuid()]
        failures = []

        def swap(client, number):
            try:
                for turn in range(number, number + 25):
                    client.set_allocations(None, [base.claim(
                        {nodes[(turn + place) % 2]: {"VCPU": 8}}, consumer,
                        consumer_type=f"TYPE_{turn}")
                        for place, consumer in list(enumerate(consumers))[::1 - turn % 2 * 2]])
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=swap, args=(client, number))
                   for number, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)
        held = [clients[0].get_allocations(None, uuid).by_provider() for uuid in consumers]
        self.assertEqual([{"VCPU": 8}] * 2, [each for one in held for each in one.values()])
        self.assertEqual(set(nodes), {uuid for one in held for uuid in one})
        for uuid in nodes:
            self.assertEqual(8, clients[0].get_usages(None, uuid).objects[0].used)
