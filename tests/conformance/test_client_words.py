# SPDX-License-Identifier: Apache-2.0
"""Programs find in the errors of this service what they look for in those of Placement."""

import json
import re

import testscenarios

from tests import base
from tests.conformance import client_words, web, wire


class ClientWordsTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(f"{number} {match.case.name.replace('.', '_')}", {"match": match})
                 for number, match in enumerate(client_words.MATCHES)]

    _world = None

    @classmethod
    def world(cls):
        """Return what is on both servers; no request here changes it."""
        if cls._world is None:
            made = wire.World()
            for address in web.SERVERS.values():
                made.make(address())
            cls._world = made
        return cls._world

    def test_finds_it_on_both(self):
        statuses = set()
        for name, address in web.SERVERS.items():
            answer = self.match.case.send(address(), self.world())
            text = answer.body.decode()
            statuses.add(answer.status)
            self.assertLessEqual(400, answer.status, f"{name}: {text}")
            if self.match.looks_for is not None:
                self.assertTrue(re.search(self.match.looks_for, text), f"{name}: {text}")
            if self.match.code is not None:
                self.assertEqual(self.match.code, json.loads(text)["errors"][0]["code"], name)
        self.assertEqual(1, len(statuses), statuses)
