# SPDX-License-Identifier: Apache-2.0
"""Messages that cannot be read, in every queue and stream that the project reads."""

import json
import subprocess
import sys
import threading

import fixtures
import requests

from placement_rpc import api, exception
from placement_rpc.amqp import dead_letters
from placement_rpc.amqp.broker import Broker
from placement_rpc.db.queries import events
from placement_rpc.notifications import listener
from placement_rpc.rpc import command_queue, envelope, routing
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, messages, servers
from tests.integration import processes

SEED = 13
_RANDOM = 60


class PoisonTest(base.TestCase):
    """A service on RabbitMQ with a listener, and a number of messages that cannot be read."""

    time_limit = 240

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, conductor__host="host",
            placement_client__attempt_timeout=5))
        self.conf, self.api = self.running.conf, self.running.api
        self.uuid = self.api.create_provider(None, "provider").uuid
        self.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 100_000)])
        self.seen, self.made = [], []
        self.listener = listener.QueueListener(
            self.conf, "billing", self.seen.append, broker=self.broker.url)
        thread = threading.Thread(target=self.listener.run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.listener.stop)
        self.generator = messages.Generator(SEED)
        self.poisoner = messages.Poisoner(self.broker.url)
        self.addCleanup(self.poisoner.close)

    def poisons(self):
        return [*self.generator.known(), *(self.generator.poison() for _ in range(_RANDOM))]

    def letters(self):
        return dead_letters.DeadLetters(
            Broker.at(self.broker.url), command_queue.dead_letter_queue(self.conf.queues)).all()

    def wait_for_letters(self, queue, poisons):
        """Wait until the messages are dead letters of a queue, each of them once."""
        def found():
            letters = [each for each in self.letters() if each.queue == queue]
            return len(letters) >= len(poisons) and letters

        letters = base.wait_until(found)
        self.assertEqual(len(poisons), len(letters))
        for poison in poisons:
            letter, = (each for each in letters if poison.mark in each.body)
            self.assertEqual(len(poison.body), letter.size, poison.name)
            self.assertTrue(letter.reason, poison.name)

    def innocents(self, number=5):
        """Make calls of all kinds, casts and events; all of them are done."""
        used = self.used()
        for each in range(number):
            self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
            self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}), cast=True)
            self.made.append(self.api.create_provider(None, f"{each} {base.new_uuid()}").uuid)
        base.wait_until(lambda: self.used() == used + 2 * number)

    def used(self):
        return sum(each.used for each in self.api.get_usages(None, self.uuid).objects)

    def names(self):
        """The queues in which poison is dead-lettered."""
        calls = [routing.name(self.running.topic, queue) for queue in routing.QUEUES]
        own = f"{self.running.topic}.host.placement-rpc-conductor.0"
        return [*calls, own, command_queue.name(self.running.topic), "billing"]

    def queues(self):
        """What the management interface says of the queues."""
        return requests.get(
            f"{self.broker.management_url}/api/queues/{servers.name_of(self.broker.url)}",
            timeout=60).json()

    def check_nothing_came_again(self):
        """Check that no queue delivered anything twice, and that no connection was replaced."""
        self.assertEqual({}, {
            queue["name"]: queue["message_stats"]["redeliver"] for queue in self.queues()
            if queue.get("message_stats", {}).get("redeliver")
            and queue["name"] != self.conf.queues.dead_letters})
        for words in ("no connection to the broker", "a session failed", "Traceback"):
            self.assertNotIn(words, self.log.output)


class QueuesTest(PoisonTest):

    def test_poison_in_every_queue_stops_nothing(self):
        taken = {}
        self.innocents()
        for queue in self.names():
            taken[queue] = self.poisoner.publish(queue, self.poisons())
            self.assertGreater(len(taken[queue]), _RANDOM)
            self.innocents()
        for queue, poisons in taken.items():
            self.wait_for_letters(queue, poisons)
        base.wait_until(lambda: {event.payload["provider_uuid"] for event in self.seen
                               if event.event_type == "resource_provider.create"}
                      >= set(self.made))
        base.wait_until(lambda: self.statistics_are_there(taken))
        self.check_nothing_came_again()

    def statistics_are_there(self, taken):
        """Whether the broker's statistics count all that was published."""
        return all(queue.get("message_stats", {}).get("ack", 0) >= len(taken[queue["name"]])
                   for queue in self.queues() if queue["name"] in taken)

    def test_the_sender_of_a_message_that_cannot_be_read_is_answered(self):
        sender = self.useFixture(_Sender(self.broker.url))
        queue = routing.name(self.running.topic, "claims")
        body = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps({
            "method": "ping", "args": {}, "_msg_id": "unreadable", "_reply_q": sender.queue})})
        self.poisoner.publish(queue, [
            messages.Poison("FF FE", "", body.encode(), b"\x80\x00" + messages.text(b"\xff\xfe")),
            messages.Poison("no JSON", "", b"{", messages.properties(
                correlation_id="by its properties", reply_to=sender.queue)),
            messages.Poison("no method", "", json.dumps({
                "_msg_id": "no method", "_reply_q": sender.queue}).encode(),
                messages.properties())])
        answers = base.wait_until(lambda: sender.received(3))
        self.assertEqual({"unreadable", "by its properties", "no method"}, set(answers))
        for error in answers.values():
            self.assertEqual("placement.input.invalid", error.code)

    def test_poison_among_the_dead_letters_is_listed(self):
        poisons = self.poisoner.publish(self.conf.queues.dead_letters, self.poisons())
        found = self.letters()
        self.assertEqual(len(poisons), len(found))
        path = self.useFixture(fixtures.TempDir()).join("conf")
        with open(path, "w") as file:
            file.write(f"[DEFAULT]\ntransport_url = {self.broker.url}\n")
        for arguments in (["list"], ["list", "--format", "table"],
                          *(["show", each.id] for each in found[:6])):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage",
                 "--config-file", path, "dead-letters", *arguments],
                check=False, capture_output=True, text=True)
            self.assertEqual((0, ""), (done.returncode, done.stderr), arguments)


class StreamTest(PoisonTest):

    def test_poison_in_the_stream_is_skipped(self):
        stream, gaps = self.conf.notifications.stream, []
        for _ in range(2):
            self.innocents(2)
            self.wait_until_published()
            self.assertGreater(len(self.poisoner.publish(stream, self.poisons())), _RANDOM)
        # The last message cannot be read, and names an offset of its own.
        self.assertEqual(1, len(self.poisoner.publish(stream, [self.generator.known()[0]])))
        reader = listener.StreamReader(
            self.broker.url, stream, 1, on_gap=lambda *gap: gaps.append(gap))
        tail = reader.tail()
        found = [event.position for event in reader.events(1, tail=tail, patience=20)]
        self.assertEqual(list(range(1, len(found) + 1)), found)
        self.assertGreater(len(found), 10)
        self.assertGreaterEqual(reader.offset, tail)
        self.assertLess(reader.offset, 10 ** 6)
        # Those that may have been events are told, and no event is missing.
        self.assertTrue(gaps)
        self.assertEqual([], [gap for gap in gaps if gap[0] != gap[1]])
        for arguments in (["listen", "--from", "1", "--idle", "2"],
                          ["usage-report", "--from", "2020-01-01", "--format", "json"]):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main",
                 "--transport-url", self.broker.url, *arguments], check=False,
                capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertIn("provider", done.stdout)

    def wait_until_published(self):
        def is_published():
            with self.running.database.reader() as tx:
                status = events.status(tx)
            return status["published_position"] == status["events"]

        base.wait_until(is_published)


class RepliesTest(PoisonTest):

    def test_poison_among_the_answers_is_skipped(self):
        name, = (line for line in self.broker.rabbitmqctl("list_queues", "name").split("\n")
                 if line.startswith("reply_"))
        self.poisoner.publish(name, self.poisons())
        self.innocents()
        self.assertEqual(name, *[line for line in self.broker.rabbitmqctl(
            "list_queues", "name").split("\n") if line.startswith("reply_")])
        self.check_nothing_came_again()


class _Sender(fixtures.Fixture):
    """A queue of answers, ``queue``."""

    def __init__(self, url):
        super().__init__()
        self._url = url
        self._answers = {}

    def _setUp(self):
        connection = Broker.at(self._url).connect()
        self.addCleanup(connection.drop)
        self._channel = connection.channel()
        self.queue = self._channel.queue_declare("", exclusive=True).queue

    def received(self, number):
        """Return the errors that came, by message id, if they are this many; else None."""
        while (message := self._channel.basic_get(self.queue, no_ack=True)) is not None:
            answer = envelope.open_answer(message.body)
            self._answers[answer.message_id] = envelope.remote_error(
                answer, envelope.ALLOWED_REMOTE_MODULES)
        return self._answers if len(self._answers) >= number else None


class KillerTest(base.TestCase):
    """A call during which workers die counts against itself only."""

    time_limit = 240

    def test_a_call_that_kills_workers_is_given_up_and_takes_no_other_along(self):
        broker = self.useFixture(servers.VirtualHost())
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transport_url=broker.url,
            # No copies of the calls: each copy that kills would be a dead letter of its own.
            placement_client__attempt_timeout=100, placement_client__repeat_after=1000.0))
        conductor = self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": broker.url},
            "database": {"connection": store.conf.database.connection},
            "queues": {"calls_attempts": 2},
            "conductor": {"workers": 1}}, module="tests.integration.mortal"))
        client = api.PlacementAPI(conf=store.conf)
        self.addCleanup(client.close)
        client.ping(None, timeout=60)
        uuid = client.create_provider(None, "provider").uuid
        client.set_inventory(None, uuid, [base.inventory("VCPU", 100)])
        conductor.kill()
        failed = {}

        def claim(number, **values):
            try:
                client.claim_allocations(
                    None, base.claim({uuid: {"VCPU": 1}}, **values), timeout=100)
            except exception.PlacementException as error:
                failed[number] = error

        threads = [threading.Thread(target=claim, args=(number,), kwargs={
            "user_id": "killer" if number in (3, 12) else "user"}) for number in range(20)]
        for thread in threads:
            thread.start()
        # All of them are in the queue before a worker takes the first.
        base.wait_until(lambda: "placement_claims\t20" in broker.rabbitmqctl(
            "list_queues", "name", "messages").replace(" ", "\t"))
        conductor.start()
        for thread in threads:
            thread.join()
        self.assertEqual({3, 12}, set(failed))
        self.assertEqual({"placement.internal"}, {error.code for error in failed.values()})
        self.assertEqual(18, client.get_usages(None, uuid).objects[0].used)
        letters = dead_letters.DeadLetters(
            Broker.at(broker.url), command_queue.dead_letter_queue(store.conf.queues)).all()
        # More than two if the client connected again, and repeated what had no answer yet.
        self.assertGreaterEqual(len(letters), 2)
        for letter in letters:
            self.assertEqual("placement_claims", letter.queue)
            self.assertIn("killer", letter.body)
            self.assertIn("each process that worked on it died", letter.reason)
