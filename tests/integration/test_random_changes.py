# SPDX-License-Identifier: Apache-2.0
"""The databases of servers do what a simple model says, after every one of many random changes."""

import testscenarios

from tests import base, servers
from tests.functional import random_changes


class RandomChangesTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 1200
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    def test_store_and_model_agree(self):
        kind = self.kind

        class RandomChanges(random_changes.RandomChanges):

            def new_database(self):
                return servers.new_database(kind)

        random_changes.run(RandomChanges, base.examples(2))
