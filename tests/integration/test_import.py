# SPDX-License-Identifier: Apache-2.0
"""The import from each database to each other, and what a running service makes of it."""

import testscenarios

from tests import base, servers
from tests.functional import test_import

_PAIRS = [("postgresql", "mariadb"), ("mariadb", "postgresql"), ("sqlite", "postgresql"),
          ("postgresql", "sqlite")]


def _url(kind):
    return None if kind == "sqlite" else servers.new_database(kind)


class ImportTest(testscenarios.WithScenarios, test_import.ImportTest):
    """All of the tests on SQLite, between other databases."""

    scenarios = [(f"{source} to {target}", {"source_kind": source, "target_kind": target})
                 for source, target in (_PAIRS if base.FULL else _PAIRS[:2])]

    def store_url(self):
        return _url(self.target_kind)
