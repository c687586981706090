# SPDX-License-Identifier: Apache-2.0
"""Casts: each is settled once, in order, or becomes a dead letter."""

import json
import threading

import amqp
import kombu

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.amqp import contents
from placement_rpc.rpc import command_queue
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.integration.command_case import AWAY, CommandTest


class CastTest(CommandTest):

    def test_a_cast_is_settled_and_its_outcome_can_be_read(self):
        consumer = base.new_uuid()
        request_id = self.cast(consumer=consumer, request_id="r1")
        self.assertEqual("r1", request_id)
        done = self.outcome(request_id)
        self.assertEqual(({self.uuid: 2}, 1), (done.generations, done.consumer_generation))
        request_id = self.api.release_allocations(None, consumer, cast=True)
        self.assertEqual(0, self.outcome(request_id).consumer_generation)
        self.assertEqual(0, self.used())

    def test_the_refusal_of_a_cast_can_be_read_and_is_an_event(self):
        request_id = self.cast({self.uuid: {"VCPU": 11}})
        self.assertRaises(exception.ClaimRefused, self.outcome, request_id)
        refused = base.wait_until(lambda: self.events("allocation.claim.refused"))
        self.assertEqual([request_id], [event.payload["request_id"] for event in refused])
        request_id = self.api.release_allocations(None, base.new_uuid(), cast=True)
        self.assertRaises(exception.ConsumerNotFound, self.outcome, request_id)

    def test_the_same_cast_again_is_done_once(self):
        consumer = base.new_uuid()
        for _ in range(5):
            self.cast(consumer=consumer, request_id="again")
        last = self.cast()
        self.outcome(last)
        base.wait_published(self.database)
        self.assertEqual((2, 2), (self.used(), len(self.events("allocation.create"))))

    def test_they_are_settled_in_the_order_in_which_they_were_sent(self):
        consumer, requests = base.new_uuid(), []
        for number in range(40):
            requests.append(self.cast({self.uuid: {"VCPU": 1 + number % 3}}, consumer))
            requests.append(self.api.release_allocations(None, consumer, cast=True))
        for request_id in requests:
            self.outcome(request_id)
        generations = [next(iter(self.outcome(request_id).generations.values()))
                       for request_id in requests]
        self.assertEqual(list(range(2, 82)), generations)

    def test_bad_input_is_an_error_at_once_and_nothing_is_sent(self):
        self.assertRaises(exception.InvalidInput, self.cast, {self.uuid: {"VCPU": 0}})
        claim = base.claim({self.uuid: {"VCPU": 1}})
        del claim.allocations
        self.assertRaises(exception.InvalidInput, self.api.claim_allocations, None, claim,
                          cast=True)
        self.assertRaises(exception.InvalidInput, self.cast, request_id="not an id")
        self.assertRaises(exception.InvalidInput, self.api.release_allocations, None, "x",
                          cast=True)

    def test_a_command_that_cannot_be_read_goes_to_the_dead_letters(self):
        good = json.loads(command_queue.sealed("1.0", "release_allocations", {
            "consumer_uuid": base.new_uuid(), "request_id": "r"}, {}))
        bad = ["", "nonsense", "[]", "[" * 100_000, json.dumps({"method": "claim_allocations"}),
               json.dumps({**good, "method": "delete_provider"}),
               json.dumps({**good, "method": ["x"]}),
               json.dumps({**good, "version": "2.0"}),
               json.dumps({**good, "args": {"unknown": 1}}),
               json.dumps({**good, "args": {**good["args"], "consumer_uuid": "x"}}),
               json.dumps({**good, "context": 5})]
        for body in bad:
            self.publish(body)
        self.outcome(self.cast())
        letters = self.wait_for_dead_letters(len(bad))
        self.assertEqual({body[:contents.EXCERPT] for body in bad},
                         {letter.body for letter in letters})
        self.assertEqual({self.queue}, {letter.queue for letter in letters})
        self.assertEqual(len(bad), self.log.output.count("A command goes to the dead letters"))
        self.assertEqual(len(bad), len({letter.id for letter in letters}))

    def test_compressed_ones_are_settled(self):
        for number, name in enumerate(("gzip", "bzip2")):
            self.publish(command_queue.sealed("1.0", "release_allocations", {
                "consumer_uuid": base.new_uuid(), "request_id": f"r{number}"}, {}),
                compression=name)
            self.assertRaises(exception.ConsumerNotFound, self.outcome, f"r{number}")

    def test_what_is_too_large_is_not_sent_and_a_dead_letter_if_it_comes(self):
        many = {base.new_uuid(): {f"CUSTOM_{'X' * 200}": 1} for _ in range(30_000)}
        self.assertRaises(exception.MessageTooLarge, self.cast, many)
        self.publish("[" + "[]," * 200_000 + "[]]")
        self.publish(bytes(10 ** 8), compression="bzip2")
        self.outcome(self.cast())
        for letter in self.wait_for_dead_letters(2):
            self.assertIn("placement.input.too_large", letter.reason)

    def test_a_message_that_cannot_be_decoded_does_not_delay_others(self):
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            for encoding in ("unicode_escape", "utf-16", "no such"):
                connection.channel().basic_publish(amqp.Message(
                    b"\\ud800", content_type="application/json", content_encoding=encoding),
                    routing_key=self.queue)
        self.outcome(self.cast())
        self.assertEqual({"\\ud800"}, {letter.body for letter in self.wait_for_dead_letters(3)})

    def test_a_command_has_no_deadline(self):
        self.publish(command_queue.sealed("1.0", "release_allocations", {
            "consumer_uuid": base.new_uuid(), "request_id": "late"}, {"deadline": 5}))
        self.assertRaises(exception.ConsumerNotFound, self.outcome, "late")

    def test_a_command_for_which_the_store_is_always_busy_does_not_delay_others(self):
        poison = base.new_uuid()

        def collide(settle, database, pending, method):
            if any(poison in each.consumers for each in pending):
                raise exception.StoreBusy(method="claim", attempts=10)
            return settle(database, pending, method)

        self.replace_settle(collide)
        bad = self.cast(consumer=poison)
        self.outcome(self.cast())
        letter, = self.wait_for_dead_letters()
        self.assertEqual(bad, letter.id)

    def test_a_cast_to_a_queue_of_another_kind_says_so(self):
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_declare(
                "other_commands", durable=True, auto_delete=False,
                arguments={"x-queue-type": "quorum", "x-max-length": 7})
        client = placement_fixtures.api.PlacementAPI(conf=self.running.conf, topic="other")
        self.addCleanup(client.close)
        # The queue is declared by the first cast that is in time for it: the broker may be slow.
        base.wait_until(lambda: "of another kind" in str(self.assertRaises(
            exception.DeadlineExceeded, client.release_allocations, None, base.new_uuid(),
            timeout=3, cast=True)), 60)

    def test_another_request_under_the_same_id_goes_to_the_dead_letters(self):
        self.outcome(self.cast(request_id="mine"))
        self.cast({self.uuid: {"VCPU": 2}}, request_id="mine")
        letter, = self.wait_for_dead_letters()
        self.assertIn("placement.request.id_reused", letter.reason)
        self.assertEqual(("mine", 1), (letter.id, self.used()))

    def test_a_command_that_always_fails_goes_to_the_dead_letters_and_others_are_settled(self):
        poison = base.new_uuid()

        def fail(settle, database, pending, method):
            if any(poison in each.consumers for each in pending):
                raise RuntimeError("a defect")
            return settle(database, pending, method)

        repair = self.replace_settle(fail)
        requests = [self.cast() for _ in range(3)]
        bad = self.cast(consumer=poison)
        requests += [self.cast() for _ in range(3)]
        for request_id in requests:
            self.outcome(request_id)
        letter, = self.wait_for_dead_letters()
        self.assertEqual(bad, letter.id)
        self.assertIn("a defect", letter.reason)
        # After the cause is repaired, an operator replays it.
        repair()
        letters = self.dead_letters()
        done, left = letters.replay(lambda each: True)
        self.assertEqual(([bad], []), ([each.id for each in done], left))
        self.outcome(bad)
        self.assertEqual([], letters.all())

    def test_stops_of_processes_do_not_count_as_attempts(self):
        self.stop_commands()
        repair = self.replace_settle(
            lambda _settle, _database, pending, method: [batch.blocked(method) for _ in pending])
        request_id = self.cast()
        # One that was delivered before is tried on its own, and its attempts are counted.
        for _ in range(self.running.conf.queues.commands_attempts + 2):
            tried = self.log.output.count(AWAY)
            commands = self.start_commands()
            base.wait_until(lambda: self.log.output.count(AWAY) > tried)  # noqa: B023
            self.stop_commands(commands)
        repair()
        self.start_commands()
        self.outcome(request_id)
        self.assertEqual([], self.dead_letters().all())

    def test_a_dead_letter_of_a_batch_that_goes_back_to_the_queue_is_one(self):
        self.stop_commands()
        repair = self.replace_settle(
            lambda _settle, _database, pending, method: [batch.blocked(method) for _ in pending])
        self.publish(b"not a command")
        request_id = self.cast()
        commands = self.start_commands()
        base.wait_until(lambda: AWAY in self.log.output)
        self.stop_commands(commands)
        repair()
        self.start_commands()
        self.outcome(request_id)
        self.wait_for_dead_letters(1)

    def test_a_part_of_a_batch_that_the_store_does_not_accept_goes_back_to_the_queue(self):
        held = base.new_uuid()

        def hold(settle, database, pending, method):
            return [batch.Outcome(error=exception.StoreHeld(reason="an import"))
                    if held in each.consumers else settle(database, [each], method)[0]
                    for each in pending]

        self.stop_commands()
        repair = self.replace_settle(hold)
        requests = [self.cast(consumer=each) for each in (base.new_uuid(), held)]
        self.start_commands()
        base.wait_until(lambda: "Commands wait in their queue" in self.log.output)
        repair()
        for request_id in requests:
            self.outcome(request_id)
        self.assertEqual(2, self.used())
        self.assertEqual([], self.dead_letters().all())

    def test_many_at_once(self):
        self.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 10_000)])
        requests = []

        def cast():
            for _ in range(50):
                requests.append(self.cast())

        threads = [threading.Thread(target=cast) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for request_id in requests:
            self.outcome(request_id)
        self.assertEqual(200, self.used())

    def test_a_full_queue_refuses_and_drops_nothing(self):
        self.stop_commands()
        with kombu.Connection(self.broker.url.replace("rabbit:", "amqp:")) as connection:
            connection.channel().queue_delete(self.queue)
        self.running.conf.set_override("commands_max_length", 5, group="queues")
        sent = []
        for _ in range(30):
            try:
                sent.append(self.cast(timeout=5))
            except exception.DeadlineExceeded as error:
                # The last try may be one that the broker had no time to answer.
                if "refused" in str(error):
                    break
        else:
            self.fail("nothing was refused")
        self.start_commands()
        for request_id in sent:
            self.outcome(request_id)
