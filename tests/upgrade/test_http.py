# SPDX-License-Identifier: Apache-2.0
"""The facade of this release in front of conductors of an older one."""

import json

from placement_rpc.http.facade import Facade
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, http, servers


class OlderServiceTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url, api__auth_strategy="noauth2",
            upgrade_levels__placement="ocata"))
        self.facade = Facade(self.running.conf, self.running.api, is_remote=True)
        self.addCleanup(self.facade.close)

    def send(self, method, path, body=None, query=""):
        return http.request(
            self.facade.application, method, path, query, {
                "X-Auth-Token": "admin", "Content-Type": "application/json",
                "OpenStack-API-Version": "placement 1.4"},
            None if body is None else json.dumps(body))

    def test_what_the_specifications_have_works(self):
        uuid, consumer = base.new_uuid(), base.new_uuid()
        for method, path, body, status in (
                ("POST", "/resource_providers", {"name": "node", "uuid": uuid}, 201),
                ("PUT", f"/resource_providers/{uuid}/inventories", {
                    "resource_provider_generation": 0,
                    "inventories": {"VCPU": {"total": 8}}}, 200),
                ("PUT", f"/allocations/{consumer}", {"allocations": [
                    {"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 1}}]}, 204),
                ("GET", f"/allocations/{consumer}", None, 200),
                ("GET", "/resource_providers", None, 200),
                ("DELETE", f"/allocations/{consumer}", None, 204)):
            answer = self.send(method, path, body)
            self.assertEqual(status, answer.status_code, f"{method} {path}: {answer.text}")
        # An older service cannot report the position at which a list is current.
        self.assertNotIn("placement-position", self.send("GET", "/resource_providers").headers)

    def test_what_is_newer_says_so(self):
        for method, path, query, body in (
                ("GET", "/events", "", None),
                ("POST", "/resource_providers", "explain", {"resources": {"VCPU": 1}})):
            answer = self.send(method, path, body, query)
            self.assertEqual((503, "placement.service.too_old"), (
                answer.status_code, answer.json["errors"][0]["code"]))
