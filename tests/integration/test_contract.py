# SPDX-License-Identifier: Apache-2.0
"""The tests of the contract again, over RabbitMQ and on PostgreSQL and MariaDB."""

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
        ("RabbitMQ and PostgreSQL", {"kind": "postgresql", "transport": "bus"}),
        ("RabbitMQ and MariaDB", {"kind": "mariadb", "transport": "bus"}),
        *([] if base.FULL else [
            ("PostgreSQL", {"kind": "postgresql", "transport": "local"}),
            ("MariaDB", {"kind": "mariadb", "transport": "local"})])]

    def __init__(self, *arguments):
        super().__init__(*arguments)
        if not base.FULL:
            # The same one in every run.
            self.scenarios = [
                self.scenarios[zlib.crc32(self.id().encode()) % len(self.scenarios)]]

    def service_arguments(self):
        database = servers.new_database(self.kind)
        if self.transport == "local" and not self.needs_relay:
            return {"transport": "local", "database_url": database}
        # The queues go with the virtual host: thousands of them would slow the broker down.
        return {"transport": "bus", "database_url": database,
                "transport_url": self.useFixture(servers.VirtualHost()).url}


for _module in (test_claim_sets, test_claims, test_compute_node_objects, test_compute_nodes,
                test_consumers_of_pool, test_events, test_explanations, test_headroom, test_input,
                test_inventories, test_providers, test_queries, test_raw_input, test_requests,
                test_reshape, test_resource_classes, test_summaries, test_sync,
                test_sync_differences, test_traits, test_tree_claims, test_trees):
    for _name, _class in inspect.getmembers(_module, inspect.isclass):
        if issubclass(_class, base.ContractTest):
            globals()[_name] = type(_name, (OnRealServers, _class), {"__module__": __name__})
del _class
