# SPDX-License-Identifier: Apache-2.0
"""The service inside one process: direct calls, events in memory, and no broker."""

import collections
import pathlib
import subprocess
import sys
import threading

import fixtures

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.db.queries import bulk
from placement_rpc.notifications.publishers import MemoryPublisher, get_publisher
from placement_rpc.service.conductor import Conductor
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

Row = collections.namedtuple("Row", "event_id event_type occurred_at payload position epoch")


class EmbeddedTest(base.TestCase):

    def test_it_has_a_heartbeat_until_it_stops(self):
        running = placement_fixtures.RunningService()
        with running:
            listed = running.api.get_versions(None).objects
            self.assertEqual(
                [("placement-rpc-conductor", 0, "1.3", True)],
                [(each.binary, each.worker, each.rpc_version, each.alive) for each in listed])
            running.conductor.stop()
            with running.database.reader() as tx:
                self.assertEqual(
                    0, tx.exec_driver_sql("SELECT COUNT(*) FROM services").scalar())

    def test_its_events_are_read_in_order(self):
        running = self.useFixture(placement_fixtures.RunningService())
        names = [f"provider {number}" for number in range(5)]
        for name in names:
            running.api.create_provider(None, name)
        messages = []
        while len(messages) < 5:
            received = running.conductor.publisher.read(timeout=20)
            self.assertNotEqual([], received)
            messages += received
        created = [each["payload"]["placement_object.data"] for each in messages]
        self.assertEqual(names, [each["name"] for each in created])
        self.assertEqual([1, 2, 3, 4, 5], [each["position"] for each in created])
        self.assertEqual([], running.conductor.publisher.read())


class MemoryPublisherTest(base.TestCase):

    def row(self, number):
        return Row(base.new_uuid(), f"event {number}", bulk.now(), "{}", number, None)

    def test_the_oldest_are_dropped_beyond_the_limit(self):
        publisher = MemoryPublisher(limit=3)
        publisher.publish([self.row(number) for number in range(5)])
        self.assertEqual(["event 2", "event 3", "event 4"],
                         [each["event_type"] for each in publisher.read()])
        self.assertEqual([], publisher.read())

    def test_a_reader_waits_for_the_next(self):
        publisher, found = MemoryPublisher(), []
        reader = threading.Thread(target=lambda: found.extend(publisher.read(timeout=20)))
        reader.start()
        publisher.publish([self.row(1)])
        reader.join()
        self.assertEqual(["event 1"], [each["event_type"] for each in found])


class OtherBusTest(base.TestCase):
    """A transport URL that is neither RabbitMQ's nor ``inprocess://``."""

    kinds = ("kafka", "amqp", "fake")

    def test_no_part_starts_on_it(self):
        for kind in self.kinds:
            conf = configuration.new_config(config_files=[], transport_url=f"{kind}://host/")
            for start in (Conductor, lambda conf: get_publisher(conf, "placement")):
                error = self.assertRaises(exception.InvalidInput, start, conf)
                self.assertIn(repr(kind), error.text)

    def test_programs_say_so_in_one_line(self):
        store = self.useFixture(placement_fixtures.Store())
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / "placement-rpc.conf"
        path.write_text(
            "[DEFAULT]\ntransport_url = kafka://host/\n"
            f"[database]\nconnection = {store.conf.database.connection}\n"
            f"[standalone]\nstate_dir = {directory}\n")
        for program, *arguments in (
                ("main", "--transport-url", "kafka://host/", "standalone", "--http-port", "0"),
                ("conductor",), ("main", "ping")):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}",
                 "--config-file", str(path), *arguments], check=False, capture_output=True,
                text=True, timeout=100)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn("'kafka' is not supported", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
