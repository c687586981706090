# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document: the committed and the served copy are equal, and the answers match it.

``python -m tests.functional.test_openapi`` writes the committed copy again.
"""

import json
import pathlib

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from placement_rpc.http import openapi, routes
from tests import base, http

COPY = pathlib.Path(__file__).parents[2] / "docs" / "openapi.json"


def written():
    """Return the text of the committed document."""
    return json.dumps(openapi.document(routes.ROUTES), indent=1) + "\n"


class DocumentTest(http.HTTPTest):
    time_limit = 300

    def test_the_committed_copy_is_what_is_served(self):
        """If this fails, run ``make sample``."""
        self.assertEqual(COPY.read_text(), written())
        self.assertEqual(json.loads(COPY.read_text()), self.get("/openapi.json", token=None))

    def test_it_has_every_route(self):
        paths = openapi.document(routes.ROUTES)["paths"]
        for route in routes.ROUTES:
            if route.before:
                continue
            self.assertIn(route.method.lower(), paths[route.path])

    def test_whatever_is_sent_is_answered_as_described(self):
        uuid = self.make(VCPU={"total": 8})
        schema = schemathesis.openapi.from_wsgi("/openapi.json", self.facade.application)
        for result in schema.get_all_operations():
            self.check_operation(result.ok(), uuid)

    def check_operation(self, operation, uuid):
        @settings(max_examples=base.examples(12), deadline=None, database=None, derandomize=True,
                  phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy())
        def send(case):
            headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement latest"}
            if "wait" in (case.query or {}):
                case.query["wait"] = "0"
            if "uuid" in (case.path_parameters or {}) and len(str(case.body)) % 2:
                case.path_parameters["uuid"] = uuid
            case.call_and_validate(headers=headers, checks=(
                checks.not_a_server_error, openapi_checks.status_code_conformance,
                openapi_checks.response_schema_conformance))

        send()


if __name__ == "__main__":
    COPY.write_text(written())
    print(COPY)
