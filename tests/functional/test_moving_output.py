# SPDX-License-Identifier: Apache-2.0
"""What import, export and verification print, in each format."""

import contextlib
import io
import json

import yaml

from placement_rpc.cmd import moving_output
from placement_rpc.moving.stores import Finding
from tests import base

_ROWS = [{"kind": "traits", "read": 2, "created": 1}]
_COLUMNS = ["kind", "read", "created"]
_FOUND = {"what": "left out", "kind": "traits", "key": "CUSTOM_A", "done": "not imported"}


class FindingsTest(base.TestCase):

    def shown(self, style, *found, **lists):
        with moving_output.Findings(style) as findings, contextlib.redirect_stdout(
                io.StringIO()) as said:
            for each in found:
                findings.add(each)
            findings.show(_ROWS, _COLUMNS, **lists)
        return said.getvalue()

    def setUp(self):
        super().setUp()
        self.found = Finding("left out", "traits", ("CUSTOM_A",), "not imported")

    def test_json_and_yaml_have_everything(self):
        for style, load in (("json", json.loads), ("yaml", yaml.safe_load)):
            self.assertEqual(
                {"kinds": _ROWS, "findings": [_FOUND], "differences": [{"n": 1}, {"n": 2}]},
                load(self.shown(style, self.found, differences=[{"n": 1}, {"n": 2}])), style)
            self.assertEqual({"kinds": _ROWS, "findings": []}, load(self.shown(style)), style)

    def test_csv_has_the_counts(self):
        self.assertEqual("kind,read,created\ntraits,2,1\n", self.shown("csv", self.found))

    def test_a_table_is_followed_by_the_findings(self):
        shown = self.shown("table", self.found)
        self.assertIn("created", shown)
        self.assertTrue(shown.endswith("left out: traits CUSTOM_A: not imported\n"), shown)
