# SPDX-License-Identifier: Apache-2.0
"""The check of histories, against histories that are right or wrong and against brute force."""

import itertools
import random
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import base
from tests.soak import linearizability
from tests.soak.history import ACCEPTED, REFUSED, UNKNOWN, Operation, Provider, Read

_CAPACITY = 4
PROVIDER = Provider("p", 0, {"VCPU": _CAPACITY})


def vcpus(amount):
    return {"VCPU": amount} if amount else {}


def write(start, end, consumer, amount, generation, **how):
    """A request that was accepted and made a generation."""
    return Operation("claim", ACCEPTED, start, end, {"p": {consumer: vcpus(amount)}},
                     {"p": generation}, **how)


def refused(start, end, consumer, amount):
    return Operation("claim", REFUSED, start, end, {"p": {consumer: vcpus(amount)}}, {})


def unknown(start, consumer, amount, **how):
    return Operation("claim", UNKNOWN, start, None, {"p": {consumer: vcpus(amount)}}, {}, **how)


def read(start, end, generation, used, held=None):
    return Operation("read", ACCEPTED, start, end, {}, {}, 1, {
        "p": Read(generation, {"VCPU": used}, held)})


def faults(*operations):
    return linearizability.check([PROVIDER], operations).faults


class CheckTest(base.TestCase):

    def assert_right(self, *operations):
        self.assertEqual([], faults(*operations))

    def assert_wrong(self, words, *operations):
        found = faults(*operations)
        self.assertIn(words, str(found[:1]))

    def test_the_order_is_that_of_the_generations(self):
        self.assert_right(
            write(0, 9, "a", 2, 2), write(1, 8, "b", 2, 1), read(2, 3, 1, 2),
            refused(4, 7, "c", 1), write(10, 11, "a", 0, 3), write(12, 13, "c", 2, 4),
            read(14, 15, 4, 4, {"b": vcpus(2), "c": vcpus(2)}))

    def test_a_lost_update(self):
        self.assert_wrong("two requests made generation 1",
                          write(0, 2, "a", 1, 1), write(1, 3, "b", 1, 1))
        self.assert_wrong("a wrong read", write(0, 1, "a", 1, 1), write(2, 3, "b", 1, 2),
                          read(4, 5, 2, 1, {"b": vcpus(1)}))

    def test_a_stale_read(self):
        self.assert_wrong("a stale read", write(0, 1, "a", 1, 1), read(2, 3, 0, 0))
        self.assert_wrong("between", write(0, 9, "a", 1, 1), read(1, 2, 1, 1),
                          read(3, 4, 0, 0))

    def test_an_answer_before_its_question(self):
        self.assert_wrong("between", read(0, 1, 1, 1), write(2, 3, "a", 1, 1))
        self.assert_wrong("between", write(0, 1, "a", 1, 2), write(2, 3, "b", 1, 1))

    def test_what_was_done_twice(self):
        self.assert_wrong("no request made generation 2", write(0, 1, "a", 1, 1),
                          read(2, 3, 2, 1, {"a": vcpus(1)}))

    def test_what_was_lost(self):
        self.assert_wrong("a stale read", write(0, 1, "a", 1, 1), read(2, 3, 0, 0, {}))

    def test_what_was_over_committed(self):
        self.assert_wrong("over-committed", write(0, 1, "a", 3, 1), write(2, 3, "b", 2, 2))

    def test_a_refusal_of_what_had_room(self):
        self.assert_wrong("refused although", write(0, 1, "a", 2, 1), refused(2, 3, "b", 2))
        self.assert_right(write(0, 1, "a", 2, 1), refused(2, 3, "a", 5), refused(4, 5, "b", 3))
        # Each could have been refused alone, but not in this order.
        self.assert_wrong("refused although", write(0, 9, "a", 4, 1), write(0, 9, "a", 1, 2),
                          refused(1, 2, "b", 1), write(0, 9, "b", 3, 3), write(0, 9, "a", 0, 4),
                          read(10, 11, 4, 3), refused(10, 11, "c", 1))

    def test_a_claim_that_does_not_grow_is_not_refused(self):
        self.assert_wrong("refused although", write(0, 1, "a", 4, 1), refused(2, 3, "a", 4))

    def test_an_unknown_outcome_fills_a_gap(self):
        after = write(5, 6, "b", 1, 2)
        self.assert_right(unknown(1, "a", 1), after, read(7, 8, 2, 2))
        self.assert_right(unknown(1, "a", 1), write(5, 6, "b", 1, 1), read(7, 8, 1, 1))
        self.assert_wrong("no request made generation 1", after)
        self.assert_wrong("no request made generation 1", unknown(7, "a", 1), after)
        self.assert_wrong("a wrong read", unknown(1, "a", 2), after, read(7, 8, 2, 2))

    def test_unknown_outcomes_in_any_order(self):
        three = [unknown(number, consumer, amount)
                 for number, (consumer, amount) in enumerate((("a", 3), ("b", 2), ("c", 1)))]
        self.assert_right(*three, read(8, 9, 1, 2), read(8, 9, 2, 3))
        result = linearizability.check([PROVIDER], [*three, read(8, 9, 2, 3)])
        self.assertEqual(([], 2, {"p": {"b": vcpus(2), "c": vcpus(1)}}), result)

    def test_a_move_takes_two_steps(self):
        move = Operation("move", ACCEPTED, 2, 3, {"p": {"a": {}, "b": vcpus(3)}}, {"p": 3}, 2)
        self.assert_right(write(0, 1, "a", 3, 1), move, read(4, 5, 3, 3))
        self.assert_wrong("two requests", write(0, 1, "a", 3, 2), move)
        lost = move._replace(outcome=UNKNOWN, end=None, generations={})
        self.assert_right(write(0, 1, "a", 3, 1), lost, write(4, 5, "c", 1, 4))
        self.assert_wrong("no request", write(0, 1, "a", 3, 1), lost, write(4, 5, "c", 1, 3))

    def test_a_refusal_by_one_of_two(self):
        two = [PROVIDER, PROVIDER._replace(provider="q")]
        both = {"p": {"b": vcpus(1)}, "q": {"b": vcpus(1)}}
        turned_down = Operation("claim", REFUSED, 2, 3, both, {})
        full = write(0, 1, "a", 4, 1)
        self.assertEqual([], linearizability.check(two, [full, turned_down]).faults)
        self.assertIn("refused although all of it had room", str(
            linearizability.check(two, [turned_down]).faults))

    def test_two_providers_that_contradict_each_other(self):
        two = [PROVIDER, PROVIDER._replace(provider="q")]

        def both(consumer, p, q):
            return Operation("claim", ACCEPTED, 0, 9, {
                "p": {consumer: vcpus(1)}, "q": {consumer: vcpus(1)}}, {"p": p, "q": q})

        self.assertEqual([], linearizability.check(
            two, [both("a", 1, 1), both("b", 2, 2)]).faults)
        self.assertIn("contradict", str(linearizability.check(
            two, [both("a", 1, 2), both("b", 2, 1)]).faults))

    def test_many_operations(self):
        """A minute is enough for a million on an idle machine."""
        operations = simulated(random.Random(5), 20_000)
        began = time.process_time()
        self.assertEqual([], faults(*operations))
        self.assertLess(time.process_time() - began, 5)


def simulated(chance, number):
    """A right history: each request takes effect between its start and its end."""
    held, generation, operations, now = {}, 0, [], 0.0
    for _ in range(number):
        now += 1
        start, end = now - 5 * chance.random(), now + 5 * chance.random()
        used = sum(held.values())
        consumer, amount = chance.choice("abcdef"), chance.randint(0, 3)
        if chance.random() < 0.2:
            operations.append(read(start, end, generation, used))
        elif amount == held.get(consumer, 0):
            continue
        elif amount > held.get(consumer, 0) and (
                used - held.get(consumer, 0) + amount > _CAPACITY):
            operations.append(refused(start, end, consumer, amount))
        else:
            generation += 1
            held[consumer] = amount
            operations.append(write(start, end, consumer, amount, generation)
                              if chance.random() < 0.95 else unknown(start, consumer, amount))
    return operations


def brute_force(operations):
    """Whether some order of the operations is right, by trying all of them."""
    uncertain = [each for each in operations if each.outcome == UNKNOWN]
    return any(_is_right(order)
               for size in range(len(uncertain) + 1)
               for left_out in itertools.combinations(uncertain, size)
               for order in itertools.permutations(
                   [each for each in operations if not any(each is out for out in left_out)]))


def _is_right(order):
    held, generation = {}, 0
    for number, each in enumerate(order):
        if any(later.end is not None and later.end < each.start for later in order[number + 1:]):
            return False
        if each.reads:
            if each.reads["p"][:2] != (generation, vcpus(sum(held.values())) or {"VCPU": 0}):
                return False
            continue
        (consumer, amounts), = each.writes["p"].items()
        after = {**held, consumer: amounts.get("VCPU", 0)}
        fits = sum(after.values()) <= max(_CAPACITY, sum(held.values()))
        if fits == (each.outcome == REFUSED):
            return False
        if each.outcome != REFUSED:
            held, generation = after, generation + 1
            if each.outcome == ACCEPTED and each.generations["p"] != generation:
                return False
    return True


_times = st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda pair: (pair[0], sum(pair)))
_consumers, _amounts = st.sampled_from("ab"), st.integers(0, 5)
_operations = st.one_of(
    st.builds(lambda when, *what: write(*when, *what), _times, _consumers, _amounts,
              st.integers(1, 4)),
    st.builds(lambda when, *what: refused(*when, *what), _times, _consumers, _amounts),
    st.builds(lambda when, *what: unknown(when[0], *what), _times, _consumers, _amounts),
    st.builds(lambda when, *what: read(*when, *what), _times, st.integers(0, 3), _amounts))


class BruteForceTest(base.TestCase):

    @settings(max_examples=base.examples(300), deadline=None, database=None)
    @given(st.lists(_operations, max_size=5))
    @example([refused(0, 9, "a", 1), unknown(0, "b", 4)])
    @example([refused(0, 0, "a", 1), unknown(1, "b", 4)])
    def test_any_history(self, operations):
        self.assertEqual(brute_force(operations), not faults(*operations), operations)

    @settings(max_examples=base.examples(300), deadline=None, database=None)
    @given(st.integers(0, 2 ** 32), st.integers(0, 5), _operations)
    def test_a_right_history_with_one_other_operation(self, seed, place, other):
        operations = simulated(random.Random(seed), 6)
        self.assertEqual([], faults(*operations))
        operations[place:place + 1] = [other]
        self.assertEqual(brute_force(operations), not faults(*operations), operations)
