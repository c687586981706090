# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-conductor`` as a program: drain, reload, and its effects on the broker."""

import contextlib
import functools
import os
import signal
import threading
import time

import oslo_messaging
import psutil

from placement_rpc import api, exception, manager
from placement_rpc.amqp import consumer
from placement_rpc.amqp.broker import Broker
from placement_rpc.conf import service as configuration
from placement_rpc.context import RequestContext
from placement_rpc.db import api as db
from placement_rpc.rpc import batch_server, endpoint, senders
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base, library, servers
from tests.counted_attempts import CountedHere
from tests.integration import processes, proxy


class ConductorTest(base.TestCase):

    time_limit = 120

    def setUp(self):
        super().setUp()
        # The conductor listens on the contract's real topic.
        self.broker = self.useFixture(servers.VirtualHost())
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
        base.wait_until(lambda: len(self.services()) == self.options["conductor"]["workers"])
        return conductor

    def services(self):
        return [(each.worker, each.alive) for each in self.client.get_versions(None).objects]

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
        # It sends no second copy of a call to a service that is slow. So a result that says
        # "replayed" is that of a claim whose answer was lost.
        client = api.PlacementAPI(conf=configuration.new_config(
            config_files=[], transport_url=self.broker.url,
            placement_client__attempt_timeout=60, placement_client__repeat_after=1000.0))
        self.addCleanup(client.close)

        def claim():
            while not ended.is_set():
                results.append(client.claim_allocations(
                    None, base.claim({uuid: {"VCPU": 1}}), timeout=60))

        threads = [threading.Thread(target=claim) for _ in range(6)]
        for thread in threads:
            thread.start()
        base.wait_until(lambda: len(results) > 20)
        conductor.signal(signal.SIGTERM)
        self.assertEqual(0, conductor.process.wait(30), conductor.said())
        # Every accepted call was answered: no client had to retry one before another conductor
        # started.
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
        base.wait_until(lambda: self.services() == [(0, True), (1, True), (2, True)])
        # Workers with the old configuration end after they have answered their calls.
        base.wait_until(lambda: not before & {process.pid for process in psutil.Process(
            conductor.process.pid).children(recursive=True)})

    def living(self, conductor):
        """Return the pids of the workers that live."""
        found = set()
        for each in psutil.Process(conductor.process.pid).children():
            # It may end between the two reads.
            with contextlib.suppress(psutil.NoSuchProcess):
                if each.status() != psutil.STATUS_ZOMBIE:
                    found.add(each.pid)
        return found

    def test_a_dead_worker_is_replaced(self):
        conductor = self.start()
        worker = psutil.Process(conductor.process.pid).children()[0].pid
        os.kill(worker, signal.SIGKILL)
        base.wait_until(lambda: len(self.living(conductor) - {worker}) == 2)
        for _ in range(10):
            self.client.ping(None)

    def test_an_empty_database_is_one_clear_line(self):
        self.options["database"]["connection"] = servers.new_empty_database("postgresql")
        conductor = self.useFixture(processes.Conductor(self.options))
        self.assertEqual(1, conductor.process.wait(30))
        self.assertIn("placement-rpc-manage db sync", conductor.said())
        self.assertNotIn("Traceback", conductor.said())


class _Slow(manager.Manager):
    """A manager whose answers take a given time."""

    calls = {**contract.CALLS, "hold": contract.Call()}
    # A file descriptor to which a byte is written when a call begins.
    began = None
    # Called by the thread that reads the calls, for each of them.
    on_read = staticmethod(lambda: None)
    # Called when a call is handled.
    on_handled = staticmethod(lambda: None)

    def call_of(self, method):
        self.on_read()
        return super().call_of(method)

    @endpoint.exposed
    def hold(self, context, seconds):
        if self.began is not None:
            os.write(self.began, b"!")
        self.on_handled()
        time.sleep(seconds)
        return os.getpid()


def _serve_slowly(url, attempts=None, **hooks):
    """What the killed process runs.

    :param attempts: as of :class:`BatchServer`; None for those of a process that goes on
    :param hooks: attributes of its :class:`_Slow`
    """
    conf = configuration.new_config(
        config_files=[], transport_url=url, database__connection="sqlite://",
        queues__calls_attempts=3)
    service = _Slow(conf, db.Database(conf))
    vars(service).update(hooks)
    server = batch_server.BatchServer(
        conf, Broker.of(conf), service, ["slow"], 4, attempts or CountedHere())
    server.begin()
    return server


class AcceptedCallsTest(base.TestCase):
    """The calls that a process accepts, and their outcomes."""

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        # A copy of a call would be another attempt.
        self.conf = configuration.new_config(
            config_files=[], transport_url=self.broker.url,
            placement_client__repeat_after=1000.0)
        self.caller = senders.RabbitSender(self.conf, Broker.of(self.conf), "slow")
        self.addCleanup(self.caller.close)

    def start(self):
        """Start a process that serves.

        :returns: tuple of its id and a file descriptor with a byte for each call that began
        """
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            try:
                _Slow.began = tell
                _serve_slowly(self.broker.url)
                signal.pause()
            finally:
                os._exit(1)
        os.close(tell)
        self.addCleanup(os.close, told)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(self.kill, child)
        return child, told

    @staticmethod
    def kill(child):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    def call(self, seconds, timeout=60):
        return self.caller.call(RequestContext(), "hold", {"seconds": seconds}, timeout)

    def counts(self):
        """Return the numbers of ready and of unacknowledged messages."""
        for line in self.broker.rabbitmqctl(
                "list_queues", "name", "messages_ready",
                "messages_unacknowledged").splitlines():
            name, *counts = line.split("\t")
            if name == "slow":
                return tuple(int(count) for count in counts)
        return None

    def test_a_killed_process_loses_no_call(self):
        """Neither the calls beyond its limit, nor those under way."""
        (child, told), answers = self.start(), []
        base.wait_until(lambda: self.counts() is not None)
        threads = [threading.Thread(target=lambda: answers.append(self.call(1.5)))
                   for _ in range(10)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            os.read(told, 1)
        self.kill(child)
        server = _serve_slowly(self.broker.url)
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        for thread in threads:
            thread.join()
        self.assertEqual([os.getpid()] * 10, answers)

    def test_a_server_that_stops_answers_begun_calls_and_requeues_the_others(self):
        go_on, cancelled, answers = threading.Event(), threading.Event(), []
        cancel = consumer.Consumer.cancel

        def cancel_and_tell(of_server):
            cancel(of_server)
            cancelled.set()

        self.patch(consumer.Consumer, "cancel", cancel_and_tell)
        server = _serve_slowly(self.broker.url, on_handled=lambda: go_on.wait(60))
        threads = [threading.Thread(target=lambda: answers.append(self.call(0)))
                   for _ in range(35)]
        for thread in threads:
            thread.start()
        # It has four threads, and takes eight calls for each.
        base.wait_until(lambda: server.busy == 32)
        server.stop()
        # Otherwise it would get the others, too, when it answers.
        self.assertTrue(cancelled.wait(30))
        go_on.set()
        server.wait()
        base.wait_until(lambda: len(answers) == 32)
        base.wait_until(lambda: self.counts() == (3, 0))
        other = _serve_slowly(self.broker.url)
        self.addCleanup(other.wait)
        self.addCleanup(other.stop)
        for thread in threads:
            thread.join()
        self.assertEqual(35, len(answers))

    def test_a_call_that_always_ends_the_connection_is_dropped(self):
        network = self.useFixture(proxy.Proxy(self.broker.port))
        tried = []

        def die():
            tried.append(1)
            # The first attempt is not counted, since it may be that of any other call.
            if len(tried) <= 4:
                # As the connection of a process that has ended.
                network.reset()

        server = _serve_slowly(self.broker.url.replace(
            f":{self.broker.port}", f":{network.port}"), CountedHere(ends=True), on_handled=die)
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        call = threading.Thread(target=self.assertRaises, args=(
            exception.RemoteFailure, self.call, 0, 60))
        call.start()
        base.wait_until(lambda: "3 processes ended while" in self.log.output)
        self.assertEqual(4, len(tried))
        self.assertEqual(os.getpid(), self.call(0))
        self.assertEqual(5, len(tried))
        call.join()

    def test_heartbeats_are_sent_while_the_thread_that_reads_is_busy(self):
        server = _serve_slowly(
            f"{self.broker.url}?heartbeat_timeout_threshold=2",
            # Once: the thread asks several times of what kind the call is.
            on_read=functools.cache(
                lambda: servers.wait_for_heartbeat_timeout(self.broker.url, 2)))
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        self.assertEqual(os.getpid(), self.call(0))
        self.assertNotIn("no connection to the broker", self.log.output)

    def test_a_client_that_monitors_its_call_gets_heartbeats(self):
        server = _serve_slowly(self.broker.url)
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        client = self.useFixture(library.Client(self.conf, "slow")).prepare(
            timeout=30, call_monitor_timeout=3)
        self.assertEqual(os.getpid(), client.call({}, "hold", seconds=6))

    def test_an_ordinary_client_can_call_again_after_a_timeout(self):
        server = _serve_slowly(self.broker.url)
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        client = self.useFixture(library.Client(self.conf, "slow"))
        self.assertRaises(oslo_messaging.MessagingTimeout, client.prepare(timeout=1).call, {},
                          "hold", seconds=3)
        self.assertEqual(os.getpid(), client.prepare(timeout=30).call({}, "hold", seconds=0))


class QueueTest(base.TestCase):

    def test_queues_are_durable_quorum_queues(self):
        broker = self.useFixture(servers.VirtualHost())
        running = self.useFixture(placement_fixtures.RunningService(transport_url=broker.url))
        running.api.ping(None)
        queues = dict(line.split("\t", 1) for line in broker.rabbitmqctl(
            "list_queues", "name", "durable", "type").splitlines()[1:])
        self.assertEqual("true\tquorum", queues[running.topic])
        exchanges = broker.rabbitmqctl("list_exchanges", "name", "durable").splitlines()
        self.assertIn("placement\ttrue", exchanges)
