# SPDX-License-Identifier: Apache-2.0
"""The client: attempts, deadlines and threads, without a bus."""

import contextlib
import functools
import json
import signal
import threading
import time
import types
from unittest import mock

import psutil
from oslo_context import context as oslo_context
from oslo_messaging.rpc import dispatcher as rpc_dispatcher

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.amqp.broker import Broker
from placement_rpc.context import RequestContext
from placement_rpc.rpc import envelope, received, senders
from placement_rpc.rpc.daemon_pool import DaemonPool
from placement_rpc.versions import releases
from tests import base


class _Sender:
    """Returns or raises the given outcomes, one for each call, and records the calls."""

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
    client.sender = _Sender(*outcomes)
    return client


class _ForeignError(Exception):
    """An error of a module that a client does not rebuild errors of."""


class _Manager:
    """Stands where a manager is needed and never called."""

    release = releases.CURRENT


class RetryTest(base.TestCase):

    def test_what_may_succeed_later_is_tried_again_under_the_same_id(self):
        client = _client(exception.ServiceUnavailable(reason="a"),
                         exception.StoreUnavailable(reason="b"),
                         exception.StoreBusy(method="c", attempts=1))
        self.assertEqual("done", client.release_allocations(None, base.new_uuid()))
        ids = {arguments["request_id"] for _, _, arguments, _ in client.sender.calls}
        self.assertEqual((4, 1), (len(client.sender.calls), len(ids)))

    def test_two_calls_have_two_ids(self):
        client = _client()
        for _ in range(2):
            client.release_allocations(None, base.new_uuid())
        first, second = (call[2]["request_id"] for call in client.sender.calls)
        self.assertNotEqual(first, second)

    def test_what_is_final_is_not_tried_again(self):
        client = _client(exception.CapacityExceeded())
        self.assertRaises(exception.CapacityExceeded, client.claim_allocations, None,
                          base.claim({base.new_uuid(): {"VCPU": 1}}))
        self.assertEqual(1, len(client.sender.calls))

    def test_no_attempt_outlasts_the_deadline(self):
        client = _client(*[exception.ServiceUnavailable(reason="away")] * 100)
        began = time.time()
        error = self.assertRaises(exception.DeadlineExceeded, client.ping, None, timeout=0.4)
        self.assertIn("away", error.text)
        self.assertLess(time.time() - began, 2)
        for context, _, _, timeout in client.sender.calls:
            self.assertLessEqual(timeout, 0.4)
            self.assertAlmostEqual(began + 0.4, context.deadline, delta=0.2)

    def test_writers_that_are_in_the_way_of_each_attempt_are_reported(self):
        """Nothing was done, which is more than is known when a deadline passes."""
        busy = [exception.StoreBusy(method="c", attempts=1)] * 1000
        self.assertRaises(exception.StoreBusy, _client(*busy).release_allocations, None,
                          base.new_uuid(), timeout=0.2)
        for unknown in ([exception.StoreUnavailable(reason="b"), *busy],
                        [busy[0], exception.StoreUnavailable(reason="b"), *busy]):
            self.assertRaises(exception.DeadlineExceeded, _client(*unknown).release_allocations,
                              None, base.new_uuid(), timeout=0.4)

    def test_an_overloaded_service_is_asked_again_when_it_says(self):
        client = _client(*[exception.ServiceOverloaded(reason="a", retry_after=0.2)] * 2)
        began = time.monotonic()
        self.assertEqual("done", client.release_allocations(None, base.new_uuid(), timeout=30))
        self.assertGreaterEqual(time.monotonic() - began, 0.4)
        ids = {arguments["request_id"] for _, _, arguments, _ in client.sender.calls}
        self.assertEqual((3, 1), (len(client.sender.calls), len(ids)))

    def test_a_service_that_asks_for_no_pause_is_not_flooded(self):
        client = _client(*[exception.ServiceOverloaded(reason="a", retry_after=0)] * 100_000)
        self.assertRaises(exception.ServiceOverloaded, client.release_allocations, None,
                          base.new_uuid(), timeout=0.5)
        self.assertLess(len(client.sender.calls), 12)

    def test_a_pause_that_outlasts_the_deadline_is_not_waited_for(self):
        """It is known that nothing was done, unless an earlier attempt ended otherwise."""
        overloaded = exception.ServiceOverloaded(reason="a", retry_after=30)
        client = _client(overloaded)
        error = self.assertRaises(exception.ServiceOverloaded, client.release_allocations, None,
                                  base.new_uuid(), timeout=20)
        self.assertEqual((1, 30), (len(client.sender.calls), error.kwargs["retry_after"]))
        self.assertRaises(
            exception.DeadlineExceeded, _client(
                exception.StoreUnavailable(reason="b"), overloaded).release_allocations,
            None, base.new_uuid(), timeout=0.5)

    def test_of_a_foreign_context_nothing_secret_is_taken(self):
        client = _client()
        client.ping(oslo_context.RequestContext(
            user_id="ada", project_id="blue", auth_token="secret", request_id="req-1"))
        context = client.sender.calls[0][0]
        self.assertEqual({"user_id": "ada", "project_id": "blue", "request_id": "req-1",
                          "deadline": context.deadline}, context.to_dict())


class PinTest(base.TestCase):

    def test_a_query_of_the_services_that_expires_is_retried(self):
        """The call that needs its answer has a deadline of its own."""
        client = api.PlacementAPI(transport_url="rabbit://host/")
        self.addCleanup(client.sender.close)
        client.sender = _Sender(
            exception.RequestExpired(late=0.5), *[types.SimpleNamespace(objects=[])] * 2)
        self.assertEqual([], client.claim_batch(None, []))
        self.assertEqual(["get_versions", "get_versions", "claim_batch"],
                         [method for _, method, _, _ in client.sender.calls])


class CastTest(base.TestCase):

    def test_its_time_is_not_spent_on_the_release_of_the_service(self):
        """Else a cast while no service answers would not be queued."""
        client = api.PlacementAPI(transport_url="rabbit://host/")
        self.addCleanup(client.close)
        asked = []

        class Silent:
            def call(self, context, method, arguments, timeout):
                asked.append(timeout)
                raise exception.ServiceUnavailable(reason="silent")

            def close(self):
                pass

        client.sender, client.command_publisher = Silent(), mock.Mock()
        client.release_allocations(None, base.new_uuid(), cast=True, timeout=1)
        self.assertLessEqual(asked[0], 0.5)
        client.command_publisher.cast.assert_called_once()


class TransportTest(base.TestCase):
    """Which service a client can be made for."""

    def refused(self, *arguments, **how):
        return self.assertRaises(
            exception.InvalidInput, api.PlacementAPI, *arguments, **how).text

    def test_a_bus_of_another_kind_is_refused_by_name(self):
        for kind in ("kafka", "amqp", "amqp1", "fake"):
            text = self.refused(transport_url=f"{kind}://host/")
            self.assertIn("transport_url", text)
            self.assertIn(repr(kind), text)

    def test_an_embedded_service_is_not_called_by_its_url(self):
        self.assertIn("'local'", self.refused(transport_url="inprocess://name/"))

    def test_the_local_transport_needs_a_manager(self):
        self.assertRaises(ValueError, api.PlacementAPI, "local")

    def test_a_pin_that_is_not_a_release(self):
        self.assertIn("newton", self.refused("local", manager=_Manager(), pin="0.9"))


class ErrorTest(base.TestCase):
    """What a client makes of a failure that a server sent."""

    def error_of(self, error):
        call = envelope.Call("claim_allocations", "1.2", {}, {}, "id", "reply")
        return senders.error_of(envelope.open_answer(envelope.seal_answer(call, error=error)))

    def test_errors_of_the_project_are_rebuilt(self):
        error = self.error_of(exception.NameInUse(name="node"))
        self.assertEqual((exception.NameInUse, {"name": "node"}), (type(error), error.kwargs))

    def test_errors_that_this_client_does_not_know_end_the_call(self):
        for error, words in (
                (rpc_dispatcher.NoSuchMethod("fly"), "fly"),
                (rpc_dispatcher.UnsupportedVersion("9.0", "fly"), "9.0"),
                (KeyError("of a defect"), "KeyError"),
                (_ForeignError("of a library"), "_ForeignError: of a library")):
            found = self.error_of(error)
            self.assertIsInstance(found, exception.UnsupportedCall)
            self.assertFalse(found.retryable)
            self.assertIn(words, found.text)

    def test_a_refusal_of_one_copy_says_nothing_of_the_others(self):
        conf = configuration.new_config()
        sender = senders.RabbitSender(conf, Broker.of(conf, "rabbit://ada:secret@127.0.0.1:1/"))
        self.addCleanup(sender.close)
        call = envelope.Call("claim_allocations", "1.2", {}, {}, "id", "reply")
        for error in (exception.StoreBusy(method="claim", attempts=1),
                      exception.StoreHeld(reason="an import"),
                      exception.RequestExpired(late=1.0)):
            for copies, expected in ((1, type(error)), (2, exception.ServiceUnavailable)):
                answer = envelope.open_answer(envelope.seal_answer(call, error=error))
                answer.copies = copies
                sender.connection.ask = lambda *_, answer=answer, **_kw: answer
                self.assertIs(expected, type(self.assertRaises(
                    exception.PlacementException, sender.call, RequestContext(),
                    "claim_allocations", {}, 1)))

    def test_an_overloaded_service_is_told_apart_from_one_that_is_away(self):
        """Clients of earlier releases take both for the same, and retry."""
        call = envelope.Call("ping", "1.0", {}, {}, "1", "queue")
        answer = envelope.open_answer(received.overloaded(call, "too many", 0.5))
        self.assertEqual("ServiceUnavailable", json.loads(answer.failure)["class"])
        error = senders.error_of(answer)
        self.assertEqual((exception.ServiceOverloaded, 0.5),
                         (type(error), error.kwargs["retry_after"]))
        self.assertIs(exception.ServiceUnavailable, type(self.error_of(
            exception.ServiceUnavailable(reason="away"))))


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
        self.assertRaises(exception.ServiceUnavailable, self.threads.run, lambda: 5, 0.1)
        self.blocked.set()
        base.wait_until(lambda: self.threads.idle)
        self.assertEqual(5, self.threads.run(lambda: 5, 1))

    def test_calls_beyond_the_limit_are_made_in_their_order(self):
        threads, begun, made, callers = DaemonPool(1), [], [], []
        self.addCleanup(threads.close)

        def make(number):
            begun.append(number)
            self.blocked.wait(20)
            made.append(number)

        for number in range(8):
            callers.append(threading.Thread(
                target=threads.run, args=(functools.partial(make, number), 30)))
            callers[-1].start()
            base.wait_until(lambda: begun and threads.waiting == number)  # noqa: B023
        self.blocked.set()
        for caller in callers:
            caller.join()
        self.assertEqual([*range(8)], made)

    def test_interrupted_callers_take_no_thread_along(self):
        """A signal's handler may raise an exception at any place of the calling thread."""
        class Interrupt(Exception):
            pass

        def interrupt(_number, _frame):
            nonlocal interrupts
            interrupts += 1
            raise Interrupt

        interrupts = 0
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        while interrupts < 500:
            before = interrupts
            # An interrupt within a callback of the garbage collector is lost.
            with contextlib.suppress(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + interrupts % 7 / 30_000)
                while interrupts == before:
                    self.threads.run(lambda: 5, 30)
        both = threading.Barrier(2, timeout=30)
        other = threading.Thread(target=self.threads.run, args=(both.wait, 30))
        other.start()
        self.threads.run(both.wait, 30)
        other.join()

    def test_a_closed_pool_ends_its_threads(self):
        before = psutil.Process().num_threads()
        for _ in range(20):
            threads, together = DaemonPool(4), threading.Barrier(4, timeout=30)
            callers = [threading.Thread(target=threads.run, args=(together.wait, 30))
                       for _ in range(4)]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()
            threads.close()
        base.wait_until(lambda: psutil.Process().num_threads() <= before)

    def test_a_call_that_comes_to_a_closed_pool_is_made(self):
        before = psutil.Process().num_threads()
        self.threads.run(lambda: 5, 30)
        caller = threading.Thread(
            target=self.threads.run, args=(lambda: self.blocked.wait(20), 30))
        caller.start()
        self.threads.close()
        self.assertEqual(6, self.threads.run(lambda: 6, 30))
        self.blocked.set()
        caller.join()
        base.wait_until(lambda: psutil.Process().num_threads() <= before)

    def test_threads_are_used_again(self):
        before = psutil.Process().num_threads()
        for _ in range(20):
            self.threads.run(lambda: 5, 5)
        self.assertLessEqual(psutil.Process().num_threads(), before + 2)
