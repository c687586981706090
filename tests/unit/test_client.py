# SPDX-License-Identifier: Apache-2.0
"""The client: attempts, deadlines and threads, without a bus."""

import threading
import time

import oslo_messaging
from amqp import exceptions as amqp_exceptions
from kombu import exceptions as kombu_exceptions
from oslo_context import context as oslo_context

from placement_rpc import api, exception
from placement_rpc.context import RequestContext
from placement_rpc.rpc import senders
from placement_rpc.rpc.daemon_pool import DaemonPool
from placement_rpc.versions import releases
from tests import base


class _Caller:
    """Goes wrong as it is told to, and remembers what it was asked."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.calls = []

    def call(self, context, method, arguments, timeout):
        self.calls.append((context, method, arguments, timeout))
        outcome = self.outcomes.pop(0) if self.outcomes else "done"
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _client(*outcomes):
    client = api.PlacementAPI("local", manager=_Manager())
    client._caller = _Caller(*outcomes)
    return client


class _Manager:
    """Stands where a manager is needed and never called."""

    release = releases.CURRENT


class RetryTest(base.TestCase):

    def test_what_may_succeed_later_is_tried_again_under_the_same_id(self):
        client = _client(exception.ServiceUnavailable(reason="a"),
                         exception.StoreUnavailable(reason="b"),
                         exception.StoreBusy(method="c", attempts=1))
        self.assertEqual("done", client.release_allocations(None, base.new_uuid()))
        ids = {arguments["request_id"] for _, _, arguments, _ in client._caller.calls}
        self.assertEqual((4, 1), (len(client._caller.calls), len(ids)))

    def test_two_calls_have_two_ids(self):
        client = _client()
        for _ in range(2):
            client.release_allocations(None, base.new_uuid())
        first, second = (call[2]["request_id"] for call in client._caller.calls)
        self.assertNotEqual(first, second)

    def test_what_is_final_is_not_tried_again(self):
        client = _client(exception.CapacityExceeded())
        self.assertRaises(exception.CapacityExceeded, client.claim_allocations, None,
                          base.claim({base.new_uuid(): {"VCPU": 1}}))
        self.assertEqual(1, len(client._caller.calls))

    def test_no_attempt_outlasts_the_deadline(self):
        client = _client(*[exception.ServiceUnavailable(reason="away")] * 100)
        began = time.time()
        error = self.assertRaises(exception.DeadlineExceeded, client.ping, None, timeout=0.4)
        self.assertIn("away", error.text)
        self.assertLess(time.time() - began, 2)
        for context, _, _, timeout in client._caller.calls:
            self.assertLessEqual(timeout, 0.4)
            self.assertAlmostEqual(began + 0.4, context.deadline, delta=0.2)

    def test_of_a_foreign_context_nothing_secret_is_taken(self):
        client = _client()
        client.ping(oslo_context.RequestContext(
            user_id="ada", project_id="blue", auth_token="secret", request_id="req-1"))
        context = client._caller.calls[0][0]
        self.assertEqual({"user_id": "ada", "project_id": "blue", "request_id": "req-1",
                          "deadline": context.deadline}, context.to_dict())


class PinTest(base.TestCase):

    def test_that_the_question_who_answers_came_too_late_is_no_answer(self):
        """The call that it was asked for has its own deadline, and tries again."""
        client = _client(exception.RequestExpired(late=0.5))
        self.assertRaises(exception.ServiceUnavailable, client._services, 1)


class _BrokenClient:
    """Raises what the bus library lets through."""

    def __init__(self, error):
        self._error = error

    def prepare(self, **_how):
        return self

    def call(self, *_arguments, **_named):
        raise self._error


class RemoteCallerTest(base.TestCase):

    def test_whatever_a_broken_connection_raises_is_tried_again(self):
        for error in (
                oslo_messaging.MessagingTimeout(), oslo_messaging.MessageDeliveryFailure(),
                kombu_exceptions.OperationalError("[Errno 111] Connection refused"),
                amqp_exceptions.ConnectionForced("shutdown"), ConnectionResetError(104, "reset")):
            caller = senders.LibrarySender.__new__(senders.LibrarySender)
            caller._topic = "placement"
            caller._client, caller._threads = _BrokenClient(error), DaemonPool(1)
            self.addCleanup(caller._threads.close)
            raised = self.assertRaises(
                exception.ServiceUnavailable, caller.call, RequestContext(), "ping", {}, 5)
            self.assertTrue(raised.retryable)


class ContextTest(base.TestCase):

    def test_what_a_newer_sender_adds_is_dropped(self):
        context = RequestContext.from_dict(
            {"user_id": "ada", "deadline": 5.0, "colour": "red", "auth_token": "secret"})
        self.assertEqual(("ada", 5.0), (context.user_id, context.deadline))
        self.assertIsNone(context.auth_token)

    def test_deadlines(self):
        RequestContext().check_deadline()
        RequestContext(deadline=time.time() + 5).check_deadline()
        self.assertRaises(exception.RequestExpired,
                          RequestContext(deadline=time.time() - 5).check_deadline)


class CallThreadsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.threads = DaemonPool(2)
        self.addCleanup(self.threads.close)
        self.blocked = threading.Event()
        self.addCleanup(self.blocked.set)

    def test_results_and_errors_come_back(self):
        self.assertEqual(5, self.threads.run(lambda: 5, 5))
        self.assertRaises(ZeroDivisionError, self.threads.run, lambda: 1 / 0, 5)

    def test_the_caller_waits_no_longer_than_he_wants(self):
        began = time.monotonic()
        self.assertRaises(TimeoutError, self.threads.run, lambda: self.blocked.wait(20), 0.1)
        self.assertLess(time.monotonic() - began, 2)

    def test_calls_that_never_end_do_not_pile_up(self):
        for _ in range(2):
            self.assertRaises(TimeoutError, self.threads.run, lambda: self.blocked.wait(20), 0.1)
        self.assertRaises(exception.ServiceUnavailable, self.threads.run, lambda: 5, 1)
        self.blocked.set()
        deadline = time.monotonic() + 5
        while not self.threads._idle and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(5, self.threads.run(lambda: 5, 1))

    def test_threads_are_used_again(self):
        before = threading.active_count()
        for _ in range(20):
            self.threads.run(lambda: 5, 5)
            time.sleep(0.001)
        self.assertLessEqual(threading.active_count(), before + 2)
