# SPDX-License-Identifier: Apache-2.0
"""``/healthcheck`` while servers that a facade needs go away and come back."""

import time

from placement_rpc.conf import service as configuration
from placement_rpc.service.http import HTTPService
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, http, servers
from tests.integration.proxy import Proxy


class HealthCase(base.TestCase):

    def open(self, **options):
        """Open the resources of a process of the facade."""
        self.service = HTTPService(configuration.new_config(
            config_files=[], api__auth_strategy="noauth2", **options))
        self.addCleanup(self.service.close)

    def ask(self, method="GET", **headers):
        return http.request(
            self.service.facade.application, method, "/healthcheck", headers=headers)

    def await_status(self, status):
        """Wait until it answers with a status; return the answer."""
        return base.wait_until(lambda: (found := self.ask()).status_code == status and found)


class DatabaseTest(HealthCase):

    def setUp(self):
        super().setUp()
        self.server = self.useFixture(private.PostgreSQL())
        url = self.server.create_database()
        self.useFixture(placement_fixtures.Store(url))
        self.open(database__connection=url, transport_url="inprocess://tests/")

    def test_a_database_that_goes_away(self):
        self.assertEqual((200, 204), (self.ask().status_code, self.ask("HEAD").status_code))
        self.server.stop()
        answer = self.await_status(503)
        self.assertIn("text/plain", answer.headers["content-type"])
        self.assertIn("database", answer.text)
        answer = self.ask(Accept="application/json")
        self.assertEqual((503, False), (answer.status_code, answer.json["detailed"]))
        self.assertIn("database", answer.json["reasons"][0])
        answer = self.ask("HEAD")
        self.assertEqual((503, ""), (answer.status_code, answer.text))
        self.server.start()
        self.await_status(200)
        # One that hangs is away too, and requests do not wait for it.
        self.server.freeze()
        self.addCleanup(self.server.thaw)
        answer = self.await_status(503)
        self.assertIn("has not ended for", answer.text)
        began = time.monotonic()
        for _ in range(10):
            self.ask()
        self.assertLess(time.monotonic() - began, 1)
        self.server.thaw()
        self.await_status(200)


class BusTest(HealthCase):

    def test_a_service_and_a_broker_that_go_away(self):
        broker = self.useFixture(servers.VirtualHost())
        proxy = self.useFixture(Proxy(broker.port))
        running = self.useFixture(placement_fixtures.RunningService(
            transport_url=broker.url, topic="placement"))
        # No word of the database.
        self.open(api__transport="rpc", transport_url=broker.url.replace(
            f":{broker.port}/", f":{proxy.port}/"))
        self.await_status(200)
        # The broker: its connections break, and new ones are refused.
        proxy.switch(1)
        self.await_status(503)
        proxy.switch(broker.port)
        self.await_status(200)
        # The service behind it.
        running.conductor.stop()
        answer = self.await_status(503)
        self.assertNotEqual("", answer.text)
