# SPDX-License-Identifier: Apache-2.0
"""The exchange, deleted under running services, is declared and bound again."""

import threading
import time

import kombu

from placement_rpc.amqp.broker import Broker
from placement_rpc.db.queries import events as stored_events
from placement_rpc.notifications import listener
from placement_rpc.rpc import routing
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


class DeletedExchangeTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, conductor__fleet_threads=2))
        self.api = self.running.api
        self.provider = self.api.create_provider(None, "first").uuid
        self.api.set_inventory(None, self.provider, [base.inventory("VCPU", 100)])

    def delete_exchange(self):
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().exchange_delete(routing.EXCHANGE)

    def is_published(self):
        with self.running.database.reader() as tx:
            status = stored_events.status(tx)
        return status["published_position"] == status["events"] and status["events"]

    def test_calls_of_all_queues_and_casts_are_done_in_seconds(self):
        for turn in range(2):
            self.delete_exchange()
            began = time.monotonic()
            # Queue of claims, general queue, queue of the fleet, and the commands.
            base.ContractTest.claim(self, {self.provider: {"VCPU": 1}}, timeout=20)
            self.api.ping(None, timeout=20)
            self.api.set_inventory(
                None, self.provider, [base.inventory("VCPU", 100 + turn)], timeout=20)
            consumer = base.new_uuid()
            self.api.claim_allocations(
                None, base.claim({self.provider: {"VCPU": 1}}, consumer), cast=True, timeout=20)
            base.wait_until(lambda consumer=consumer: self.api.get_allocations(
                None, consumer).objects)
            self.assertLess(time.monotonic() - began, 15)

    def test_no_event_is_missing_in_the_stream_or_in_the_queue_of_a_listener(self):
        seen = []
        queue = listener.QueueListener(self.running.conf, "billing", seen.append)
        thread = threading.Thread(target=queue.run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 20)
        self.addCleanup(queue.stop)
        base.wait_until(lambda: self.api.create_provider(None, base.new_uuid()) and seen)
        for _ in range(3):
            self.delete_exchange()
            # The listener may be the first to declare the exchange again, or the relay.
            before = len(seen)
            base.wait_until(lambda before=before: self.api.create_provider(
                None, base.new_uuid(), timeout=20) and len(seen) > before)
        last = base.wait_until(self.is_published)
        reader = listener.StreamReader(
            Broker.of(self.running.conf), self.running.conf.notifications.stream, 1)
        positions = []
        for event in reader.events(idle=20):
            positions.append(event.position)
            if event.position == last:
                break
        self.assertEqual(list(range(1, last + 1)), positions)

    def test_the_stream_is_bound_before_an_event_reaches_another_queue(self):
        """A listener that was quicker must not make a lost event a confirmed one."""
        base.wait_until(self.is_published)
        self.delete_exchange()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            channel = connection.channel()
            channel.exchange_declare(routing.EXCHANGE, "topic", durable=True, auto_delete=False)
            channel.queue_declare("other", durable=True, auto_delete=False)
            channel.queue_bind("other", routing.EXCHANGE, "#")
        self.api.create_provider(None, "after", timeout=20)
        last = base.wait_until(self.is_published)
        reader = listener.StreamReader(
            Broker.of(self.running.conf), self.running.conf.notifications.stream, 1)
        self.assertEqual(last, max(event.position for event in reader.events(idle=2)))
