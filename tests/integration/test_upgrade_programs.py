# SPDX-License-Identifier: Apache-2.0
"""The upgrade from nova's columns to a contracted schema, on PostgreSQL and MariaDB."""

import testscenarios

from tests import servers
from tests.functional import test_upgrade_programs


class WayTest(testscenarios.WithScenarios, test_upgrade_programs.WayTest):

    time_limit = 180
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def url(self):
        return servers.new_empty_database(self.kind)
