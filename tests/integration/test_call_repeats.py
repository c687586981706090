# SPDX-License-Identifier: Apache-2.0
"""A call is sent again while its answer does not come, and takes effect once."""

import time

from placement_rpc import exception
from placement_rpc.amqp import consumer
from placement_rpc.amqp.broker import Broker
from placement_rpc.context import RequestContext
from placement_rpc.db import api as db
from placement_rpc.rpc.batch_server import BatchServer
from tests.counted_attempts import CountedHere
from tests.integration.conversation import ConversationTest, Speaker


class _BrokenAttempts:
    """Attempts of which one method fails at the first call."""

    def __init__(self, broken):
        self._broken = {broken}

    def _answer(self, name, value):
        if name in self._broken:
            self._broken.clear()
            raise RuntimeError(name)
        return value

    def id_of(self, message):
        return self._answer("id_of", "id")

    def begin(self, counted):
        return self._answer("begin", 1)

    def survived(self, counted):
        self._answer("survived", None)


class RepeatsTest(ConversationTest):
    """A call that another server took and does not answer is sent again."""

    def setUp(self):
        super().setUp()
        self.server.stop()
        self.server.wait()
        self.stop_in_the_middle()
        self.caller = self.make_caller(placement_client__repeat_after=0.1)

    def stop_in_the_middle(self):
        """Do what a stopped process does: take a message, and neither answer nor end."""
        connection = Broker.of(self.conf).connect()
        self.addCleanup(connection.drop)
        self.stopped = consumer.Consumer(connection)
        self.stopped.consume(self.topic, 1)

    def serve(self, attempts=None):
        server = BatchServer(
            self.conf, Broker.of(self.conf),
            Speaker(self.conf, db.Database(self.conf)), [self.topic], 8,
            attempts or CountedHere())
        server.begin()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        return server

    def ask(self, method="ping", context=None, timeout=30):
        """Make a call whose first copy is taken by the stopped process."""
        threads, answers = self.in_threads(lambda _: self.caller.call(
            context or RequestContext(), method, {}, timeout), None)
        ends = time.monotonic() + 30
        while not self.stopped.receive(0.1):
            self.assertLess(time.monotonic(), ends)
        self.serve()
        threads[0].join()
        return answers[0]

    def test_the_answer_to_the_second_copy_counts(self):
        began = time.monotonic()
        self.assertIn("pid", self.ask())
        self.assertLess(time.monotonic() - began, 20)

    def test_a_refusal_of_one_copy_says_nothing_of_the_others(self):
        late = RequestContext(deadline=time.time() - 1)
        error = self.ask(context=late)
        self.assertIsInstance(error, exception.ServiceUnavailable)
        # It is the answer if there is one copy only.
        self.stopped.end()
        self.assertRaises(exception.RequestExpired, self.make_caller().call, late, "ping", {}, 30)

    def test_a_call_that_the_contract_does_not_have_is_sent_once(self):
        error = self.ask("say", timeout=2)
        self.assertIsInstance(error, exception.ServiceUnavailable)
        self.assertIn("no answer", error.text)

    def test_a_call_whose_attempts_cannot_be_counted_is_answered(self):
        for attempts in (_BrokenAttempts("begin"), _BrokenAttempts("id_of"),
                         _BrokenAttempts("survived")):
            self.caller = self.make_caller(placement_client__repeat_after=1000.0)
            threads, answers = self.in_threads(lambda _: self.caller.call(
                RequestContext(), "ping", {}, 20), None)
            ends = time.monotonic() + 30
            while not self.stopped.receive(0.1):
                self.assertLess(time.monotonic(), ends)
            # It is delivered again, to a server.
            self.stopped.end()
            server = self.serve(attempts)
            threads[0].join()
            self.assertIn("pid", answers[0])
            server.stop()
            server.wait()
            self.stop_in_the_middle()

    def test_a_service_that_answers_no_call_in_time_gets_no_copies(self):
        connection = Broker.of(self.conf).connect()
        self.addCleanup(connection.drop)
        overloaded = consumer.Consumer(connection)
        overloaded.consume(self.topic, None)

        def call(_number):
            return self.caller.call(RequestContext(), "ping", {}, 1)

        threads, _ = self.in_threads(call, *range(20))
        for thread in threads:
            thread.join()
        while received := overloaded.receive(1):
            self.assertTrue(received)
        for _ in range(3):
            self.assertRaises(exception.ServiceUnavailable, call, None)
        received = overloaded.receive(1)
        self.assertEqual(3, len(received))
