# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-conductor`` as a program: drain, reload, and what it leaves in the broker."""

import os
import signal
import threading
import time

import psutil

from placement_rpc import api, bus, manager
from placement_rpc import conf as configuration
from placement_rpc.context import RequestContext
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, servers
from tests.integration import processes


class ConductorTest(base.TestCase):

    time_limit = 120

    def setUp(self):
        super().setUp()
        # A broker of its own: the conductor listens on the contract's real topic.
        self.broker = self.useFixture(private.RabbitMQ())
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transport_url=self.broker.url))
        self.options = {
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "conductor": {"host": "host", "workers": 2, "threads": 4, "report_interval": 1}}

    def start(self):
        conductor = self.useFixture(processes.Conductor(self.options))
        self.client = api.PlacementAPI(conf=self.store.conf)
        self.addCleanup(self.client.close)
        self.client.ping(None, timeout=60)
        self.wait_for(lambda: len(self.services()) == self.options["conductor"]["workers"])
        return conductor

    def services(self):
        return [(each.worker, each.alive) for each in self.client.get_versions(None).objects]

    def wait_for(self, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not happen in time")
            time.sleep(0.05)

    def provider(self):
        uuid = self.client.create_provider(None, "provider").uuid
        self.client.set_inventory(None, uuid, [base.inventory("VCPU", 1_000_000)])
        return uuid

    def test_workers_answer_and_have_heartbeats(self):
        self.start()
        self.assertEqual([(0, True), (1, True)], self.services())
        pids = {self.client.ping(None)["pid"] for _ in range(40)}
        self.assertEqual(2, len(pids))

    def test_sigterm_drains(self):
        conductor = self.start()
        uuid = self.provider()
        results, ended = [], threading.Event()

        def claim():
            while not ended.is_set():
                results.append(self.client.claim_allocations(
                    None, base.claim({uuid: {"VCPU": 1}}), timeout=60))

        threads = [threading.Thread(target=claim) for _ in range(6)]
        for thread in threads:
            thread.start()
        self.wait_for(lambda: len(results) > 20)
        conductor.signal(signal.SIGTERM)
        self.assertEqual(0, conductor.process.wait(30), conductor.said())
        # Nobody who was taken in was left without an answer: none had to ask a second time
        # before another conductor came.
        conductor.start()
        ended.set()
        for thread in threads:
            thread.join()
        self.assertFalse([each for each in results if each.replayed])
        self.assertEqual(len(results), self.client.get_usages(None, uuid).objects[0].used)

    def test_sigterm_leaves_no_heartbeat(self):
        conductor = self.start()
        conductor.signal(signal.SIGTERM)
        self.assertEqual(0, conductor.process.wait(30), conductor.said())
        with self.store.database.reader() as tx:
            self.assertEqual(0, tx.exec_driver_sql("SELECT COUNT(*) FROM services").scalar())

    def test_sighup_reads_the_configuration_again(self):
        conductor = self.start()
        before = {process.pid for process in psutil.Process(
            conductor.process.pid).children(recursive=True)}
        self.options["conductor"]["workers"] = 3
        conductor.write()
        conductor.signal(signal.SIGHUP)
        self.wait_for(lambda: self.services() == [(0, True), (1, True), (2, True)])
        after = {process.pid for process in psutil.Process(
            conductor.process.pid).children(recursive=True)}
        self.assertFalse(before & after, "a worker still has the old configuration")

    def test_a_dead_worker_is_replaced(self):
        conductor = self.start()
        worker = psutil.Process(conductor.process.pid).children()[0].pid
        os.kill(worker, signal.SIGKILL)
        self.wait_for(lambda: len([
            each for each in psutil.Process(conductor.process.pid).children()
            if each.status() != psutil.STATUS_ZOMBIE and each.pid != worker]) == 2)
        for _ in range(10):
            self.client.ping(None)

    def test_an_empty_database_is_one_clear_line(self):
        self.options["database"]["connection"] = servers.postgresql().create_database()
        conductor = self.useFixture(processes.Conductor(self.options))
        self.assertEqual(1, conductor.process.wait(30))
        self.assertIn("placement-rpc-manage db sync", conductor.said())
        self.assertNotIn("Traceback", conductor.said())


class _Slow(manager.Manager):
    """A manager that answers nothing until it is killed."""

    @manager.exposed
    def hold(self, context):
        threading.Event().wait(60)


def _serve_slowly(url, database):
    """What the killed process runs: see test_a_killed_worker_leaves_calls_in_the_broker."""
    conf = configuration.new_config(
        config_files=[], transport_url=url, database__connection=database,
        conductor__threads=4, oslo_messaging_rabbit__rabbit_qos_prefetch_count=1)
    server = bus.get_server(
        conf, bus.get_transport(conf), _Slow(conf, None), "slow", topic="slow")
    server.begin()
    signal.pause()


class IntakeTest(base.TestCase):

    def test_a_killed_worker_leaves_calls_in_the_broker(self):
        broker = servers.rabbitmq()
        child = os.fork()
        if not child:
            try:
                _serve_slowly(broker.url, "sqlite://")
            finally:
                os._exit(1)
        self.addCleanup(os.waitpid, child, 0)
        conf = configuration.new_config(config_files=[], transport_url=broker.url)
        client = bus.get_client(bus.get_transport(conf), topic="slow")
        self._cast(client, 50)

        def left():
            for line in broker.rabbitmqctl(
                    "-q", "list_queues", "name", "messages_ready",
                    "messages_unacknowledged").splitlines():
                name, *counts = line.split("\t")
                if name == "slow":
                    return sum(int(count) for count in counts)
            return None

        deadline = time.monotonic() + 20
        while left() != 50 - 5 and time.monotonic() < deadline:
            time.sleep(0.2)
        os.kill(child, signal.SIGKILL)
        time.sleep(1)
        # Four under way, and one in the hand of the thread that waits for a free place.
        self.assertEqual(50 - 5, left())

    def _cast(self, client, number):
        deadline = time.monotonic() + 20
        while number:
            try:
                client.cast(RequestContext(), "hold")
                number -= 1
            except Exception:
                # The child has not declared its queue yet.
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)


class QueueTest(base.TestCase):

    def test_queues_are_durable_quorum_queues(self):
        broker = self.useFixture(private.RabbitMQ())
        running = self.useFixture(placement_fixtures.RunningService(transport_url=broker.url))
        running.api.ping(None)
        queues = dict(line.split("\t", 1) for line in broker.rabbitmqctl(
            "-q", "list_queues", "name", "durable", "type").splitlines()[1:])
        self.assertEqual("true\tquorum", queues[running.topic])
        exchanges = broker.rabbitmqctl("-q", "list_exchanges", "name", "durable").splitlines()
        self.assertIn("placement\ttrue", exchanges)
