# SPDX-License-Identifier: Apache-2.0
"""The commands of ``placement-rpc`` that query a service: what they show, and what they ask."""

import contextlib
import io
import json

from placement_rpc.cmd import calls, client_parser
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class UsagesTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        self.nodes = [self.provider(f"node {number}", VCPU=10, MEMORY_MB=100)
                      for number in range(5)]
        self.provider("nothing")
        self.claim({self.nodes[2]: {"VCPU": 5}})

    def run_command(self, *arguments):
        """Run a command; return what it prints, and the number of its calls."""
        options = client_parser.parser().parse_args(arguments)
        caller = placement_fixtures.FaultyCaller(self.api, ())
        with caller, contextlib.redirect_stdout(io.StringIO()) as shown:
            calls.call(self.api, options)
            number = len(caller.attempts)
        return json.loads(shown.getvalue()), number

    def row(self, number, resource_class, used, capacity):
        return {"provider": f"node {number}", "uuid": self.nodes[number],
                "resource_class": resource_class, "used": used, "capacity": capacity,
                "percent": 100 * used / capacity}

    def test_one_call_reads_all_providers(self):
        rows, number = self.run_command("usages")
        self.assertEqual([row for node in range(5) for row in (
            self.row(node, "MEMORY_MB", 0, 100),
            self.row(node, "VCPU", 5 if node == 2 else 0, 10))], rows)
        self.assertEqual(1, number)

    def test_a_limit(self):
        rows, number = self.run_command("usages", "--limit", "1")
        self.assertIn(len({row["uuid"] for row in rows}), (0, 1))
        self.assertEqual(1, number)

    def test_some_providers(self):
        rows, _ = self.run_command("usages", self.nodes[2], self.nodes[0])
        self.assertEqual([self.row(0, "MEMORY_MB", 0, 100), self.row(0, "VCPU", 0, 10),
                          self.row(2, "MEMORY_MB", 0, 100), self.row(2, "VCPU", 5, 10)], rows)
