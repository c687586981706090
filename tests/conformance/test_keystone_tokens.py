# SPDX-License-Identifier: Apache-2.0
"""Tokens of a real keystone, which both servers take and refuse alike."""

import datetime
import time

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.identity import v3

from tests import base, keystone_server
from tests.conformance import keystone_case

_LIST = "GET /resource_providers"


class TokensTest(keystone_case.KeystoneTest):

    def setUp(self):
        super().setUp()
        self.keystone, self.servers = keystone_server.shared(), keystone_case.shared()

    def test_by_password(self):
        self.check_status(200, self.servers, _LIST, self.keystone.token("nova", "service"))
        self.check_status(403, self.servers, _LIST, self.keystone.token("reader", "blue"))
        self.assertRaises(keystone_errors.Unauthorized, self.keystone.token, "nova", "service",
                          password="wrong")

    def test_none_or_not_valid(self):
        for token in (None, "", "admin", "gAAAA", base.new_uuid(), "\u00e4"):
            self.check_status(401, self.servers, _LIST, token and token.encode())
        for name, url in self.servers.urls.items():
            answer = self.send(url, _LIST, "pony")
            self.assertEqual(f'Keystone uri="{self.keystone.url}"',
                             answer.headers["www-authenticate"], name)
            self.assertEqual(200, self.send(url, "GET /", "pony").status_code, name)

    def test_headers_of_clients_are_not_believed(self):
        forged = {"X_Roles": "admin", "X_User_Id": "me", "X_Identity_Status": "Confirmed",
                  "X_Service_Roles": "service", "X_Service_Identity_Status": "Confirmed"}
        self.check_status(401, self.servers, _LIST, **forged)
        self.check_status(
            403, self.servers, _LIST, self.keystone.token("reader", "blue"), **forged)

    def test_revoked(self):
        for user, project in (("nova", "service"), ("operator", "operator")):
            token = self.keystone.token(user, project)
            self.keystone.client().tokens.revoke_token(token)
            self.check_status(401, self.servers, _LIST, token)

    def test_a_reader_sees_the_usages_of_its_project(self):
        projects = {each.name: each.id for each in self.keystone.client().projects.list()}
        for user, roles in keystone_server.USERS.items():
            for project, names in roles.items():
                token = self.keystone.token(user, project)
                for other in ("blue", "red"):
                    allowed = {"admin", "service"} & {*names} or (
                        other == project and {"manager", "member", "reader"} & {*names})
                    self.check_status(
                        200 if allowed else 403, self.servers,
                        f"GET /usages?project_id={projects[other]}", token)

    def test_application_credentials(self):
        service = self.keystone.add_service("placement", self.servers.urls[keystone_case.OURS])
        self.addCleanup(self.keystone.client().services.delete, service)
        credentials = self.keystone.client("operator", "operator").application_credentials
        whole = credentials.create("whole", roles=[{"name": "admin"}])
        less = credentials.create("less", roles=[{"name": "reader"}])
        listing = credentials.create("listing", roles=[{"name": "admin"}], access_rules=[
            {"service": "placement", "method": "GET", "path": "/resource_providers"}])
        past = credentials.create("past", expires_at=(
            datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)).replace(
                tzinfo=None))
        for made, status in ((whole, 200), (less, 403)):
            self.check_status(status, self.servers, _LIST, self.token_by(made))
        limited = self.token_by(listing)
        credentials.delete(whole.id)
        self.assertRaises(keystone_errors.ClientException, self.token_by, whole)
        base.wait_until(lambda: self.is_past(past))
        # Placement does not know its own type without an option, and refuses what has rules.
        self.assertEqual({keystone_case.OURS: 200, keystone_case.PEER: 401},
                         self.statuses(self.servers, _LIST, limited))
        self.check_status(401, self.servers, "GET /traits", limited)
        self.check_status(401, self.servers, "POST /resource_providers", limited,
                          body={"name": base.new_uuid()})

    def is_past(self, credential):
        try:
            self.token_by(credential)
        except keystone_errors.ClientException:
            return True
        return False

    def token_by(self, made):
        return self.keystone.token_of(v3.ApplicationCredential(
            self.keystone.auth_url, application_credential_id=made.id,
            application_credential_secret=made.secret))


class ServiceTokensTest(keystone_case.KeystoneTest):
    """A service sends its own token with that of the user for whom it works."""

    def setUp(self):
        super().setUp()
        self.keystone, self.servers = keystone_server.shared(), self.useFixture(
            keystone_case.Servers(
                keystone_server.shared(), policy=(
                    '"placement:resource_providers:list": "service_roles:service"\n'
                    '"placement:traits:list": "role:reader"\n')))
        self.user = self.keystone.token("reader", "blue")

    def test_roles_of_the_service(self):
        nova = self.keystone.token("nova", "service")
        self.check_status(200, self.servers, _LIST, self.user, X_Service_Token=nova)
        self.check_status(403, self.servers, _LIST, self.user)
        # The roles of its own token are those of a user.
        self.check_status(403, self.servers, _LIST, nova)

    def test_one_that_is_not_of_a_service(self):
        for token in ("pony", self.keystone.token("member", "blue"),
                      self.keystone.token("stranger")):
            for request in (_LIST, "GET /traits"):
                self.check_status(401, self.servers, request, self.user, X_Service_Token=token)
        self.check_status(401, self.servers, _LIST, X_Service_Token=self.keystone.token(
            "nova", "service"))


class ExpiredTest(keystone_case.KeystoneTest):
    """keystone lets tokens expire after seconds."""

    lifetime = 4

    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(keystone_server.Keystone(self.lifetime))
        self.servers = self.useFixture(keystone_case.Servers(self.keystone))

    def token(self):
        return self.keystone.token("old-nova", "service")

    def known_token(self):
        """Return a token that both servers have accepted, and when it was issued at the earliest.

        On a machine that stands still for seconds, the first may expire before that.
        """
        def accepted():
            issued, token = time.monotonic(), self.token()
            return self.are_all(200, token) and (token, issued)

        return base.wait_until(accepted)

    def are_all(self, status, token):
        return set(self.statuses(self.servers, _LIST, token).values()) == {status}

    def test_expired(self):
        token, issued = self.known_token()
        unseen = self.token()
        for each in (token, unseen):
            base.wait_until(lambda each=each: self.are_all(401, each))
        # Not before its time: keystone rounds to whole seconds.
        self.assertGreater(time.monotonic() - issued, self.lifetime - 1)
        # The servers have new ones for themselves.
        self.known_token()

    def test_a_service_may_go_on_with_one(self):
        token = self.token()
        base.wait_until(lambda: self.are_all(401, token))
        base.wait_until(lambda: set(self.statuses(
            self.servers, _LIST, token,
            X_Service_Token=self.keystone.token("nova", "service")).values()) == {200})
        self.check_status(401, self.servers, _LIST, token,
                          X_Service_Token=self.keystone.token("member", "blue"))
