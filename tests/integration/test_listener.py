# SPDX-License-Identifier: Apache-2.0
"""Reading the stream: every event once and in order, despite failures of the broker."""

import datetime
import itertools
import json
import subprocess
import sys
from unittest import mock

import kombu

from placement_rpc import exception
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.db.queries import events, relaying
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, servers


class ListenerTest(base.TestCase):

    time_limit = 120

    def make_broker(self):
        return servers.VirtualHost()

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(self.make_broker())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, placement_client__attempt_timeout=2))
        self.api = self.running.api
        self.uuid = self.api.create_provider(None, "provider").uuid
        self.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 1000)])

    def claim(self, number):
        for _ in range(number):
            self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))

    def wait_published(self, last):
        def published():
            with self.running.database.reader() as tx:
                return events.status(tx)["published_position"]

        base.wait_until(lambda: published() >= last)

    def reader(self, start, **how):
        return listener.StreamReader(
            self.broker.url, self.running.conf.notifications.stream, start, **how)

    def positions(self, start, idle=2):
        return [event.position for event in self.reader(start).events(idle)]


class StreamReaderTest(ListenerTest):

    def test_an_invalid_start(self):
        """The broker would end the connection, again and again."""
        for start in (None, "x", "5", 1.5, 0, -5, True, datetime.date(2026, 11, 1),
                      datetime.datetime(2026, 11, 1)):
            self.assertRaises(exception.InvalidInput, self.reader, start)

    def test_from_a_position_and_from_a_time(self):
        self.claim(4)
        self.wait_published(6)
        self.assertEqual([1, 2, 3, 4, 5, 6], self.positions(1))
        self.assertEqual([5, 6], self.positions(5))
        self.assertEqual([], self.positions("next"))
        fifth = next(self.reader(5).events())
        self.assertEqual([5, 6], self.positions(
            datetime.datetime.fromisoformat(fifth.occurred_at)))

    def test_repeated_events_are_dropped_and_gaps_are_reported(self):
        self.claim(2)
        self.wait_published(4)
        self.running.database.write(lambda tx: relaying.rewind(tx, 1))
        self.claim(1)
        self.wait_published(5)
        self.assertEqual([1, 2, 3, 4, 5], self.positions(1))
        self.running.database.write(lambda tx: tx.exec_driver_sql(
            "UPDATE relay_state SET last_position = 7, published_position = 7"))
        self.claim(1)
        gaps = []
        found = [event.position for event in self.reader(
            1, on_gap=lambda *gap: gaps.append(gap)).events(3)]
        self.assertEqual(([1, 2, 3, 4, 5, 8], [(6, 8)]), (found, gaps))

    def test_foreign_messages_are_passed_over(self):
        self.claim(1)
        self.wait_published(3)
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            producer = connection.Producer()
            for body in ("nonsense", "[]", "5", json.dumps({"oslo.message": "x"}),
                         json.dumps({"oslo.message": json.dumps({"event_type": "compute.x"})}),
                         json.dumps({"event_type": "x", "payload": {"position": "five"}})):
                producer.publish(body, routing_key=self.running.conf.notifications.stream,
                                 content_type="application/json", content_encoding="utf-8")
        self.claim(1)
        self.wait_published(4)
        self.assertEqual([1, 2, 3, 4], self.positions(1))
        self.assertEqual(6, self.log.output.count("no event is skipped"))

    def test_what_was_cut_off_is_a_gap_and_can_be_filled(self):
        self.claim(2)
        self.wait_published(4)
        self.running.conductor.relay.stop()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_delete(self.running.conf.notifications.stream)
        other = type(self.running.conductor)(self.running.conf, worker=1, topic="other")
        self.addCleanup(other.stop)
        other.start()
        self.claim(1)
        self.wait_published(5)
        gaps = []
        found = self.reader(2, on_gap=lambda *gap: gaps.append(gap)).events(3)
        self.assertEqual([5], [event.position for event in found])
        self.assertEqual([(2, 5)], gaps)
        self.running.database.write(lambda tx: relaying.rewind(tx, 0))
        self.claim(1)
        self.wait_published(6)
        self.assertEqual([5, 2, 3, 4, 6], self.positions(2))

    def test_the_last_events_are_read_across_pauses(self):
        """The broker delivers one message at a time, and pauses after each."""
        self.claim(4)
        self.wait_published(6)
        receive, calls = Consumer.receive, itertools.count()

        def slow(consumer, seconds, _most=1):
            return receive(consumer, seconds, 1) if next(calls) % 2 == 0 else []

        with mock.patch.object(Consumer, "receive", slow):
            found = self.reader(1).last_events(100)
        self.assertEqual([1, 2, 3, 4, 5, 6], [event.position for event in found])
        # The mark of the end is nothing that other readers see.
        self.assertEqual([1, 2, 3, 4, 5, 6], self.positions(1))
        self.assertNotIn("is skipped", self.log.output)

    def test_a_stream_that_is_there_before_the_first_event(self):
        running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, notifications__stream="empty"))
        reader = listener.StreamReader(self.broker.url, "empty", 1)

        def is_declared():
            try:
                self.assertIsNone(reader.tail())
            except exception.ServiceUnavailable:
                return False
            return True

        base.wait_until(is_declared)
        running.api.create_provider(None, "provider")
        self.assertEqual(1, next(reader.events()).position)
        self.assertEqual(0, reader.tail())

    def test_a_time_before_all_times(self):
        self.claim(1)
        self.wait_published(3)
        early = datetime.datetime(1960, 1, 1, tzinfo=datetime.UTC)
        self.assertEqual([1, 2, 3], self.positions(early))

    def test_a_stream_that_is_not_there(self):
        reader = listener.StreamReader(self.broker.url, "no-such-stream", 1)
        self.assertRaises(exception.ServiceUnavailable, next, reader.events())

    def listen(self, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", "placement_rpc.cmd.main", "--transport-url", self.broker.url,
             "listen", "--idle", "3", *arguments], check=False, capture_output=True, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

    def test_the_command(self):
        self.claim(2)
        self.wait_published(4)
        lines = [json.loads(line) for line in self.listen("--from", "1").splitlines()]
        self.assertEqual([1, 2, 3, 4], [line["position"] for line in lines])
        self.assertEqual("resource_provider.create", lines[0]["event_type"])
        self.assertEqual({"VCPU": 1}, lines[3]["payload"]["providers"][0]["after"])
        cloud = json.loads(self.listen(
            "--from", "1", "--event-type", "allocation.*", "--count", "1", "--provider",
            self.uuid, "--format", "cloudevents"))
        self.assertEqual(("1.0", "placement.allocation.create", "3"), (
            cloud["specversion"], cloud["type"], cloud["sequence"]))
        self.assertEqual("", self.listen("--from", "1", "--provider", base.new_uuid()))
        self.assertEqual("", self.listen())
        # Long lines are wrapped.
        table = " ".join(self.listen("--from", "1", "--format", "table").split())
        for words in ("position", "inventory.create", "VCPU none -> 1000", "VCPU:1"):
            self.assertIn(words, table)


class BrokerAwayTest(ListenerTest):

    def make_broker(self):
        return private.RabbitMQ()

    def test_it_goes_on_after_the_broker_was_away(self):
        self.claim(2)
        self.wait_published(4)
        found = []
        for event in self.reader(1).events(20):
            found.append(event.position)
            if len(found) == 2:
                self.broker.restart()
                self.api.claim_allocations(
                    None, base.claim({self.uuid: {"VCPU": 1}}), timeout=40)
            if event.position == 5:
                break
        self.assertEqual([1, 2, 3, 4, 5], found)
