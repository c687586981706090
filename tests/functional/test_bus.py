# SPDX-License-Identifier: Apache-2.0
"""The server on the bus: what is taken in, what is refused, and what is left in the queue."""

import threading
import time

import oslo_messaging

from placement_rpc import api, exception, manager
from placement_rpc import conf as configuration
from placement_rpc.context import RequestContext
from placement_rpc.rpc import server
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class _Endpoint:
    """An endpoint whose calls wait until they are let go."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self):
        self.let_go = threading.Event()
        self.started = []

    @manager.exposed
    def wait(self, context, number):
        self.started.append(number)
        self.let_go.wait(20)
        return number

    @manager.exposed
    def fail(self, context):
        raise RuntimeError("the password is hunter2")

    def hidden(self, context):
        return "not for the bus"

    database = None


class ServerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = configuration.new_config(
            config_files=[], transport_url=f"inprocess://{base.new_uuid()}/",
            conductor__threads=3)
        self.endpoint = _Endpoint()
        self.transport = server.get_transport(self.conf)
        self.server = server.get_server(self.conf, self.transport, self.endpoint, "server")
        self.client = server.get_client(self.transport)

    def serve(self):
        self.server.begin()
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.stop)
        self.addCleanup(self.endpoint.let_go.set)

    def call(self, method, version="1.0", **arguments):
        return self.client.prepare(version=version, timeout=5).call(
            RequestContext(), method, **arguments)

    def test_no_more_is_taken_in_than_there_are_places(self):
        self.serve()
        for number in range(10):
            self.client.cast(RequestContext(), "wait", number=number)
        deadline = time.monotonic() + 5
        while len(self.endpoint.started) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        self.assertEqual(3, len(self.endpoint.started))
        self.endpoint.let_go.set()
        while len(self.endpoint.started) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(list(range(10)), sorted(self.endpoint.started))

    def test_stopping_finishes_what_was_taken_in(self):
        self.server.begin()
        results = []
        caller = threading.Thread(
            target=lambda: results.append(self.call("wait", number=7)))
        caller.start()
        while not self.endpoint.started:
            time.sleep(0.01)
        threading.Timer(0.2, self.endpoint.let_go.set).start()
        self.server.stop()
        self.server.wait()
        caller.join()
        self.assertEqual([7], results)

    def test_only_what_is_exposed_can_be_called(self):
        self.serve()
        for method in ("hidden", "__init__", "started", "no_such_method"):
            self.assertRaises(exception.UnsupportedCall, self.call, method)

    def test_versions_that_are_not_known(self):
        self.serve()
        for version in ("1.3", "2.0"):
            error = self.assertRaises(
                exception.UnsupportedCall, self.call, "wait", version=version, number=1)
            self.assertIn(version, error.text)

    def test_unknown_methods_leave_no_threads_behind(self):
        """With a call monitor the library would leave one thread for each."""
        self.serve()
        self.endpoint.let_go.set()
        client = self.client.prepare(timeout=5, call_monitor_timeout=2)
        client.call(RequestContext(), "wait", number=1)
        before = threading.active_count()
        for _ in range(10):
            self.assertRaises(
                exception.UnsupportedCall, client.call, RequestContext(), "no_such_method")
            self.assertRaises(
                exception.UnsupportedCall, self.call, "wait", version="9.0", number=1)
        self.assertLessEqual(threading.active_count(), before + 3)

    def test_a_defect_says_nothing_of_the_inside(self):
        self.serve()
        error = self.assertRaises(exception.RemoteFailure, self.call, "fail")
        self.assertNotIn("hunter2", str(error))
        self.assertNotIn("Traceback", str(error))
        self.assertIn("hunter2", self.log.output)
        self.assertIn(error.kwargs["incident"], self.log.output)

    def test_a_pin_keeps_newer_calls_from_being_sent(self):
        self.serve()
        pinned = api.PlacementAPI(conf=self.conf, pin="newton")
        self.addCleanup(pinned.close)
        error = self.assertRaises(
            exception.ServiceTooOld, pinned.move_allocations, None, base.new_uuid(),
            base.new_uuid())
        self.assertIn("1.2", error.text)
        self.assertEqual([], self.endpoint.started)

    def test_a_pin_that_is_no_release(self):
        error = self.assertRaises(
            exception.InvalidInput, api.PlacementAPI, conf=self.conf, pin="0.9")
        self.assertIn("newton", error.text)


class NobodyTest(base.TestCase):

    def test_where_nobody_listens_a_call_ends_at_its_deadline_and_says_so(self):
        conf = configuration.new_config(
            config_files=[], transport_url=f"inprocess://{base.new_uuid()}/")
        with api.PlacementAPI(conf=conf) as client:
            began = time.monotonic()
            error = self.assertRaises(exception.DeadlineExceeded, client.ping, None, timeout=0.5)
        self.assertLess(time.monotonic() - began, 3)
        self.assertIn("nobody listens", error.text)

    def test_a_service_that_comes_meanwhile_answers(self):
        late = placement_fixtures.RunningService()
        conf = configuration.new_config(
            config_files=[], transport_url=late._overrides["transport_url"])
        with api.PlacementAPI(conf=conf, topic=late.topic) as client:
            answers = []
            caller = threading.Thread(
                target=lambda: answers.append(client.ping(None, timeout=20)))
            caller.start()
            time.sleep(0.3)
            self.useFixture(late)
            caller.join()
        self.assertEqual(1, len(answers))


class ServicesTest(base.TestCase):

    def test_a_running_service_has_a_heartbeat_and_says_goodbye(self):
        running = placement_fixtures.RunningService()
        with running:
            listed = running.api.get_versions(None).objects
            self.assertEqual(
                [("placement-rpc-conductor", 0, "1.2", True)],
                [(each.binary, each.worker, each.rpc_version, each.alive) for each in listed])
            running.conductor.stop()
            with running.database.reader() as tx:
                self.assertEqual(
                    0, tx.exec_driver_sql("SELECT COUNT(*) FROM services").scalar())
