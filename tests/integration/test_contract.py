# SPDX-License-Identifier: Apache-2.0
"""The tests of the contract again, over RabbitMQ with PostgreSQL and with MariaDB."""

import inspect

from tests import base, servers
from tests.functional import (
    test_claims,
    test_compute_node_objects,
    test_compute_nodes,
    test_events,
    test_input,
    test_inventories,
    test_providers,
    test_queries,
    test_requests,
    test_resource_classes,
    test_sync,
)


class OnRealServers:
    """Puts a test of the contract on real servers."""

    scenarios = [
        ("RabbitMQ and PostgreSQL", {"kind": "postgresql"}),
        ("RabbitMQ and MariaDB", {"kind": "mariadb"}),
    ]

    def service_arguments(self):
        return {"transport": "bus", "transport_url": servers.rabbitmq().url,
                "database_url": servers.new_database(self.kind)}


for _module in (test_claims, test_compute_node_objects, test_compute_nodes, test_events,
                test_input, test_inventories, test_providers, test_queries, test_requests,
                test_resource_classes, test_sync):
    for _name, _class in inspect.getmembers(_module, inspect.isclass):
        if issubclass(_class, base.ContractTest):
            globals()[_name] = type(_name, (OnRealServers, _class), {"__module__": __name__})
del _class
