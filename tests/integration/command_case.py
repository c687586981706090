# SPDX-License-Identifier: Apache-2.0
"""A service whose commands are settled, for tests of casts."""

import functools

import kombu

from placement_rpc import exception
from placement_rpc.amqp import dead_letters
from placement_rpc.amqp.broker import Broker
from placement_rpc.db.queries import events
from placement_rpc.notifications.event import Event
from placement_rpc.rpc import command_queue
from placement_rpc.service import command_consumer
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

#: The log line of an attempt that the store was away for.
AWAY = "Commands wait for the store"


class CommandTest(base.TestCase):

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.broker = self.make_broker()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, placement_client__attempt_timeout=2,
            queues__dead_letters=f"dead-{base.new_uuid()}", queues__commands_attempts=3,
            notifications__stream=f"stream-{base.new_uuid()}"))
        self.api, self.database = self.running.api, self.running.database
        self.queue = command_queue.name(self.running.topic)
        self.uuid = self.api.create_provider(None, "provider").uuid
        self.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 10)])

    def make_broker(self):
        return servers.rabbitmq()

    def cast(self, allocations=None, consumer=None, **how):
        return self.api.claim_allocations(
            None, base.claim(allocations or {self.uuid: {"VCPU": 1}}, consumer), cast=True, **how)

    def outcome(self, request_id, seconds=20):
        """Wait for the outcome of a request; returns the result or raises the error."""
        def found():
            try:
                return self.api.get_request_result(None, request_id)
            except exception.RequestNotFound:
                return None

        return base.wait_until(found, seconds).result()

    def used(self):
        return self.api.get_usages(None, self.uuid).objects[0].used

    def dead_letters(self):
        return dead_letters.DeadLetters(
            Broker.at(self.broker.url), command_queue.dead_letter_queue(self.running.conf.queues))

    def wait_for_dead_letters(self, number=1, seconds=20):
        """Wait for this many dead letters and return them."""
        base.wait_until(lambda: len(self.dead_letters().all()) >= number, seconds)
        found = self.dead_letters().all()
        self.assertEqual(number, len(found))
        return found

    def publish(self, body, **properties):
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.Producer().publish(
                body, routing_key=self.queue, content_type="application/json",
                content_encoding="utf-8", **properties)

    def replace_settle(self, settle):
        """Replace what settles a batch in one transaction, until the returned function is called.

        :param settle: function of what settled it before, the database, requests and method
        """
        commit = self.running.manager.group_commit
        before = commit.settle_batch
        commit.settle_batch = functools.partial(settle, before)
        return functools.partial(setattr, commit, "settle_batch", before)

    def start_commands(self):
        """Start, and return, a further consumer of the service's commands."""
        commands = command_consumer.CommandConsumer(
            self.running.conf, Broker.at(self.broker.url), self.running.manager,
            self.running.topic)
        commands.start()
        self.addCleanup(commands.wait)
        self.addCleanup(commands.stop)
        return commands

    def stop_commands(self, commands=None):
        """Stop a consumer; None for that of the conductor."""
        commands = commands or self.running.conductor.commands
        commands.stop()
        commands.wait()

    def events(self, event_type):
        with self.database.reader() as tx:
            return [event for event in map(Event.of_row, events.after(tx, 0, 1000))
                    if event.event_type == event_type]
