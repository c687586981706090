# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement's own tests over RabbitMQ and PostgreSQL: a sample, and all in full."""

from tests import base
from tests.conformance import peer_process, peer_suite

# One or two for each kind of resource, and those that check rules a second time in the conductor.
_SAMPLE = ("aggregate", "allocation-candidates", "allocation-candidates-secure-rbac",
           "allocations-1.28", "allocations-post", "consumer-types-1.38", "granular-same-subtree",
           "inventory", "reshaper", "resource-classes", "resource-provider", "traits",
           "usage-secure-rbac")


def load_tests(loader, tests, _pattern):
    for file in peer_suite.files() if base.FULL else _SAMPLE:
        tests.addTest(peer_suite.suite(loader, __name__, file, peer_process.OnRealServers))
    return tests
