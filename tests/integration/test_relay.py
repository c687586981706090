# SPDX-License-Identifier: Apache-2.0
"""The relay: every event, in order, at least once, despite failures of broker and store."""

import collections
import json
import pathlib
import time

import fixtures
import kombu
import oslo_messaging
import sqlalchemy as sa
import testscenarios

from placement_rpc.cmd import manage
from placement_rpc.db import models
from placement_rpc.db.queries import events, relaying
from placement_rpc.notifications import envelope, relay
from placement_rpc.service import conductor
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, programs, servers
from tests.integration import processes


class _Listener:
    """An ordinary oslo.messaging notification listener, as a billing program could have one."""

    def __init__(self, conf):
        self.messages = []
        transport = oslo_messaging.get_notification_transport(conf)
        self.server = oslo_messaging.get_notification_listener(
            transport, [oslo_messaging.Target(
                exchange="placement", topic=conf.notifications.topic)], [self],
            executor="threading")
        self.server.start()

    def info(self, context, publisher_id, event_type, payload, metadata):
        self.messages.append((event_type, payload["placement_object.data"], metadata))

    def stop(self):
        self.server.stop()
        self.server.wait()


def usages(messages):
    """What is used of each provider and class, worked out from events alone."""
    used = collections.Counter()
    for event_type, data in messages:
        if event_type not in ("allocation.create", "allocation.update", "allocation.delete"):
            continue
        for each in data["providers"]:
            provider = each["placement_object.data"]
            for name, amount in provider["after"].items():
                used[provider["provider_uuid"], name] += amount
            for name, amount in provider["before"].items():
                used[provider["provider_uuid"], name] -= amount
    return {key: amount for key, amount in used.items() if amount}


class RelayTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 120
    scenarios = [
        ("RabbitMQ and SQLite", {"kind": "sqlite"}),
        ("RabbitMQ and PostgreSQL", {"kind": "postgresql"}),
        ("RabbitMQ and MariaDB", {"kind": "mariadb"}),
    ]

    def setUp(self):
        super().setUp()
        name = base.new_uuid()
        self.broker = servers.rabbitmq()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, database_url=servers.new_database(self.kind),
            notifications__topic=f"topic-{name}", notifications__lease=2,
            notifications__stream=f"stream-{name}"))
        self.api, self.database = self.running.api, self.running.database
        self.listener = _Listener(self.running.conf)
        self.addCleanup(self.listener.stop)

    def change_things(self, number=20):
        """Make changes; returns the providers."""
        providers = []
        for _ in range(3):
            uuid = self.api.create_provider(None, base.new_uuid()).uuid
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", 1000)])
            providers.append(uuid)
        consumers = []
        for step in range(number):
            wanted = base.claim({providers[step % 3]: {"VCPU": 1 + step % 4}})
            self.api.claim_allocations(None, wanted)
            consumers.append(wanted.consumer_uuid)
        self.api.claim_allocations(None, base.claim(
            {providers[0]: {"VCPU": 7}}, consumers[1]))
        self.api.move_allocations(None, consumers[2], base.new_uuid())
        self.api.release_allocations(None, consumers[3])
        return providers

    def store(self):
        """What is used according to the store."""
        with self.database.reader() as tx:
            return {(row[0], row[1]): row[2] for row in tx.execute(sa.select(
                models.resource_providers.c.uuid, models.resource_classes.c.name,
                models.inventories.c.used).select_from(models.inventories).join(
                    models.resource_providers).join(models.resource_classes)) if row[2]}

    def wait_published(self):
        """Wait until all that was committed is published; return the last position."""
        return base.wait_published(self.database)

    def received(self, last):
        """Wait until a listener has the event of a position; returns all, by position.

        The library calls a listener from several threads, in no order; that the messages are in
        order is a test of the stream.
        """
        base.wait_until(
            lambda: last in {data["position"] for _, data, _ in self.listener.messages})
        return sorted(((event_type, data) for event_type, data, _ in self.listener.messages),
                      key=lambda message: message[1]["position"])

    def test_a_listener_that_applies_the_stream_has_the_stores_usages(self):
        self.change_things()
        last = self.wait_published()
        messages = self.received(last)
        self.assertEqual(list(range(1, last + 1)), [data["position"] for _, data in messages])
        self.assertEqual(self.store(), usages(messages))
        for _, data, metadata in self.listener.messages:
            self.assertEqual(data["event_id"], metadata["message_id"])

    def test_every_generation_of_every_provider_appears_once(self):
        providers = self.change_things()
        messages = self.received(self.wait_published())
        made = collections.defaultdict(list)
        for _, data in messages:
            parts = [each["placement_object.data"] for each in data.get("providers", ())] or [data]
            for part in parts:
                if part.get("generation") != part.get("previous_generation"):
                    made[part["provider_uuid"]].append(part["generation"])
        for uuid in providers:
            self.assertEqual(
                list(range(self.api.get_provider(None, uuid).generation + 1)), made[uuid])

    def test_it_is_taken_over_when_its_holder_dies(self):
        self.change_things(4)
        self.wait_published()
        options = self.running.conf.notifications
        first = self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.running.conf.database.connection},
            "conductor": {"host": "first", "workers": 1},
            "notifications": {name: options[name] for name in ("topic", "lease", "stream")}}))
        self.running.conductor.relay.stop()
        base.wait_until(lambda: self.holder().startswith("first."), message=first.said)
        second = conductor.Conductor(self.running.conf, worker=1, topic=base.new_uuid())
        self.addCleanup(second.stop)
        second.start()
        first.kill()
        began = time.monotonic()
        self.change_things(4)
        last = self.wait_published()
        self.assertLess(time.monotonic() - began, 10)
        self.assertTrue(second.relay.active)
        self.assertFalse(self.holder().startswith("first."))
        messages = self.received(last)
        self.assertEqual(list(range(1, last + 1)), [data["position"] for _, data in messages])

    def holder(self):
        """Return the holder of the relay's lease; empty if it has none."""
        with self.database.reader() as tx:
            return tx.execute(sa.select(models.leases.c.holder).where(
                models.leases.c.name == relay.LEASE)).scalar() or ""

    def test_what_was_published_but_not_remembered_is_published_again_recognisably(self):
        self.change_things(4)
        last = self.wait_published()
        self.received(last)
        self.database.write(lambda tx: relaying.rewind(tx, last - 3))
        self.wait_published()
        base.wait_until(lambda: len(self.listener.messages) >= last + 3)
        ids = [data["event_id"] for _, data, _ in self.listener.messages]
        self.assertEqual((last + 3, last), (len(ids), len(set(ids))))

    def test_operators_see_it_replay_it_and_prune_it(self):
        self.change_things(4)
        last = self.wait_published()
        self.received(last)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join("placement-rpc.conf"))
        path.write_text(f"[DEFAULT]\ntransport_url = {self.broker.url}\n"
                        f"[database]\nconnection = {self.running.conf.database.connection}\n"
                        f"[notifications]\nstream = {self.running.conf.notifications.stream}\n")

        def run(*arguments):
            return programs.run(manage, "--config-file", str(path), "outbox", *arguments)

        status, = json.loads(run("status").stdout)
        self.assertEqual(36, len(status.pop("epoch")))
        self.assertEqual({"events": last, "oldest_kept": 1, "last_position": last,
                          "published_position": last, "unsent": 0, "lag_seconds": 0.0,
                          "difference": ""}, status)
        self.assertIn("3 events", run("replay", "--position", str(last - 2)).stdout)
        self.wait_published()
        self.assertIn(f"{last} events", run("replay", "--since", "2020-01-01T00:00Z").stdout)
        self.wait_published()
        self.assertEqual(1, run("replay", "--position", str(last + 9)).code)
        self.assertIn(f"Pruned {last} ", run("prune", "--older-than", "0").stdout)
        self.assertEqual(1, run("replay", "--position", "1").code)

    def test_the_stream_has_everything_from_the_beginning(self):
        self.change_things()
        last = self.wait_published()
        found = []
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            channel = connection.channel()
            channel.basic_qos(0, 100, False)

            def got(message):
                # A relay that has just got its lease marks where the stream ends.
                if "placement_mark" not in (message.headers or {}):
                    found.append(envelope.opened(message.body))
                message.channel.basic_ack(message.delivery_tag)

            channel.basic_consume(
                self.running.conf.notifications.stream, callback=got,
                arguments={"x-stream-offset": "first"})
            while len(found) < last:
                connection.drain_events(timeout=10)
        self.assertEqual(list(range(1, last + 1)), [
            message["payload"]["placement_object.data"]["position"] for message in found])

    def test_nothing_of_where_things_are_is_in_an_event(self):
        self.change_things(4)
        self.received(self.wait_published())
        text = json.dumps([message[:2] for message in self.listener.messages])
        for secret in (self.running.conf.transport_url, self.running.conf.database.connection,
                       "token", "rabbit:", "postgresql", "mysql"):
            self.assertNotIn(secret, text)


class BrokerAwayTest(base.TestCase):

    time_limit = 120

    def test_events_wait_for_the_broker(self):
        broker = self.useFixture(private.RabbitMQ())
        running = self.useFixture(placement_fixtures.RunningService(
            transport_url=broker.url, placement_client__attempt_timeout=2))
        local = placement_fixtures.api.PlacementAPI(
            "local", running.conf, manager=running.conductor.manager)
        uuid = local.create_provider(None, "provider").uuid
        local.set_inventory(None, uuid, [base.inventory("VCPU", 100)])
        for _ in range(2):
            broker.stop()
            for _ in range(5):
                local.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}))
            # The relay gives events their positions, and not to the broker.
            base.wait_until(lambda: not self.status(running)["unpositioned"])
            status = self.status(running)
            self.assertLess(status["published_position"], status["events"])
            self.assertIsNotNone(status["oldest_unsent"])
            broker.start()
            base.wait_published(running.database)
        self.assertEqual(12, self.status(running)["published_position"])

    @staticmethod
    def status(running):
        with running.database.reader() as tx:
            return events.status(tx)


class WakeTest(base.TestCase):

    def test_a_commit_wakes_the_relay(self):
        """With an interval of a minute, only waking makes it quick."""
        running = self.useFixture(placement_fixtures.RunningService(
            notifications__interval=60.0))
        publisher = running.conductor.publisher
        for number in range(3):
            running.api.create_provider(None, f"provider {number}")
            self.assertEqual(1, len(publisher.read(timeout=20)))
            # Until it has recorded this, the relay is busy and needs no waking.
            self.assertEqual(number + 1, base.wait_published(running.database))
