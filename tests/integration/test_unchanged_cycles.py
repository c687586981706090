# SPDX-License-Identifier: Apache-2.0
"""Cycles of resource trackers that are answered from memory, on database servers."""

import testscenarios

from tests import servers
from tests.functional import test_unchanged_cycles


class UnchangedCycleTest(
        testscenarios.WithScenarios, test_unchanged_cycles.UnchangedCycleTest):

    scenarios = [(kind, {"kind": kind}) for kind in ("postgresql", "mariadb")]

    def new_database(self):
        return servers.new_database(self.kind)
