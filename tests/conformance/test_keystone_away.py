# SPDX-License-Identifier: Apache-2.0
"""A service whose keystone cannot be asked, for each reason that there is."""

import signal
import time

from tests import base, keystone_server
from tests.conformance import keystone_case
from tests.conformance.keystone_case import OURS, PEER

_LIST = "GET /resource_providers"


class AwayTest(keystone_case.KeystoneTest):
    """keystone ends, starts again, stands still and goes on."""

    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(keystone_server.Keystone())

    def serve(self, *names, **middleware):
        return self.useFixture(keystone_case.Servers(
            self.keystone, names, http_request_max_retries=0, **middleware))

    def check_unavailable(self, url, token):
        answer = self.send(url, _LIST, token)
        self.assertEqual((503, "1"), (answer.status_code, answer.headers.get("retry-after")))
        self.assertEqual("placement.service.unavailable",
                         answer.json()["errors"][0]["exact_code"])
        self.assertNotIn("www-authenticate", answer.headers)

    def test_it_ends_and_starts(self):
        # The servers start while it is away.
        self.keystone.stop()
        servers = self.serve(OURS, PEER)
        self.check_unavailable(servers.urls[OURS], base.new_uuid())
        self.check_status(503, servers, _LIST, base.new_uuid())
        self.keystone.start()
        token = self.keystone.token("nova", "service")
        later = self.keystone.token("nova", "service")
        self.check_status(200, servers, _LIST, token)
        self.keystone.stop()
        # The token that the servers know, one that they do not know, and none.
        self.check_status(200, servers, _LIST, token)
        self.check_status(503, servers, _LIST, later)
        self.check_status(401, servers, _LIST)
        self.check_status(200, servers, "GET /", later)
        self.check_unavailable(servers.urls[OURS], later)
        self.keystone.start()
        self.check_status(200, servers, _LIST, later)
        self.check_status(401, servers, _LIST, base.new_uuid())

    def test_it_comes_back_with_other_keys(self):
        servers = self.serve(OURS, PEER)
        token = self.keystone.token("nova", "service")
        self.check_status(200, servers, _LIST, token)
        self.keystone.stop()
        self.keystone.replace_keys()
        self.keystone.start()
        # The tokens with which the servers ask are not valid either.
        self.check_status(401, servers, _LIST, base.new_uuid())
        self.check_status(200, servers, _LIST, self.keystone.token("nova", "service"))

    def test_it_stands_still(self):
        url = self.serve(OURS, http_connect_timeout=1).urls[OURS]
        token, known = (self.keystone.token("nova", "service") for _ in range(2))
        self.assertEqual(200, self.send(url, _LIST, known).status_code)
        self.keystone.send_signal(signal.SIGSTOP)
        self.check_unavailable(url, token)
        self.assertEqual(200, self.send(url, _LIST, known).status_code)
        self.keystone.send_signal(signal.SIGCONT)
        self.assertEqual(200, self.send(url, _LIST, token).status_code)

    def test_it_has_a_time_limit_without_an_option(self):
        url = self.serve(OURS).urls[OURS]
        token = self.keystone.token("nova", "service")
        self.keystone.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        for request in ("GET /", "GET /openapi.json", "GET /healthcheck"):
            self.assertEqual(200, self.send(url, request, token).status_code)
        self.assertLess(time.monotonic() - began, 4)
        self.check_unavailable(url, token)
        self.assertLess(time.monotonic() - began, 15)


class RefusedTest(keystone_case.KeystoneTest):
    """keystone answers, and the service may not ask it."""

    def setUp(self):
        super().setUp()
        self.keystone = keystone_server.shared()
        self.token = self.keystone.token("nova", "service")

    def check(self, *names, **middleware):
        """Check that servers know their state: a token may be valid, and none is not."""
        servers = self.useFixture(keystone_case.Servers(
            self.keystone, names or (OURS,), http_request_max_retries=0, **middleware))
        self.check_status(503, servers, _LIST, self.token)
        self.check_status(401, servers, _LIST)
        return servers

    def test_the_password_of_the_service_is_wrong(self):
        servers = self.check(OURS, PEER, password="wrong-secret")
        answer = self.send(servers.urls[OURS], _LIST, self.token)
        self.assertNotIn("wrong-secret", answer.text)

    def test_the_service_has_no_role_there(self):
        self.check(username="reader", password="reader", project_name="blue")
        self.check(username="stranger", password="stranger")

    def test_the_address_is_not_one_of_keystone(self):
        self.check(auth_url=f"{self.keystone.url}/nothing")

    def test_it_has_no_valid_certificate(self):
        self.check(auth_url=self.keystone.url.replace("http:", "https:"))

    def test_nothing_is_configured(self):
        self.check(auth_type="", www_authenticate_uri="")
