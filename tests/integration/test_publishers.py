# SPDX-License-Identifier: Apache-2.0
"""Publishing with confirms: an event counts as sent only if the broker keeps it."""

import collections
import json
import threading

import kombu

from placement_rpc import conf as configuration
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.db.queries import bulk
from placement_rpc.notifications import publishers
from placement_rpc.testing import servers as private
from tests import base, servers

Row = collections.namedtuple("Row", "event_id event_type occurred_at payload position epoch")


class PublishingTest(base.TestCase):

    def make_broker(self):
        return servers.VirtualHost()

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(self.make_broker())
        self.conf = configuration.new_config(config_files=[], transport_url=self.broker.url)
        self.publisher = publishers.get_publisher(self.conf, "placement")
        self.addCleanup(self.publisher.close)
        self.count = 0

    def publish(self, publisher=None):
        self.count += 1
        row = Row(base.new_uuid(), "x", bulk.now(), json.dumps(
            {"placement_object.data": {}}), self.count, None)
        publisher = publisher or self.publisher
        publisher.publish(publisher.messages([row]))

    def assert_left(self, number):
        """The broker counts the messages of a stream now and then."""
        def left():
            rows = [line.split("\t") for line in self.broker.rabbitmqctl(
                "list_queues", "name", "messages").splitlines()]
            return int(next(row[1] for row in rows if row[0] == "placement_events"))

        base.wait_until(lambda: left() == number, 20, lambda: f"{left()} and not {number}")


class PublisherTest(PublishingTest):
    """Loss of the exchange and of the stream."""

    def test_a_deleted_stream_is_declared_again_and_nothing_is_lost(self):
        self.publish()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_delete("placement_events")
        self.assertRaises(Unconfirmed, self.publish)
        self.publish()
        self.assert_left(1)

    def test_a_deleted_exchange_is_declared_again(self):
        self.publish()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().exchange_delete("placement")
        self.publish()
        self.assert_left(2)

    def test_other_limits_than_the_stream_has_do_not_stop_it(self):
        self.publish()
        self.conf.set_override("stream_max_age", "1h", group="notifications")
        other = publishers.get_publisher(self.conf, "placement")
        self.addCleanup(other.close)
        self.publish(other)
        self.assert_left(2)
        self.assertIn("keeps the limits", self.log.output)


class ConnectionTest(PublishingTest):
    """Loss of the connection."""

    def make_broker(self):
        return private.RabbitMQ()

    def test_a_broker_that_is_away_is_unconfirmed(self):
        self.publish()
        self.broker.stop()
        for _ in range(2):
            self.assertRaises(Unconfirmed, self.publish)
        self.broker.start()
        # The stream takes a moment longer than the broker.
        def is_published():
            try:
                self.publish()
            except Unconfirmed:
                return False
            return True

        base.wait_until(is_published, 20)

    def connections(self):
        """Return the connections that the broker has: its names for them."""
        return self.broker.rabbitmqctl("-q", "list_connections", "pid").splitlines()[1:]

    def test_an_idle_connection_is_kept(self):
        """The broker closes one on which it hears nothing for two heartbeats."""
        self.publisher.close()
        self.conf.set_override(
            "heartbeat_timeout_threshold", 2, group="oslo_messaging_rabbit")
        self.publisher = publishers.get_publisher(self.conf, "placement")
        self.publish()
        ended = threading.Event()

        def idle():
            while not ended.wait(0.1):
                self.publisher.idle()

        # Also while the broker is asked, which takes a while.
        thread = threading.Thread(target=idle)
        thread.start()
        try:
            before = self.connections()
            servers.wait_for_heartbeat_timeout(self.broker.url, 2)
            after = self.connections()
        finally:
            ended.set()
            thread.join()
        self.assertEqual(1, len(before))
        self.assertEqual(before, after)
        self.publish()

    def test_a_connection_that_was_closed_meanwhile_is_replaced_at_once(self):
        self.publish()
        self.broker.rabbitmqctl("close_all_connections", "test")
        self.publish()
        self.assert_left(2)

    def test_addresses_of_every_kind(self):
        for url in ("rabbit://u:p@[::1]:5673/", "rabbit://u:p%2Fw@a:1,u:p@b:2/cloud", "rabbit://"):
            conf = configuration.new_config(config_files=[], transport_url=url)
            publishers.get_publisher(conf, "placement").close()
