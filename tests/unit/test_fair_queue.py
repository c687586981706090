# SPDX-License-Identifier: Apache-2.0
"""Calls are taken in turns among clients, and threads too."""

import itertools
import threading
import weakref

from placement_rpc.rpc import envelope, overload
from placement_rpc.rpc.fair_queue import FairQueue
from placement_rpc.rpc.turns import Turns
from tests import base


class _Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class _Name:
    """The name of a client."""


class _QueueTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.clock = _Clock()
        self.queue = FairQueue(64, self.clock)
        self.queues = [self.queue]

    def add(self, **calls):
        for client, count in calls.items():
            for number in range(count):
                self.queue.add(client, number)

    def answer(self, seconds, count):
        """Have calls answered, one after so many seconds."""
        for _ in range(count):
            client, _call = self.queue.take()
            self.clock.now += seconds
            self.queue.done(client)


class FairQueueTest(_QueueTest):

    def take(self, most=64):
        return list(itertools.islice(iter(self.queue.take, None), most))

    def taken(self, most=64):
        """Take calls and finish them; return how many each client had."""
        clients = [client for client, _ in self.take(most)]
        for client in clients:
            self.queue.done(client)
        return {client: clients.count(client) for client in clients}

    def test_a_client_that_is_alone_is_not_limited(self):
        self.add(alone=100)
        self.assertEqual({"alone": 100}, self.taken(1000))
        self.assertIsNone(self.queue.take())

    def test_calls_of_one_client_stay_in_order(self):
        self.add(one=5, other=5)
        calls = self.take()
        for client in ("one", "other"):
            self.assertEqual(list(range(5)), [number for name, number in calls if name == client])

    def test_one_call_of_each_client_is_taken_in_turn(self):
        self.add(many=50, few=2, one=1)
        self.assertEqual(["many", "few", "one", "many", "few", "many"],
                         [client for client, _ in self.take(6)])

    def test_a_client_occupies_its_share_while_others_call(self):
        self.add(many=100, **{f"good {number}": 1 for number in range(15)})
        found = self.taken()
        self.assertEqual((4, 15), (found.pop("many"), len(found)))
        self.add(many=100, other=1)
        # The others were answered just now.
        self.assertEqual({"many": 4, "other": 1}, self.taken())
        self.clock.now += 0.9
        self.assertEqual({"many": 4}, self.taken())
        self.clock.now += 0.2
        self.assertEqual({"many": 64}, self.taken())

    def test_the_only_client_with_calls_that_wait_has_a_part_of_its_share(self):
        self.queue = FairQueue(64, self.clock, part=2)
        self.add(many=100, **{f"good {number}": 1 for number in range(15)})
        self.assertEqual(2, self.taken()["many"])

    def test_clients_with_many_calls_have_their_whole_shares(self):
        for clients in range(5, 17):
            self.queue = FairQueue(64, self.clock, part=2)
            self.add(**{f"client {number}": 100 for number in range(clients)})
            self.assertEqual({64 // clients}, set(self.taken().values()))

    def test_the_share_of_one_of_two_clients(self):
        self.add(many=100, other=1)
        self.assertEqual({"many": 16, "other": 1}, self.taken())

    def test_a_client_has_a_share_however_many_others_there_are(self):
        self.queue = FairQueue(2, self.clock)
        self.add(many=100, **{f"good {number}": 1 for number in range(50)})
        self.assertEqual({"many": 1, "good 0": 1}, self.taken(2))
        for _ in range(24):
            self.assertEqual({1}, set(self.taken(2).values()))
        self.assertEqual({"good 49": 1, "many": 1}, self.taken(2))
        self.assertEqual({"many": 1}, self.taken(2))

    def test_a_client_at_its_share_gets_a_turn_when_one_of_its_calls_is_done(self):
        self.add(many=30, other=1)
        self.assertEqual(17, len(self.take()))
        self.assertFalse(self.queue.is_ready)
        self.queue.done("other")
        self.assertIsNone(self.queue.take())
        self.queue.done("many")
        self.assertEqual(("many", 16), self.queue.take())
        self.assertIsNone(self.queue.take())

    def test_a_call_that_waits_can_be_discarded(self):
        self.add(one=2, other=1)
        self.assertEqual(("one", 0), self.queue.take())
        self.assertFalse(self.queue.discard("one", 0))
        self.assertTrue(self.queue.discard("one", 1))
        self.assertTrue(self.queue.discard("other", 0))
        self.assertEqual((0, 0), (self.queue.waiting, self.queue.held("other")))
        self.assertIsNone(self.queue.take())
        self.add(other=1)
        self.assertEqual(("other", 0), self.queue.take())

    def test_nothing_is_kept_of_clients_that_are_gone(self):
        """Each of them makes one call at a time, as a program that is run once."""
        kept = weakref.WeakSet()
        for _ in range(1000):
            client = _Name()
            kept.add(client)
            self.queue.add(client, "call")
            self.queue.done(self.queue.take()[0])
            self.clock.now += 0.5
            self.assertLess(len(kept), 5)
        self.assertTrue(self.queue.has_others("last"))

    def test_a_client_that_is_alone_again_is_not_limited(self):
        self.add(other=1)
        self.answer(0.1, 1)
        self.add(many=100)
        self.assertTrue(self.queue.has_others("many"))
        self.clock.now += 1.1
        self.assertFalse(self.queue.has_others("many"))
        self.assertTrue(self.queue.has_others("other"))

    def test_the_wait_is_estimated_by_the_rate_of_answers(self):
        self.assertEqual(0.0, self.queue.wait("many"))
        self.add(many=600)
        self.answer(0.1, 500)
        self.assertAlmostEqual(0.1 * 101, self.queue.wait("many"), delta=0.1)
        # A client that has none waits for one call of each.
        self.assertAlmostEqual(0.1, self.queue.wait("new"), delta=0.01)
        # The time without calls does not count.
        self.answer(0.1, 100)
        self.clock.now += 1000
        self.add(many=10)
        self.answer(0.1, 1)
        self.assertAlmostEqual(1.0, self.queue.wait("many"), delta=0.1)


class OverloadTest(_QueueTest):

    def call(self, **context):
        return envelope.Call("ping", "1.3", {}, context, "id", "queue")

    def retry_after(self, client="many", limit=20, **context):
        return overload.retry_after(self.queue, client, self.call(**context), limit, self.queues)

    def test_a_client_is_its_queue_and_at_the_facade_a_user(self):
        self.assertEqual("queue", overload.client_of(self.call(project_id="blue")))
        self.assertEqual(("queue", "blue", None), overload.client_of(
            self.call(project_id="blue", user_id=["no text"], rule="placement:usages")))

    def test_too_many_calls_are_refused_while_others_call(self):
        self.add(many=20)
        self.assertIsNone(self.retry_after())
        self.add(good=3)
        self.assertGreater(self.retry_after(), 0)
        self.assertIsNone(self.retry_after(limit=21))
        self.assertIsNone(self.retry_after(limit=0))
        self.assertIsNone(self.retry_after("good"))
        self.assertIsNone(self.retry_after("new"))
        cast = envelope.Call("ping", "1.3", {}, {})
        self.assertIsNone(overload.retry_after(self.queue, "many", cast, 20, self.queues))

    def test_clients_with_calls_of_another_kind_count(self):
        self.add(many=20)
        self.assertIsNone(self.retry_after())
        self.queues.append(FairQueue(64, self.clock))
        self.assertIsNone(self.retry_after())
        self.queues[1].add("many", "call")
        self.assertIsNone(self.retry_after())
        self.queues[1].add("good", "call")
        self.assertIsNotNone(self.retry_after())

    def test_a_limit_of_one_holds(self):
        self.add(many=1, good=1)
        self.assertIsNotNone(self.retry_after(limit=1))
        self.assertIsNone(self.retry_after(limit=2))
        self.assertIsNone(self.retry_after("new", limit=1))
        # It is refused for no other reason.
        self.answer(10.0, 1)
        self.assertIsNone(self.retry_after(limit=2, deadline=overload.time.time()))

    def test_what_would_be_answered_late_is_refused_now(self):
        self.add(many=110)
        self.answer(0.1, 100)
        self.add(many=90)
        soon = overload.time.time() + 2
        self.assertEqual(5.0, self.retry_after(limit=1000, deadline=soon))
        self.assertIsNone(self.retry_after(limit=1000, deadline=soon + 60))
        self.assertIsNone(self.retry_after(limit=1000, deadline="soon"))
        self.assertIsNone(self.retry_after("good", limit=1000, deadline=soon))


class TurnsTest(base.TestCase):

    def test_the_threads_of_one_client_are_its_share(self):
        turns, go_on = Turns(8, "turns"), threading.Event()
        self.addCleanup(turns.shutdown, True)
        self.addCleanup(go_on.set)
        began, ended = threading.Semaphore(0), threading.Semaphore(0)

        def wait():
            began.release()
            go_on.wait(30)
            ended.release()

        turns.submit("good", wait)
        self.assertTrue(began.acquire(timeout=30))
        for _ in range(20):
            turns.submit("many", wait)
        for _ in range(2):
            self.assertTrue(began.acquire(timeout=30))
        # All that others ask for is done while the rest of these waits.
        for number in range(100):
            turns.submit(f"good {number}", ended.release)
            self.assertTrue(ended.acquire(timeout=30))
        self.assertFalse(began.acquire(blocking=False))
        self.assertEqual(20, turns.queue.held("many"))
        go_on.set()
        for _ in range(21):
            self.assertTrue(ended.acquire(timeout=30))

    def test_a_client_that_is_alone_has_all_threads(self):
        turns, barrier = Turns(8, "turns"), threading.Barrier(9)
        self.addCleanup(turns.shutdown, True)
        for _ in range(16):
            turns.submit("alone", barrier.wait, 30)
        for _ in range(2):
            barrier.wait(30)

    def test_a_failure_ends_no_thread(self):
        turns, done = Turns(1, "turns"), threading.Event()
        self.addCleanup(turns.shutdown, True)
        turns.submit("one", int, "x")
        turns.submit("one", done.set)
        self.assertTrue(done.wait(30))
        self.assertIn("ValueError", self.log.output)
