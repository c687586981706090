# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement's own tests against ``placement-rpc standalone`` on SQLite.

``python -m stestr run 'test_peer_suite.FILE_'`` runs those of one gabbi file.
"""

from tests.conformance import peer_process, peer_suite


def load_tests(loader, tests, _pattern):
    for file in peer_suite.files():
        tests.addTest(peer_suite.suite(loader, __name__, file, peer_process.Standalone))
    return tests
