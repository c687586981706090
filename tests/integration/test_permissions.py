# SPDX-License-Identifier: Apache-2.0
"""The permissions that the page on security gives to accounts of the broker are enough."""

import pathlib
import re
import threading

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.amqp import frames
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_PAGE = pathlib.Path(__file__).parents[2] / "docs/source/security.rst"


def _documented():
    """Return the permissions of the page: dict of account to tuple of configure, write, read."""
    return {account: tuple(patterns) for account, *patterns in re.findall(
        r"rabbitmqctl set_permissions (\w+) [\s\\]*'([^']*)'[\s\\]+'([^']*)'[\s\\]+'([^']*)'",
        _PAGE.read_text())}


class PermissionTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.host = self.useFixture(servers.VirtualHost())

    def conf(self, account, **options):
        """Return a configuration with an account that has the permissions of the page."""
        user = base.new_uuid()
        self.host.rabbitmqctl_as_is("add_user", user, "password")
        self.addCleanup(self.host.rabbitmqctl_as_is, "delete_user", user)
        self.host.rabbitmqctl("set_permissions", user, *_documented()[account])
        return configuration.new_config(config_files=[], transport_url=(
            f"rabbit://{user}:password@127.0.0.1:{self.host.port}/"
            f"{servers.name_of(self.host.url)}"), **options)

    def service(self):
        conf = self.conf("conductor")
        return self.useFixture(placement_fixtures.RunningService(
            transport_url=conf.transport_url, topic="placement"))

    def test_each_account_can_do_its_work(self):
        self.service()
        with api.PlacementAPI(conf=self.conf("compute")) as client:
            provider = client.create_provider(None, "a provider", timeout=20).uuid
            client.set_inventory(None, provider, [base.inventory("VCPU", 10)], timeout=20)
            consumer = base.new_uuid()
            client.claim_allocations(None, base.claim({provider: {"VCPU": 1}}, consumer),
                                     cast=True, timeout=20)
            base.wait_until(lambda: client.get_allocations(None, consumer).objects)
        reader = listener.StreamReader(
            Broker.of(self.conf("reader")), "placement_events", 1)
        self.assertEqual("resource_provider.create",
                         next(reader.events(idle=30)).event_type)

    def test_a_listener_with_a_queue_of_its_own(self):
        running = self.service()
        seen = []
        queue = listener.QueueListener(self.conf("billing"), "billing", seen.append)
        thread = threading.Thread(target=queue.run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 20)
        self.addCleanup(queue.stop)
        base.wait_until(lambda: running.api.create_provider(None, base.new_uuid()) and seen)

    def test_what_they_cannot_do(self):
        self.service()
        conf = self.conf("reader")
        with api.PlacementAPI(conf=conf) as client:
            error = self.assertRaises(
                (exception.DeadlineExceeded, exception.ServiceUnavailable), client.ping, None,
                timeout=2)
            self.assertIn("ACCESS_REFUSED", str(error))
        for account, queue in (("reader", "placement_claims"), ("billing", "placement_commands"),
                               ("compute", "placement_claims"), ("compute", "placement_events")):
            with Broker.of(self.conf(account)).connected() as connection:
                error = self.assertRaises(
                    frames.FAILURES, Consumer(connection).consume, queue)
                self.assertIn("ACCESS_REFUSED", str(error))
