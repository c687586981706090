# SPDX-License-Identifier: Apache-2.0
"""Audits of random clouds again, in PostgreSQL and in MariaDB."""

import testscenarios

from tests import base, servers
from tests.functional import test_audit


class RandomCloudTest(testscenarios.WithScenarios, test_audit.RandomCloudTest):

    scenarios = [(kind, {"kind": kind}) for kind in ("postgresql", "mariadb")]
    seeds = range(100, 140 if base.FULL else 105)

    def database_url(self):
        return servers.new_database(self.kind)

    # With fewer clouds, not each kind of finding is among them.
    every_kind = False
