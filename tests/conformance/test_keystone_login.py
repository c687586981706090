# SPDX-License-Identifier: Apache-2.0
"""``POST /ui/auth``: a login of the page, which the facade passes on to a real keystone."""

import json
import logging

import falcon
import falcon.testing
import fixtures
import requests

from placement_rpc.conf import service as configuration
from placement_rpc.http import auth, keystone_login
from tests import keystone_server
from tests.conformance.keystone_case import OURS, KeystoneTest, Servers, shared


class _LoginTest(KeystoneTest):

    def log_in(self, url=None, **body):
        return self.connections.post(
            f"{url or shared().urls[OURS]}/ui/auth", json=body, timeout=60)

    def refused(self, status, answer):
        self.assertEqual(status, answer.status_code, answer.text)
        error, = answer.json()["errors"]
        self.assertEqual(answer.headers["x-openstack-request-id"], error["request_id"])
        return error["detail"]


class LoginTest(_LoginTest):

    def test_the_token_is_valid_here(self):
        answer = self.log_in(user="operator", password="operator", project="operator")
        self.assertEqual(200, answer.status_code, answer.text)
        self.assertEqual("no-store", answer.headers["cache-control"])
        found = answer.json()
        self.assertEqual(("operator", "operator"), (found["user"], found["project"]))
        listed = self.send(shared().urls[OURS], "GET /resource_providers", found["token"])
        self.assertEqual(200, listed.status_code, listed.text)

    def test_the_rights_are_those_of_the_project(self):
        token = self.log_in(user="operator", password="operator", project="blue").json()["token"]
        answer = self.send(shared().urls[OURS], "GET /resource_providers", token)
        self.assertEqual(403, answer.status_code)

    def test_wrong_logins_are_alike(self):
        details = {self.refused(401, self.log_in(**body)) for body in (
            {"user": "operator", "password": "wrong", "project": "operator"},
            {"user": "nobody", "password": "operator", "project": "operator"},
            {"user": "operator", "password": "operator", "project": "nothing"},
            {"user": "operator", "password": "operator", "user_domain": "Other"})}
        self.assertEqual(1, len(details))

    def test_what_is_no_login(self):
        for body in ({}, {"user": "operator"}, {"user": 1, "password": "x"},
                     {"user": "a", "password": "b", "other": "c"},
                     {"user": "a" * 2000, "password": "b"}):
            self.refused(400, self.log_in(**body))
        self.refused(413, self.log_in(user="a", password="b" * 20_000))
        url = f"{shared().urls[OURS]}/ui/auth"
        # A form of another origin can be sent without a question, but not with this type.
        for how in ({"data": {"user": "operator", "password": "operator"}},
                    {"data": '{"user": "operator", "password": "operator"}',
                     "headers": {"content-type": "text/plain"}}):
            self.refused(415, requests.post(url, timeout=60, **how))
        answer = requests.get(url, timeout=60)
        self.assertEqual((405, "POST"), (answer.status_code, answer.headers["allow"]))

    def test_settings(self):
        answer = self.connections.get(f"{shared().urls[OURS]}/ui/settings.json", timeout=60)
        self.assertEqual("keystone", answer.json()["login"])


class AbsentKeystoneTest(_LoginTest):

    def test_keystone_does_not_answer(self):
        keystone = self.useFixture(keystone_server.Keystone())
        url = self.useFixture(Servers(keystone, names=(OURS,))).urls[OURS]
        keystone.stop()
        answer = self.log_in(url, user="operator", password="operator", project="operator")
        self.assertIn("keystone", self.refused(503, answer))
        self.assertIn("retry-after", answer.headers)


class SecretsTest(KeystoneTest):

    def setUp(self):
        super().setUp()
        path = self.useFixture(fixtures.TempDir()).join("placement-rpc.conf")
        options = keystone_server.shared().middleware()
        with open(path, "w") as file:
            file.write("[keystone_authtoken]\n")
            file.writelines(f"{name} = {value}\n" for name, value in options.items())
        conf = configuration.new_config(["--config-file", path])
        auth.register_keystone(conf)
        self.login = keystone_login.KeystoneLogin(conf)

    def answer(self, **body):
        return self.login.answer(falcon.Request(falcon.testing.create_environ(
            "/ui/auth", method="POST", body=json.dumps(body),
            headers={"Content-Type": "application/json"})))

    def test_no_log_has_them(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.assertRaises(keystone_login.Refused, self.answer, user="operator",
                          password="the-wrong-secret")
        found = self.answer(user="operator", password="operator", project="operator")
        self.assertIn("/auth/tokens", log.output)
        for secret in ("the-wrong-secret", found["token"]):
            self.assertNotIn(secret, log.output)
