# SPDX-License-Identifier: Apache-2.0
"""A client's one connection: answers reach their callers."""

import contextlib
import os
import resource
import threading
import time

import amqp
import kombu
import psutil
from kombu import compression

from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.context import RequestContext
from placement_rpc.rpc import envelope, routing, senders
from tests import base, servers
from tests.integration.conversation import ConversationTest, Speaker


class AnswersTest(ConversationTest):

    def test_each_thread_gets_the_answers_to_its_own_calls(self):
        def talk(number):
            return [self.say(f"{number} {turn}", after=(number * turn) % 3 / 50)
                    for turn in range(20)]

        threads, answers = self.in_threads(talk, *range(8))
        for thread in threads:
            thread.join()
        self.assertEqual([[f"{number} {turn}" for turn in range(20)] for number in range(8)],
                         answers)

    def test_a_quick_call_does_not_wait_for_a_slow_one(self):
        threads, _ = self.in_threads(lambda text: self.say(text, after=5), "slow")
        self.assertEqual("quick", self.say("quick"))
        self.assertTrue(threads[0].is_alive())

    def test_large_answers_leave_threads_to_others(self):
        """32 of them stalled a ping for 1.6 s."""
        before = Speaker.tellers
        self.addCleanup(Speaker.may_end.clear)
        self.addCleanup(Speaker.may_end.set)
        threads, answers = self.in_threads(
            lambda _: len(self.caller.call(RequestContext(), "tell_all", {}, 60)), *range(12))
        base.wait_until(lambda: Speaker.tellers > before)
        # The server has eight threads.
        self.assertEqual(["quick"] * 20, [self.say("quick", 20) for _ in range(20)])
        self.assertLessEqual(Speaker.tellers, before + 2)
        Speaker.may_end.set()
        for thread in threads:
            thread.join()
        self.assertEqual([1000] * 12, answers)

    def test_errors_are_the_projects(self):
        error = self.assertRaises(exception.NameInUse, self.say, "no")
        self.assertEqual("no", error.kwargs["name"])
        self.assertRaises(exception.UnsupportedCall, self.caller.call, RequestContext(),
                          "no_such_call", {}, 20)

    def test_a_value_that_json_cannot_represent_is_refused_before_it_is_sent(self):
        self.assertRaises(exception.InvalidInput, self.say, object())

    def test_large_ones(self):
        text = "ä" * 500_000
        self.assertEqual(text, self.say(text))

    def test_what_is_too_large_is_not_sent(self):
        for text, unit in (("x" * 5_000_000, "bytes"), ([[]] * 200_000, "elements")):
            error = self.assertRaises(exception.MessageTooLarge, self.say, text)
            self.assertEqual(unit, error.kwargs["unit"])
        self.assertEqual("small", self.say("small"))

    def test_a_server_with_a_lower_limit_says_so(self):
        caller = self.make_caller(messages__max_request=10 ** 8,
                                  messages__max_request_elements=10 ** 6)
        for text in ("x" * 5_000_000, [[]] * 200_000):
            self.assertRaises(exception.MessageTooLarge, self.say, text, caller=caller)
        self.assertIn("not a call: ", self.log.output)
        self.assertEqual("small", self.say("small"))

    def test_an_answer_that_is_too_large(self):
        caller = self.make_caller(messages__max_answer=2 ** 16)
        error = self.assertRaises(exception.AnswerTooLarge, self.say, "x" * 2 ** 17, caller=caller)
        self.assertEqual(2 ** 16, error.kwargs["limit"])
        self.assertEqual("small", self.say("small", caller=caller))

    def test_compressed_ones(self):
        for name in ("gzip", "bz2"):
            caller = self.make_caller(oslo_messaging_rabbit__kombu_compression=name)
            self.assertEqual("squeeze" * 1000, self.say("squeeze" * 1000, caller=caller))

    def test_a_compression_that_is_not_accepted(self):
        caller = self.make_caller(oslo_messaging_rabbit__kombu_compression="lzma")
        # The properties say who sent it: nothing is decompressed for the answer.
        self.assertRaises(exception.InvalidInput, self.say, "x", caller=caller)
        self.assertIn("'application/x-lzma' is not accepted", self.log.output)
        self.assertEqual("next", self.say("next"))

    def test_a_compression_that_is_not_known(self):
        error = self.assertRaises(exception.InvalidInput, self.make_caller,
                                  oslo_messaging_rabbit__kombu_compression="brotli")
        self.assertIn("kombu_compression", error.text)

    def test_a_compressed_answer(self):
        self.say("so that there is a queue")
        reply_to = self.caller.connection.reply_to
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            answer = envelope.seal_answer(envelope.Call("say", "1.0", {}, {}, "?"), "squeeze")

            def answer_it(message_id):
                body, kind = compression.compress(answer.replace("?", message_id), "bzip2")
                connection.channel().basic_publish(amqp.Message(
                    body, application_headers={"compression": kind}), routing_key=reply_to)

            threads, answers = self.in_threads(lambda text: self.say(text, after=5), "slow")
            sent = base.wait_until(lambda: list(self.caller.connection._waiting))
            answer_it(sent[0])
            threads[0].join()
        self.assertEqual(["squeeze"], answers)

    def test_a_call_to_a_topic_without_a_server_fails_at_once(self):
        caller = senders.RabbitSender(self.conf, Broker.of(self.conf), "nowhere")
        self.addCleanup(caller.close)
        began = time.monotonic()
        error = self.assertRaises(exception.ServiceUnavailable, self.say, "hello", caller=caller)
        self.assertIn("no server consumes the topic nowhere", error.text)
        self.assertLess(time.monotonic() - began, 10)

    def test_an_answer_that_comes_too_late_is_dropped(self):
        error = self.assertRaises(
            exception.ServiceUnavailable, self.say, "late", timeout=0.5, after=2)
        self.assertIn("no answer within 0.5 s", error.text)
        base.wait_until(lambda: not self.server.busy)
        # Its answer comes after the late one.
        self.assertEqual("next", self.say("next"))
        self.assertEqual(0, self.caller.connection.waiting)

    def test_a_message_that_is_not_an_answer_is_dropped(self):
        self.say("first")
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            channel = connection.channel()
            for body in (b"", b"[]", b"5", b"\xff", b'{"oslo.message": 5}', b'{"ending": 1}',
                         b'{"ending": 1, "_msg_id": []}', b'{"ending": 1, "_msg_id": "x"}',
                         b'{"ending": 1, "_msg_id": {}}'):
                channel.basic_publish(amqp.Message(body, content_encoding="koi-9"),
                                      routing_key=self.caller.connection.reply_to)
        self.assertEqual("still there", self.say("still there"))
        self.assertNotIn("Calls: no connection", self.log.output)

    def test_a_failure_that_cannot_be_read_leaves_the_outcome_unknown(self):
        for failure in ("[]", "not json", '{"tb": 5}', '{"message": 5}', "5", '"x"'):
            error = self.assertRaises(
                ValueError, envelope.remote_error, envelope.Answer("id", None, failure),
                                      envelope.ALLOWED_REMOTE_MODULES)
            self.assertIn("no error", str(error))
            self.assertIsInstance(senders.error_of(envelope.Answer("id", None, failure)),
                                  exception.ServiceUnavailable)

    def test_a_message_that_no_library_reads_is_dead_lettered(self):
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            channel = connection.channel()
            for properties in ({"content_type": b"\xff\xfe"},
                               {"application_headers": {"x-delivery-count": "a"}}):
                channel.basic_publish(amqp.Message(b"{}", **properties), exchange=routing.EXCHANGE,
                                      routing_key=self.topic)
        self.assertEqual("next", self.until_answered("next"))
        # A message that was requeued would be delivered again before this one.
        self.assertEqual("after it", self.say("after it"))
        self.assertEqual(2, self.log.output.count("goes to the dead letters"))
        self.assertNotIn("no connection to the broker", self.log.output)

    def test_file_descriptors_of_any_number(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with contextlib.ExitStack() as stack:
            for _ in range(1100):
                stack.enter_context(open(os.devnull))
            caller = self.make_caller()
            self.assertEqual("high", self.say("high", caller=caller))
            caller.close()

    def test_calls_beyond_the_limit_wait(self):
        caller = self.make_caller(placement_client__max_concurrent_calls=2)
        threads, _ = self.in_threads(
            lambda text: self.say(text, caller=caller, after=30), "one", "two")
        base.wait_until(lambda: caller.connection.waiting == 2)
        error = self.assertRaises(
            exception.ServiceUnavailable, self.say, "three", 0.2, caller=caller)
        self.assertIn("all 2 calls", error.text)
        more, answers = self.in_threads(
            lambda text: self.say(text, caller=caller), *map(str, range(20)))
        self.speaker.go_on.set()
        for thread in (*threads, *more):
            thread.join()
        self.assertEqual([*map(str, range(20))], answers)

    def test_waiting_for_others_takes_the_calls_time_and_not_the_attempts(self):
        caller = self.make_caller(placement_client__max_concurrent_calls=1)
        threads, _ = self.in_threads(lambda text: self.say(text, caller=caller, after=30), "one")
        base.wait_until(lambda: caller.connection.waiting == 1)
        call = {"text": "two"}
        late, answers = self.in_threads(lambda seconds: caller.call(
            RequestContext(deadline=time.time() + seconds), "say", call, 5), 8, 90)
        late[0].join()
        self.assertIn("all 1 calls", answers[0].text)
        self.speaker.go_on.set()
        for thread in (*threads, *late):
            thread.join()
        self.assertEqual("two", answers[1])

    def test_calls_that_wait_for_others_learn_that_the_client_is_closed(self):
        caller = self.make_caller(placement_client__max_concurrent_calls=1)
        threads, first = self.in_threads(lambda text: self.say(text, caller=caller, after=30), "1")
        base.wait_until(lambda: caller.connection.waiting == 1)
        more, answers = self.in_threads(lambda text: self.say(text, caller=caller), *"23")
        base.wait_until(lambda: len(caller.connection.line) == 2)
        caller.close()
        for thread in (*threads, *more):
            thread.join()
        # It may not have been sent.
        self.assertIn(type(first[0]), (exception.ServiceUnavailable, exception.ClientClosed))
        self.assertEqual([exception.ClientClosed] * 2, [*map(type, answers)])

    def test_the_release_of_the_services_is_asked_for_at_once(self):
        """Calls that wait may need it."""
        caller = self.make_caller(placement_client__max_concurrent_calls=1)
        threads, _ = self.in_threads(lambda text: self.say(text, caller=caller, after=30), "one")
        base.wait_until(lambda: caller.connection.waiting == 1)
        # The server answers; it has no database.
        self.assertRaises(exception.RemoteFailure, caller.call, RequestContext(), "get_versions",
                          {}, 30)
        self.speaker.go_on.set()
        threads[0].join()

    def test_a_closed_client_leaves_no_thread_and_no_file_open(self):
        process = psutil.Process()
        self.say("first")
        before = process.num_fds(), threading.active_count()
        for _ in range(5):
            caller = senders.RabbitSender(self.conf, Broker.of(self.conf), self.topic)
            self.say("hello", caller=caller)
            caller.close()
            caller.close()
            self.assertRaises(exception.InvalidInput, self.say, "x", 1, caller=caller)
        unused = senders.RabbitSender(self.conf, Broker.of(self.conf), self.topic)
        unused.close()
        self.assertEqual(before, (process.num_fds(), threading.active_count()))

    def test_an_idle_client_stays_connected(self):
        caller = self.make_caller(oslo_messaging_rabbit__heartbeat_timeout_threshold=2)
        self.say("first", caller=caller)
        servers.wait_for_heartbeat_timeout(self.broker.url, 2)
        self.assertEqual("second", self.say("second", caller=caller))
        self.assertNotIn("Calls: no connection", self.log.output)
