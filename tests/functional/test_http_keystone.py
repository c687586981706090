# SPDX-License-Identifier: Apache-2.0
"""Tokens of keystone over HTTP, and a keystone that does not answer."""

import json
import threading
import wsgiref.simple_server

import fixtures
import keystoneauth1.loading
from keystonemiddleware import fixture as keystone_fixture

from placement_rpc import exception
from placement_rpc.http import auth
from placement_rpc.http.facade import Facade
from tests import base, http


class KeystoneTest(http.HTTPTest):
    options = {"api__auth_strategy": "keystone"}

    def setUp(self):
        super().setUp()
        # The middleware's own stand-in for a keystone.
        self.keystone = self.useFixture(keystone_fixture.AuthTokenFixture())
        self.tokens = {role: base.new_uuid() for role in ("admin", "reader")}
        for role, token in self.tokens.items():
            self.keystone.add_token_data(
                token, role_list=[role], project_id="blue", user_id=role)

    def configure(self, conf):
        auth.register_keystone(conf)
        conf.set_override("www_authenticate_uri", "http://identity.example/v3",
                          group="keystone_authtoken")

    def test_tokens(self):
        for token, status in ((self.tokens["admin"], 200), (self.tokens["reader"], 403),
                              (base.new_uuid(), 401), (None, 401), ("admin", 401)):
            answer = self.send("GET", "/resource_providers", token=token)
            self.assertEqual(status, answer.status_code)
            if status == 401:
                self.assertEqual('Keystone uri="http://identity.example/v3"',
                                 answer.headers["www-authenticate"])
        self.assertEqual(200, self.send("GET", "/", token=None).status_code)

    def test_a_rule_can_ask_about_domains(self):
        path = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        with open(path, "w") as file:
            json.dump({"placement:resource_providers:list":
                       "role:reader and user_domain_id:home and project_domain_id:office"}, file)
        self.running.conf.set_override("policy_file", path, group="oslo_policy")
        self.facade = Facade(self.running.conf, self.api)
        self.addCleanup(self.facade.close)
        for user, project, status in (("home", "office", 200), ("office", "office", 403),
                                      ("home", "home", 403)):
            token = base.new_uuid()
            self.keystone.add_token_data(
                token, role_list=["reader"], project_id="blue", user_id="ada",
                user_domain_id=user, project_domain_id=project)
            self.assertEqual(status, self.send(
                "GET", "/resource_providers", token=token).status_code)

    def test_headers_of_clients_are_not_believed(self):
        self.refused(401, self.send(
            "GET", "/resource_providers", token=None, X_Identity_Status="Confirmed",
            X_Roles="admin", X_User_Id="me"))
        self.refused(403, self.send(
            "GET", "/resource_providers", token=self.tokens["reader"], X_Roles="admin"))


class KeystoneAwayTest(http.HTTPTest):
    """Whether a token is valid is not known while keystone does not answer."""

    options = {"api__auth_strategy": "keystone"}

    def configure(self, conf):
        self.answers = {}
        keystone = wsgiref.simple_server.make_server(
            "127.0.0.1", 0, self.keystone, handler_class=_QuietHandler)
        self.addCleanup(keystone.server_close)
        thread = threading.Thread(target=keystone.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(keystone.shutdown)
        self.url = f"http://127.0.0.1:{keystone.server_port}"
        auth.register_keystone(conf)
        for name, value in (("auth_type", "v3password"), ("auth_version", "v3"),
                            ("http_request_max_retries", 0)):
            conf.set_override(name, value, group="keystone_authtoken")
        conf.register_opts(keystoneauth1.loading.get_auth_plugin_conf_options("v3password"),
                           group="keystone_authtoken")
        for name, value in (
                ("auth_url", f"{self.url}/v3"), ("username", "placement"), ("password", "secret"),
                ("user_domain_id", "default"), ("project_name", "service"),
                ("project_domain_id", "default")):
            conf.set_override(name, value, group="keystone_authtoken")

    def keystone(self, environ, start_response):
        """Answer as a keystone does that issues a token to the service."""
        key = environ["REQUEST_METHOD"], environ["PATH_INFO"].rstrip("/")
        status, body = self.answers.get(key, ("503 Service Unavailable", {}))
        start_response(status, [("content-type", "application/json"),
                                ("x-subject-token", "of-the-service")])
        return [json.dumps(body).encode()]

    def issues_tokens(self):
        version = {"id": "v3.14", "status": "stable", "links": [
            {"rel": "self", "href": f"{self.url}/v3"}]}
        self.answers |= {
            ("GET", "/v3"): ("200 OK", {"version": version}),
            ("POST", "/v3/auth/tokens"): ("201 Created", {"token": {
                "methods": ["password"], "expires_at": "2099-01-01T00:00:00.000000Z",
                "issued_at": "2026-01-01T00:00:00.000000Z",
                "user": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}},
                "catalog": [{"type": "identity", "id": "i", "name": "keystone", "endpoints": [
                    {"id": "e", "interface": interface, "region": "r", "region_id": "r",
                     "url": f"{self.url}/v3"} for interface in ("internal", "admin")]}]}})}

    def check_away(self):
        answer = self.send("GET", "/resource_providers", token=base.new_uuid(),
                           X_Identity_Status="Confirmed", X_Roles="admin")
        self.assertEqual("placement.service.unavailable", self.refused(503, answer)["code"])
        self.assertEqual("1", answer.headers["retry-after"])
        self.assertNotIn("www-authenticate", answer.headers)

    def test_it_is_busy(self):
        self.check_away()
        # Nothing to check.
        self.refused(401, self.send("GET", "/resource_providers", token=None))
        self.assertEqual(200, self.send("GET", "/", token="any").status_code)

    def test_it_answers_about_itself_and_not_about_tokens(self):
        self.issues_tokens()
        for status in ("500 Internal Server Error", "503 Service Unavailable"):
            self.answers["GET", "/v3/auth/tokens"] = status, {}
            self.check_away()
        self.answers["GET", "/v3/auth/tokens"] = "404 Not Found", {}
        self.refused(401, self.send("GET", "/resource_providers", token=base.new_uuid()))

    def test_credentials_of_the_service_that_are_not_complete(self):
        conf = self.running.conf
        conf.set_override("auth_url", None, group="keystone_authtoken")
        error = self.assertRaises(exception.InvalidInput, Facade, conf, self.api)
        self.assertIn("[keystone_authtoken]", error.text)
        self.assertIn("auth_url", error.text)
        conf.set_override("auth_type", "nope", group="keystone_authtoken")
        error = self.assertRaises(exception.InvalidInput, Facade, conf, self.api)
        self.assertIn("nope", error.text)

    def test_there_are_no_credentials(self):
        conf = self.running.conf
        conf.set_override("auth_type", None, group="keystone_authtoken")
        self.facade = Facade(conf, self.api)
        self.addCleanup(self.facade.close)
        self.check_away()
        self.assertIn("A token cannot be checked", self.log.output)

    def test_there_is_none(self):
        self.running.conf.set_override(
            "auth_url", "http://127.0.0.1:1/v3", group="keystone_authtoken")
        self.facade = Facade(self.running.conf, self.api)
        self.addCleanup(self.facade.close)
        self.check_away()


class _QuietHandler(wsgiref.simple_server.WSGIRequestHandler):

    def log_message(self, *_arguments):
        """Print nothing."""
