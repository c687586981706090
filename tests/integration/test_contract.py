# SPDX-License-Identifier: Apache-2.0
"""The tests of the contract again, on PostgreSQL and MariaDB, and over RabbitMQ."""

import inspect
import zlib

from tests import base, servers
from tests.functional import (
    test_claim_sets,
    test_claims,
    test_compute_node_objects,
    test_compute_nodes,
    test_consumers_of_pool,
    test_events,
    test_explanations,
    test_headroom,
    test_input,
    test_inventories,
    test_inventory_gate,
    test_providers,
    test_queries,
    test_raw_input,
    test_requests,
    test_reshape,
    test_resource_classes,
    test_summaries,
    test_sync,
    test_sync_differences,
    test_traits,
    test_tree_claims,
    test_trees,
)


class OnRealServers:
    """Puts tests of the contract on real servers.

    Each test is on one of the databases, and half of them are over RabbitMQ; in full, each is over
    RabbitMQ on both databases.
    """

    scenarios = [
        ("RabbitMQ and PostgreSQL", {"kind": "postgresql", "over_bus": True}),
        ("RabbitMQ and MariaDB", {"kind": "mariadb", "over_bus": True}),
        *([] if base.FULL else [
            ("PostgreSQL", {"kind": "postgresql", "over_bus": False}),
            ("MariaDB", {"kind": "mariadb", "over_bus": False})])]

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if not base.FULL:
            # The same one in every run.
            self.scenarios = [
                self.scenarios[zlib.crc32(self.id().encode()) % len(self.scenarios)]]

    def service_arguments(self):
        arguments = {**super().service_arguments(),
                     "database_url": servers.new_database(self.kind)}
        if not self.over_bus:
            return arguments
        # The queues go with the virtual host: thousands of them would slow the broker down.
        return {**arguments, "transport": "bus",
                "transport_url": self.useFixture(servers.VirtualHost()).url}


for _module in (test_claim_sets, test_claims, test_compute_node_objects, test_compute_nodes,
                test_consumers_of_pool, test_events, test_explanations, test_headroom, test_input,
                test_inventories, test_inventory_gate, test_providers, test_queries,
                test_raw_input, test_requests, test_reshape, test_resource_classes,
                test_summaries, test_sync, test_sync_differences, test_traits, test_tree_claims,
                test_trees):
    for _name, _class in inspect.getmembers(_module, inspect.isclass):
        if issubclass(_class, base.ContractTest):
            globals()[_name] = type(_name, (OnRealServers, _class), {"__module__": __name__})
del _class
