# SPDX-License-Identifier: Apache-2.0
"""Commands for operators and for billing: broker check, usage-report, snapshots, replays."""

import csv
import datetime
import io
import json
import pathlib
import shlex
import subprocess
import sys
import threading
import time

import fixtures
import kombu

from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_POLICIES = pathlib.Path(__file__).parents[2] / "etc/integration/rabbitmq/policies.json"


class OperatingTest(base.TestCase):

    time_limit = 180
    options = {}

    def setUp(self):
        super().setUp()
        self.broker = self.make_broker()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, topic="placement", **self.options))
        self.api, self.database = self.running.api, self.running.database
        directory = self.useFixture(fixtures.TempDir()).path
        self.conf = pathlib.Path(directory, "placement-rpc.conf")
        self.conf.write_text(
            f"[DEFAULT]\ntransport_url = {self.broker.url}\n"
            f"[database]\nconnection = {self.running.conf.database.connection}\n"
            f"[queues]\nmanagement_url = {self.broker.management_url}\n")

    def make_broker(self):
        return self.useFixture(servers.VirtualHost())

    def run_program(self, program, *arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}",
             "--config-file", str(self.conf), *arguments],
            check=False, capture_output=True, text=True)
        codes = code if isinstance(code, tuple) else (code,)
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def amqp(self):
        return self.useFixture(_Connection(self.broker.url)).connection

    def wait_published(self):
        return base.wait_published(self.database)

    def provider(self, total=100):
        uuid = self.api.create_provider(None, base.new_uuid()).uuid
        self.api.set_inventory(None, uuid, [
            base.inventory("VCPU", total), base.inventory("DISK_GB", 1000)])
        return uuid


class _Connection(fixtures.Fixture):

    def __init__(self, url):
        super().__init__()
        self._url = url.replace("rabbit:", "amqp:")

    def _setUp(self):
        self.connection = kombu.Connection(self._url)
        self.addCleanup(self.connection.release)


class BrokerCheckTest(OperatingTest):

    def run_check(self, *codes):
        return self.run_program("manage", "broker", "check", code=codes or (0, 1))

    def check(self, code):
        done = self.run_check(code)
        return {row["queue"]: row for row in json.loads(done.stdout)}

    def troubles(self, code=1):
        return {name: row["trouble"] for name, row in self.check(code).items() if row["trouble"]}

    def declare(self, name, durable=True, **arguments):
        channel = self.amqp().channel()
        channel.queue_declare(name, durable=durable, auto_delete=False, arguments=arguments)
        channel.queue_bind(name, exchange="placement", routing_key="placement_notifications.info")

    def import_policies(self):
        policies = json.loads(_POLICIES.read_text())
        for policy in policies["policies"]:
            policy["vhost"] = servers.name_of(self.broker.url)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "policies.json")
        path.write_text(json.dumps(policies))
        servers.shared().rabbitmqctl("import_definitions", str(path))

    def test_what_is_well_and_what_is_not(self):
        self.provider()
        self.wait_published()
        queues = self.check(0)
        self.assertEqual(
            {"placement_commands": "commands", "placement_events": "stream",
             "placement_dead_letters": "dead letters", "placement": "calls",
             "placement_claims": "calls", "placement_fleet": "calls"},
            {name: row["kind"] for name, row in queues.items()
             if not name.startswith(("placement.", "placement_fleet.", "(cluster)"))})
        self.assertIn("a lone node", queues["(cluster)"]["notes"][0])
        self.assertEqual({1}, {queues[name]["consumers"]
                               for name in ("placement", "placement_commands")})
        # Queues of an oslo.messaging listener with default options that stopped for good.
        self.declare("placement_notifications.info")
        self.declare("fleeting", durable=False, **{"x-max-length": 5})
        self.provider()
        self.wait_published()
        self.amqp().Producer().publish("x", routing_key="placement_dead_letters")
        self.assertEqual({
            "placement_notifications.info": ["unbounded", "unread"],
            "fleeting": ["not durable", "unread"],
            "placement_dead_letters": ["dead letters wait"]}, self.troubles())
        table = self.run_program("manage", "broker", "check", "--format", "table", code=1).stdout
        self.assertIn("unbounded", table)
        # The policies that this tree has for it limit the queue.
        self.import_policies()
        self.amqp().channel().queue_delete("fleeting")
        base.wait_until(lambda: "unbounded" not in self.troubles().get(
            "placement_notifications.info", []), 20)
        self.assertEqual(["unread"], self.troubles()["placement_notifications.info"])

    def test_what_it_proposes_mends_it(self):
        self.provider()
        self.wait_published()
        self.declare("billing's.eu+1")
        mend, = self.check(1)["billing's.eu+1"]["mend"]
        program, *words = shlex.split(mend)
        self.assertEqual("rabbitmqctl", program)
        servers.shared().rabbitmqctl(*words)
        base.wait_until(lambda: not self.run_check().returncode, 20)

    def test_without_the_management_interface(self):
        self.conf.write_text(f"[DEFAULT]\ntransport_url = {self.broker.url}\n"
                             "[queues]\nmanagement_url = http://x:secret@127.0.0.1:9\n")
        said = self.run_program("manage", "broker", "check", code=1).stderr
        self.assertIn("rabbitmq-plugins enable rabbitmq_management", said)
        self.assertNotIn("secret", said)
        self.conf.write_text("[DEFAULT]\ntransport_url = inprocess://x/\n")
        self.assertIn("only RabbitMQ has queues to check", self.run_program(
            "manage", "broker", "check", code=1).stderr)


class UsageReportTest(OperatingTest):

    def report(self, *arguments, code=0):
        return self.run_program("main", "usage-report", *arguments, code=code)

    def test_the_report_agrees_with_the_store(self):
        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
        provider = self.provider()
        consumers = []
        for number in range(4):
            wanted = base.claim({provider: {"VCPU": 2, "DISK_GB": 50}},
                                project_id=f"project-{number % 2}")
            self.api.claim_allocations(None, wanted)
            consumers.append(wanted.consumer_uuid)
        self.api.release_allocations(None, consumers[0])
        self.wait_published()
        for where in ((), ("--local",)):
            report = json.loads(self.run_program(
                "main", *where, "usage-report", "--from", begin.isoformat()).stdout)
            self.assertTrue(report["complete"])
            held = {(line["project_id"], line["resource_class"]): line["held"]
                    for line in report["lines"]}
            self.assertEqual({
                ("project-0", "VCPU"): 2, ("project-0", "DISK_GB"): 50,
                ("project-1", "VCPU"): 4, ("project-1", "DISK_GB"): 100}, held)
            for line in report["lines"]:
                self.assertEqual(("user", provider), (line["user_id"], line["provider_uuid"]))
                self.assertGreater(line["resource_hours"], 0)
        rows = list(csv.DictReader(io.StringIO(self.report(
            "--from", begin.isoformat(), "--project", "project-1", "--resource-class", "VCPU",
            "--format", "csv").stdout)))
        self.assertEqual([("project-1", "VCPU", "4")], [
            (row["project_id"], row["resource_class"], row["held"]) for row in rows])
        table = self.report("--from", begin.isoformat(), "--format", "table").stdout
        for words in ("project-1", "held", "DISK_GB", "all"):
            self.assertIn(words, table)

    def test_while_others_claim(self):
        """A stream that is never quiet has an end, too."""
        provider, ended = self.provider(total=100_000), threading.Event()

        def work():
            while not ended.is_set():
                self.api.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
            began = time.monotonic()
            report = json.loads(self.report("--from", begin.isoformat()).stdout)
            self.assertLess(time.monotonic() - began, 30)
        finally:
            ended.set()
            thread.join()
        self.assertTrue(report["complete"])
        self.assertGreater(report["lines"][0]["held"], 0)

    def test_nothing_was_published_since(self):
        """The same if snapshots are turned off."""
        provider = self.provider()
        self.api.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))
        self.wait_published()
        self.conf.write_text(self.conf.read_text() + "[notifications]\nsnapshot_period = 0\n")
        time.sleep(1)
        done = self.report("--from", datetime.datetime.now(datetime.UTC).isoformat())
        line, = json.loads(done.stdout)["lines"]
        self.assertEqual(1, line["held"])
        # Nothing waits to be published.
        self.assertEqual("", done.stderr)
        done = self.report("--from", "1970-01-01")
        self.assertTrue(json.loads(done.stdout)["complete"])

    def test_what_was_cut_off_and_published_again(self):
        self.lose_stream()
        begin = datetime.datetime.now(datetime.UTC).isoformat()
        self.assertIn("do not cover", self.report("--from", begin, code=1).stderr)
        self.run_program("manage", "outbox", "replay", "--position", "1")
        self.wait_published()
        line, = json.loads(self.report("--from", begin).stdout)["lines"]
        self.assertEqual(4, line["held"])

    def test_what_is_not_published_yet_is_in_the_store(self):
        provider = self.provider()
        self.wait_published()
        self.running.conductor.relay.stop()
        begin = datetime.datetime.now(datetime.UTC).isoformat()
        for _ in range(3):
            self.api.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))
        report = json.loads(self.run_program(
            "main", "--local", "usage-report", "--from", begin).stdout)
        self.assertEqual([3], [line["held"] for line in report["lines"]])

    def test_a_report_of_a_time_that_is_over(self):
        provider = self.provider()
        wanted = base.claim({provider: {"VCPU": 3}})
        self.api.claim_allocations(None, wanted)
        time.sleep(1)
        end = datetime.datetime.now(datetime.UTC)
        self.api.release_allocations(None, wanted.consumer_uuid)
        self.wait_published()
        line, = json.loads(self.report(
            "--from", (end - datetime.timedelta(seconds=1)).isoformat(),
            "--to", end.isoformat()).stdout)["lines"]
        self.assertEqual(3, line["held"])
        self.assertAlmostEqual(3 / 3600, line["resource_hours"], places=4)

    def test_from_a_snapshot_when_the_first_events_are_gone(self):
        provider = self.lose_stream()
        begin = datetime.datetime.now(datetime.UTC)
        said = self.report("--from", begin.isoformat(), code=1)
        self.assertEqual("", said.stdout)
        self.assertIn("do not cover the period", said.stderr)
        allowed = self.report("--from", begin.isoformat(), "--allow-incomplete")
        self.assertFalse(json.loads(allowed.stdout)["complete"])
        self.assertIn("incomplete", allowed.stderr)
        self.assertIn("of 4 consumers", self.run_program(
            "manage", "outbox", "snapshot").stdout)
        self.wait_published()
        begin = datetime.datetime.now(datetime.UTC)
        self.api.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))
        self.wait_published()
        line, = json.loads(self.report("--from", begin.isoformat()).stdout)["lines"]
        self.assertEqual(5, line["held"])

    def lose_stream(self):
        """Three claims in a stream that is lost, and one after it; returns the provider."""
        provider = self.provider()
        for _ in range(3):
            self.api.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))
        self.wait_published()
        self.running.conductor.relay.stop()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_delete("placement_events")
        # The same service with another relay.
        conductor = type(self.running.conductor)(self.running.conf, worker=1, topic="other")
        self.addCleanup(conductor.stop)
        conductor.start()
        self.api.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))
        self.wait_published()
        return provider

    def test_mistakes(self):
        self.provider()
        self.wait_published()
        for arguments, words in (
                (("--from", "2999-01-01"), "in the future"),
                (("--from", "2026-01-02", "--to", "2026-01-01"), "before it begins")):
            self.assertIn(words, self.report(*arguments, code=1).stderr)
        self.assertIn("is not a time", self.report("--from", "yesterday", code=2).stderr)


class ReplayTest(OperatingTest):

    def test_the_events_of_one_provider(self):
        one, other = self.provider(), self.provider()
        self.api.claim_allocations(None, base.claim({one: {"VCPU": 1}, other: {"VCPU": 1}}))
        self.api.claim_allocations(None, base.claim({other: {"VCPU": 1}}))
        last = self.wait_published()
        seen = []
        queue = listener.QueueListener(self.running.conf, "replayed", seen.append)
        queue.run(idle=1)
        self.assertIn("3 events are published again", self.run_program(
            "manage", "outbox", "replay", "--provider", one.upper()).stdout)
        queue.run(idle=2)
        self.assertEqual(["resource_provider.create", "inventory.create", "allocation.create"],
                         [event.event_type for event in seen])
        self.assertEqual([1, 2, 5], [event.position for event in seen])
        self.assertIn("1 events", self.run_program(
            "manage", "outbox", "replay", "--provider", one, "--position", "3").stdout)
        self.assertIn("0 events", self.run_program(
            "manage", "outbox", "replay", "--provider", base.new_uuid()).stdout)
        self.assertIn("give --position", self.run_program(
            "manage", "outbox", "replay", code=1).stderr)
        # The stream has them a second time, and a reader gives them out once.
        found = [event.position for event in listener.StreamReader(
            self.broker.url, "placement_events", 1).events(idle=2)]
        self.assertEqual(list(range(1, last + 1)), found)


    def test_listeners_of_an_older_release_get_what_they_know(self):
        uuid = self.api.create_provider(None, base.new_uuid()).uuid
        self.wait_published()
        seen = []
        queue = listener.QueueListener(self.running.conf, "replayed", seen.append)
        queue.run(idle=1)
        for pin in ("", "[notifications]\npayload_pin = 2026.2\n"):
            with self.conf.open("a") as file:
                file.write(pin)
            self.run_program("manage", "outbox", "replay", "--provider", uuid)
            queue.run(idle=2)
        now, pinned = (event.payload for event in seen)
        self.assertIn("initiator", now)
        self.assertNotIn("initiator", pinned)
        self.assertEqual(now["name"], pinned["name"])


class IndexVerifyTest(OperatingTest):

    # The conductor's own comparison would find the difference before the program does.
    options = {"candidates__verify_sample": 0}

    def verify(self, *arguments, code=0):
        return json.loads(self.run_program("manage", "index", "verify", *arguments, code=code)
                          .stdout)

    def test_every_conductors_index_is_compared_with_the_store(self):
        for number in range(3):
            uuid = self.api.create_provider(None, f"provider {number}").uuid
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        for arguments in ((), ("--here",)):
            row, = self.verify(*arguments)
            self.assertEqual((3, 3, 0), tuple(
                row[key] for key in ("providers", "inventories", "differences")))
        with self.running.conductor.manager.candidates.index.current() as index:
            index.inventories[0]["used"][1] = 5
        row, = self.verify(code=1)
        self.assertEqual(1, row["differences"])
        self.assertIn("(8, 5, 1,", next(iter(row["details"].values())))
        # It was dropped for that, and built again.
        self.running.conductor.manager.candidates.index.wait_until_ready()
        row, = self.verify()
        self.assertEqual(0, row["differences"])

    def test_one_that_has_no_index_is_said_to_have_none(self):
        # A search builds its index with its first call.
        self.running.conductor.manager.candidates = CandidateSearch(self.running.database)
        row, = self.verify(code=1)
        self.assertEqual("no index", row["differences"])
