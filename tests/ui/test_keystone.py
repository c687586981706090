# SPDX-License-Identifier: Apache-2.0
"""The page in a cloud: the login is keystone's, and so are the rights."""

from tests import keystone_server
from tests.conformance.keystone_case import OURS, Servers
from tests.ui.browser import PageTest


class KeystoneTest(PageTest):

    # Each starts several programs.
    time_limit = 300
    # Logins that are refused are among them.
    fails = True

    def setUp(self):
        super().setUp()
        self.keystone = keystone_server.shared()
        self.url = self.useFixture(Servers(self.keystone, names=(OURS,))).urls[OURS]

    def log_in(self, **fields):
        for name, text in fields.items():
            self.type(name, text)
        self.click("form button")

    def log_in_by_token(self, token):
        self.click("details summary")
        self.type("token", token)
        self.click("details button")

    def test_logins(self):
        self.load(self.url)
        self.log_in(user="operator", password="wrong", project="operator")
        self.wait_text("#login-message", "401: Keystone does not accept")
        self.assertEqual("", self.wait("[name=password]").get_attribute("value"))
        self.log_in(password="operator")
        self.wait_text("#classes", "No provider has an inventory yet")
        self.wait_text("#leave", "operator")
        self.click("#leave")
        # A reader of a project sees what the project uses.
        self.log_in(user="reader", password="reader", project="blue")
        self.wait_text("#project", "The project blue uses nothing")
        self.click("#leave")
        # A token of one's own; its rights are those of a reader.
        self.log_in_by_token(self.keystone.token("reader", "blue"))
        self.wait_text(".notice", "placement:provider_summaries:list")
        self.wait_text("#project", "Log in with a name and a project")
        self.click("#leave")
        self.log_in_by_token("nonsense")
        self.wait_text("#login-message", "401")
        # Nothing of it outlives the page.
        self.assertEqual([0, 0, ""], self.run_script(
            "return [localStorage.length, sessionStorage.length, document.cookie]"))
