# SPDX-License-Identifier: Apache-2.0
"""The tables of the reference pages, which are made from JSON schemas."""

import json
import pathlib
import sys

from tests import base

_DOCS = pathlib.Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(_DOCS / "extensions"))

import schema_text  # noqa: E402


def _rows(document, schema):
    return {row[0].strip("`"): row[1:] for row in schema_text.Schemas(document).fields(schema)}


class SchemaTextTest(base.TestCase):

    def test_an_event(self):
        document = json.loads((_DOCS / "asyncapi.json").read_text())
        rows = _rows(document, {"$ref": "#/components/schemas/AllocationPayload"})
        self.assertEqual(["uuid", "yes"], rows["consumer_uuid"])
        self.assertEqual(["text of at most 255 or null", "since 1.2"], rows["consumer_type"])
        self.assertEqual(["list of ProviderAllocation", "yes"], rows["providers"])
        self.assertEqual(["integer from 1", ""], rows["providers[].after.[name]"])

    def test_an_answer_over_http(self):
        document = json.loads((_DOCS / "openapi.json").read_text())
        answer = document["paths"]["/allocations/{consumer_uuid}"]["get"]["responses"]["200"]
        rows = _rows(document, answer["content"]["application/json"]["schema"])
        self.assertIn("allocations.[name].resources.[name]", rows)

    def test_alternatives(self):
        schemas = schema_text.Schemas({})
        self.assertEqual("integer or null", schemas.type(
            {"anyOf": [{"type": "integer"}, {"type": "null"}]}))
        self.assertEqual("``a``, ``b``", schemas.type({"enum": ["a", "b"]}))

    def test_a_table_has_each_row_once(self):
        self.assertEqual([
            ".. list-table::", "   :header-rows: 1", "   :widths: 1 1", "",
            "   * - a", "     - b", "   * - 1", "     -", ""],
            schema_text.table(["a", "b"], [["1", ""], ["1", ""]], "1 1"))
        self.assertEqual([], schema_text.table(["a"], [], "1"))
