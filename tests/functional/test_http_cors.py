# SPDX-License-Identifier: Apache-2.0
"""Pages of other origins (CORS), against a server on a socket."""

import json

import requests
from oslo_config import cfg
from oslo_middleware import cors
from placement import wsgi as placement_wsgi

from placement_rpc.conf import facade as configuration
from placement_rpc.testing.facade import Facade
from tests import base

PAGE, OTHER = "https://dashboard.example.org", "https://other.example.org"


class CORSTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.facade = self.useFixture(Facade(cors__allowed_origin=[PAGE]))

    def send(self, method, path, **headers):
        return requests.request(method, f"{self.facade.url}{path}", timeout=30, headers={
            name.replace("_", "-"): value for name, value in headers.items()})

    def ask(self, path="/resource_providers", origin=PAGE, method="PUT", headers="x-auth-token"):
        """Ask as a browser does before the request itself: without a token."""
        return self.send("OPTIONS", path, Origin=origin, Access_Control_Request_Method=method,
                         Access_Control_Request_Headers=headers)

    def test_a_page_may_ask(self):
        for path in ("/", "/resource_providers", f"/allocations/{base.new_uuid()}"):
            answer = self.ask(path, headers="X-Auth-Token,OpenStack-API-Version,If-Match")
            self.assertEqual(200, answer.status_code)
            self.assertEqual(PAGE, answer.headers["access-control-allow-origin"])
            self.assertEqual("PUT", answer.headers["access-control-allow-methods"])
            self.assertEqual("X-Auth-Token,OpenStack-API-Version,If-Match",
                             answer.headers["access-control-allow-headers"])
            self.assertEqual(b"", answer.content)

    def test_others_may_not(self):
        for answer in (self.ask(origin=OTHER), self.ask(method="TRACE"),
                       self.ask(headers="x-secret"),
                       self.send("GET", "/", Origin=OTHER), self.send("GET", "/")):
            self.assertEqual(200, answer.status_code)
            self.assertNotIn("access-control-allow-origin", answer.headers)

    def test_answers_can_be_read(self):
        """Errors too: a page learns why it was refused."""
        for path, token, status in (("/", None, 200), ("/resource_providers", "admin", 200),
                                    ("/resource_providers", None, 401),
                                    ("/resource_providers", "ada", 403),
                                    ("/nothing", "admin", 404)):
            answer = self.send("GET", path, Origin=PAGE, **(
                {"X_Auth_Token": token} if token else {}))
            self.assertEqual(status, answer.status_code)
            self.assertEqual(PAGE, answer.headers["access-control-allow-origin"])
            self.assertEqual({"origin", "openstack-api-version"}, {
                each.strip().lower() for each in answer.headers["vary"].split(",")})
            self.assertIn("OpenStack-API-Version",
                          answer.headers["access-control-expose-headers"].split(","))

    def test_a_change(self):
        answer = requests.post(
            f"{self.facade.url}/resource_providers", json={"name": "node"}, timeout=30,
            headers={"Origin": PAGE, "X-Auth-Token": "admin"})
        self.assertEqual(201, answer.status_code)
        self.assertEqual(PAGE, answer.headers["access-control-allow-origin"])
        self.assertEqual("node", self.facade.api.list_providers(None).objects[0].name)

    def test_a_stream_of_events(self):
        with requests.get(f"{self.facade.url}/events", stream=True, timeout=30, headers={
                "Origin": PAGE, "X-Auth-Token": "admin", "Accept": "text/event-stream"}) as answer:
            self.assertEqual(PAGE, answer.headers["access-control-allow-origin"])
            self.facade.api.create_provider(None, "node")
            for line in answer.iter_lines():
                if line.startswith(b"data:") and b"event_type" in line:
                    self.assertEqual("resource_provider.create",
                                     json.loads(line[5:])["event_type"])
                    break
            else:
                self.fail("The stream ended")

    def test_an_origin_that_is_none(self):
        for origin in ("null", "\xff\xfe".encode("latin-1"), "x" * 4000, "*", f"{PAGE}/"):
            answer = requests.get(f"{self.facade.url}/", timeout=30, headers={"Origin": origin})
            self.assertEqual(200, answer.status_code)
            self.assertNotIn("access-control-allow-origin", answer.headers)


class DefaultsTest(base.TestCase):

    def test_it_is_off(self):
        facade = self.useFixture(Facade())
        answer = requests.options(f"{facade.url}/", timeout=30, headers={
            "Origin": PAGE, "Access-Control-Request-Method": "GET"})
        self.assertEqual(405, answer.status_code)
        self.assertNotIn("access-control-allow-origin", answer.headers)

    def test_they_are_placements_and_more(self):
        ours = configuration.new_config(config_files=[]).cors
        defaults = [(each, each.default) for each in cors.OPTS]
        for option, value in defaults:
            self.addCleanup(setattr, option, "default", value)
        placement_wsgi._set_middleware_defaults()
        theirs = cfg.ConfigOpts()
        theirs.register_opts(cors.CORS_OPTS, "cors")
        theirs([], default_config_files=[])
        for name in ("allow_headers", "expose_headers", "allow_methods"):
            self.assertEqual([], [each for each in getattr(theirs.cors, name)
                                  if each not in getattr(ours, name)], name)
        for name in ("allowed_origin", "allow_credentials", "max_age"):
            self.assertEqual(getattr(theirs.cors, name), getattr(ours, name), name)
