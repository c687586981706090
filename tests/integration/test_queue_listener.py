# SPDX-License-Identifier: Apache-2.0
"""A billing program's queue: events are acknowledged after they are handled; none is lost."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import amqp
import fixtures
import kombu
from testtools import content

from placement_rpc import exception
from placement_rpc.amqp import broker, contents, dead_letters
from placement_rpc.db.queries import relaying
from placement_rpc.notifications import listener
from placement_rpc.rpc import command_queue
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, servers


class QueueTest(base.TestCase):

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.broker = self.make_broker()
        name = base.new_uuid()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, notifications__topic=f"topic-{name}",
            notifications__stream=f"stream-{name}", queues__dead_letters=f"dead-{name}",
            queues__listener_attempts=3, placement_client__attempt_timeout=2))
        self.conf, self.api = self.running.conf, self.running.api
        self.queue = f"billing-{name}"
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "position")
        self.seen, self.gaps = [], []

    def make_broker(self):
        return servers.rabbitmq()

    def listener(self, handler=None, saved=True):
        return listener.QueueListener(
            self.conf, self.queue, handler or self.seen.append, broker=self.broker.url,
            saved=listener.SavedPosition(self.path) if saved else None,
            on_gap=lambda *gap: self.gaps.append(gap))

    def listen(self, handler=None, saved=True, idle=1):
        self.listener(handler, saved).run(idle)
        return [event.position for event in self.seen]

    def change(self, number, start=0):
        """Make events: this many, and wait until they are published."""
        for each in range(number):
            self.api.create_provider(None, f"{start + each} {base.new_uuid()}")
        base.wait_published(self.running.database)

    def rewind(self, position):
        self.running.database.write(lambda tx: relaying.rewind(tx, position))
        self.change(1)

    def dead_letters(self):
        return dead_letters.DeadLetters(
            broker.Broker.at(self.broker.url), command_queue.dead_letter_queue(self.conf.queues))

    def publish(self, body, **properties):
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.Producer().publish(
                body, routing_key=self.queue, content_type="application/json",
                content_encoding="utf-8", **properties)

    def message(self, event_type="resource_provider.create", version="1.0", position=100, **data):
        """A notification as another release of the service might send it."""
        return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps({
            "event_type": event_type, "payload": {
                "placement_object.name": "X", "placement_object.version": version,
                "placement_object.data": {
                    "event_id": base.new_uuid(), "position": position,
                    "occurred_at": "2026-11-21T10:00:00+00:00", "request_id": None,
                    "provider_uuid": "x", "generation": 1, "previous_generation": None,
                    "name": "x", "previous_name": None, **data}}})})


class QueueListenerTest(QueueTest):

    def test_what_is_published_without_a_listener_is_kept(self):
        self.assertEqual([], self.listen())
        self.change(3)
        self.assertEqual([1, 2, 3], self.listen())
        self.change(2)
        self.assertEqual([1, 2, 3, 4, 5], self.listen())
        self.assertEqual([], self.gaps)
        # Nothing was acknowledged twice, which would end the channel.
        self.assertNotIn("no connection", self.log.output)
        self.assertEqual(5, listener.SavedPosition(self.path).load()["position"])

    def test_compressed_ones_and_bombs(self):
        self.listen()
        for number, name in enumerate(("gzip", "bzip2")):
            self.publish(self.message(position=number + 1), compression=name)
        self.publish(bytes(10 ** 8), compression="bzip2")
        self.publish(self.message(position=3), compression="lzma")
        self.publish(self.message(position=4))
        self.assertEqual([1, 2, 4], self.listen())
        reasons = sorted(letter.reason for letter in self.dead_letters().all())
        self.assertIn("at most", reasons[0])
        self.assertIn("not accepted", reasons[1])

    def test_an_event_that_is_delivered_again_is_dropped_also_after_a_restart(self):
        self.listen()
        self.change(3)
        self.rewind(0)
        self.assertEqual([1, 2, 3, 4], self.listen())
        self.rewind(1)
        self.assertEqual([1, 2, 3, 4, 5], self.listen())

    def test_a_gap_is_reported(self):
        self.listen()
        self.change(2)
        self.running.database.write(lambda tx: tx.exec_driver_sql(
            "UPDATE relay_state SET last_position = 7, published_position = 7"))
        self.api.create_provider(None, "one more")
        self.assertEqual([1, 2, 8], self.listen())
        self.assertEqual([(3, 8)], self.gaps)

    def test_an_event_that_fails_for_a_while_is_handled_in_its_turn(self):
        self.listen()
        self.change(3)
        failures = iter([True, True])

        def handle(event):
            if event.position == 2 and next(failures, None):
                raise RuntimeError("not yet")
            self.seen.append(event)

        self.assertEqual([1, 2, 3], self.listen(handle))
        self.assertEqual([], self.dead_letters().all())

    def test_an_event_that_always_fails_is_dead_lettered_and_can_be_replayed(self):
        self.listen()
        self.change(3)
        poison, tries = {2}, []

        def handle(event):
            if event.position in poison:
                tries.append(event.position)
                raise RuntimeError("cannot bill this")
            self.seen.append(event)

        self.assertEqual([1, 3], self.listen(handle))
        self.assertEqual([2, 2, 2], tries)
        letter, = self.dead_letters().all()
        self.assertEqual(self.queue, letter.queue)
        self.assertIn("cannot bill this", letter.reason)
        self.assertEqual(1, self.log.output.count("goes to the dead letters"))
        poison.clear()
        self.dead_letters().replay(lambda each: True)
        self.assertEqual([1, 3, 2], self.listen(handle))
        self.assertEqual([], self.dead_letters().all())
        self.assertEqual(3, listener.SavedPosition(self.path).load()["position"])

    def test_foreign_messages_go_to_the_dead_letters(self):
        self.listen()
        bad = ["", "nonsense", "[]", "[" * 100_000, json.dumps({"oslo.message": "x"}),
               self.message(position="five"), self.message(occurred_at="yesterday"),
               self.message(event_type=["x"]), self.message(event_id=7),
               self.message(version="2.0")]
        for body in bad:
            self.publish(body)
        self.change(1)
        self.assertEqual([1], self.listen())
        letters = self.dead_letters().all()
        self.assertEqual([body[:contents.EXCERPT] for body in bad],
                         [letter.body for letter in letters])
        self.assertIn("version 2.0", letters[-1].reason)
        self.assertEqual(len(bad), self.log.output.count("goes to the dead letters"))

    def test_a_later_minor_version_is_handled_and_an_unknown_type_passed_over(self):
        self.listen()
        self.publish(self.message("planet.create", position=1))
        self.publish(self.message("planet.create", position=2))
        self.publish(self.message(version="1.7", position=3, provider_uuid="x", novelty=5))
        self.assertEqual([3], self.listen())
        self.assertEqual(5, self.seen[0].payload["novelty"])
        self.assertEqual(1, self.log.output.count("planet.create are not known"))
        self.assertEqual([], self.dead_letters().all())

    def test_the_queue_has_limits(self):
        self.conf.set_override("listener_max_length", 3, group="queues")
        self.listen()
        self.change(8)
        self.assertEqual([6, 7, 8], self.listen())
        # What was dropped is in the stream, and nothing of it is a dead letter.
        self.assertEqual([], self.dead_letters().all())

    def test_a_message_that_cannot_be_decoded_does_not_delay_others(self):
        self.listen()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().basic_publish(amqp.Message(
                b"\\ud800", content_encoding="unicode_escape"), routing_key=self.queue)
        self.change(1)
        self.assertEqual([1], self.listen())
        letter, = self.dead_letters().all()
        self.assertEqual("\\ud800", letter.body)

    def test_a_queue_of_another_kind_ends_it_at_the_start(self):
        """Else it would try again for ever, and say that there is no connection."""
        self.queue = self.conf.queues.dead_letters
        error = self.assertRaises(exception.InvalidInput, self.listener().run, 5)
        self.assertIn("of another kind", error.text)
        for name in (None, 5, "", "amq.x"):
            self.queue = name
            self.assertRaises(exception.InvalidInput, self.listener)

    def test_a_position_that_cannot_be_saved_ends_it_and_condemns_nothing(self):
        self.listen()
        self.change(3)

        class Full(listener.SavedPosition):
            def save(self, state):
                raise OSError(28, "No space left on device")

        for _ in range(5):
            broken = listener.QueueListener(
                self.conf, self.queue, self.seen.append, broker=self.broker.url,
                saved=Full(self.path))
            self.assertRaises(OSError, broken.run, 1)
        self.seen.clear()
        self.assertEqual([1, 2, 3], self.listen())
        self.assertEqual([], self.dead_letters().all())
        # One after the other, since they were delivered before.
        self.assertNotIn("no connection", self.log.output)

    def test_what_a_slow_handler_has_done_is_acknowledged_meanwhile(self):
        self.listen()
        self.change(6)
        entered = threading.Event()

        def handle(event):
            self.seen.append(event)
            if event.position == 5:
                entered.set()
                stopped.wait(20)
            time.sleep(0.5)

        stopped = threading.Event()
        slow = self.listener(handle)
        thread = threading.Thread(target=slow.run)
        thread.start()
        self.assertTrue(entered.wait(20))
        saved = listener.SavedPosition(self.path).load()["position"]
        slow.stop()
        stopped.set()
        thread.join()
        self.assertGreaterEqual(saved, 2)

    def test_it_can_be_stopped_while_an_event_is_retried(self):
        self.listen()
        self.change(1)

        def fail(event):
            stopping.set()
            raise RuntimeError("always")

        stopping = threading.Event()
        stubborn = self.listener(fail)
        self.conf.set_override("listener_attempts", 1000, group="queues")
        thread = threading.Thread(target=stubborn.run)
        thread.start()
        self.assertTrue(stopping.wait(10))
        stubborn.stop()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertEqual([1], self.listen())

    def start_two(self, saved):
        """Start two listeners, of which the second waits; return them and their threads."""
        both = [self.listener(saved=saved) for _ in range(2)]
        threads = [threading.Thread(target=each.run) for each in both]
        for number, thread in enumerate(threads, 1):
            self.addCleanup(both[number - 1].stop)
            thread.start()
            base.wait_until(lambda: self.consumers() == number)  # noqa: B023
        return both, threads

    def test_another_one_takes_over(self):
        (first, second), threads = self.start_two(saved=False)
        self.change(3)
        first.stop()
        threads[0].join()
        self.change(3)
        base.wait_until(lambda: len(self.seen) >= 6)
        self.assertEqual([1, 2, 3, 4, 5, 6], [event.position for event in self.seen])
        second.stop()
        threads[1].join()

    def test_one_that_waited_goes_on_where_the_other_ended(self):
        (first, second), threads = self.start_two(saved=True)
        self.change(3)
        base.wait_until(lambda: len(self.seen) >= 3)
        first.stop()
        threads[0].join()
        self.change(1)
        base.wait_until(lambda: len(self.seen) >= 4)
        self.running.database.write(lambda tx: relaying.rewind(tx, 0))
        base.wait_published(self.running.database)
        self.change(1)
        base.wait_until(lambda: len(self.seen) >= 5)
        self.assertEqual([1, 2, 3, 4, 5], [event.position for event in self.seen])
        self.assertEqual([], self.gaps)
        second.stop()
        threads[1].join()
        self.assertEqual(5, json.loads(self.path.read_text())["position"])

    def consumers(self):
        """Return how many consumers the queue has."""
        for line in self.broker.rabbitmqctl("list_queues", "name", "consumers").splitlines():
            name, _, count = line.partition("\t")
            if name == self.queue:
                return int(count)
        return 0


_PROGRAM = """
import os, sys
from placement_rpc import conf as configuration
from placement_rpc.notifications import listener
from placement_rpc.rpc import command_queue

url, queue, dead, topic, path, deadly = sys.argv[1:]

def handle(event):
    if event.position == int(deadly):
        os.kill(os.getpid(), 9)
    with open(path + ".handled", "a") as file:
        print(event.position, file=file)

conf = configuration.new_config(config_files=[], transport_url=url, queues__dead_letters=dead,
                                notifications__topic=topic, queues__listener_attempts=3)
listener.QueueListener(conf, queue, handle, saved=listener.SavedPosition(path)).run(idle=3)
"""


class KilledTest(QueueTest):

    def program(self, deadly):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM, self.broker.url, self.queue,
             self.conf.queues.dead_letters, self.conf.notifications.topic, str(self.path),
             str(deadly)], check=False, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    def test_one_event_that_kills_condemns_no_other(self):
        self.listen()
        self.change(40)
        codes = []
        while not codes or codes[-1]:
            self.assertLess(len(codes), 8, codes)
            done = self.program(7)
            codes.append(done.returncode)
        # Once together with others, and then as often as it is tried.
        self.assertEqual([-9] * 4 + [0], codes, done.stderr)
        letter, = self.dead_letters().all()
        self.assertEqual(7, listener.Event.of_message(letter.body).position)
        self.assertIn("each process that handled it died", letter.reason)
        with open(f"{self.path}.handled") as file:
            handled = [int(line) for line in file]
        # Events that were handled but not acknowledged before the kill are delivered again; all
        # are in order.
        self.assertEqual(set(range(1, 41)) - {7}, set(handled))
        self.assertEqual(sorted(set(handled)), list(dict.fromkeys(handled)))


class BrokerAwayTest(QueueTest):

    def make_broker(self):
        return self.useFixture(private.RabbitMQ())

    def test_it_goes_on_after_the_broker_was_away(self):
        self.listen()
        worker = self.listener()
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.addCleanup(worker.stop)
        for round_ in range(2):
            self.change(3)
            self.broker.restart()
            self.api.create_provider(None, f"after restart {round_}", timeout=40)
        try:
            base.wait_until(lambda: len(self.seen) >= 8, 40)
        except TimeoutError:
            self.describe()
            raise
        self.assertEqual(list(range(1, 9)), [event.position for event in self.seen])
        worker.stop()
        thread.join()

    def describe(self):
        """Attach where the events may be.

        It failed once with 4 to 7 missing, and in none of 75 later runs, a third of them on a busy
        machine. Confirmed messages, queues and bindings each survived every kill of the broker
        that was tried on their own (32 and 8 kills).
        """
        lists = (("queues", "name", "type", "state", "messages_ready", "messages_unacknowledged"),
                 ("bindings",), ("consumers",))
        self.addDetail("broker", content.text_content("\n".join(
            self.broker.rabbitmqctl(f"list_{what}", *columns) for what, *columns in lists)))
        self.addDetail("gaps", content.text_content(repr(self.gaps)))
        self.addDetail("broker's log", content.content_from_file(f"{self.broker.tempdir}/log"))
