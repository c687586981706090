# SPDX-License-Identifier: Apache-2.0
"""Group commit: callers that arrive while a transaction runs share the next one."""

import threading
import traceback

from placement_rpc import exception
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.group_commit import GroupCommit
from placement_rpc.accounting.idempotency import Request
from tests import base

_SECONDS = 20


class _Pending(PendingRequest):
    weight = 1


def _pending(name):
    return _Pending(Request(str(name), "claim", "fingerprint"))


class _Store:
    """Settles batches, the first of them only when it may go on.

    ``errors`` maps a request id to the error of each batch that has the request.
    """

    def __init__(self):
        self.batches = []
        self.go = threading.Event()
        self.began = threading.Event()
        self.errors = {}

    def settle(self, _database, pending, _method):
        names = [each.request.request_id for each in pending]
        self.batches.append(names)
        self.began.set()
        self.go.wait(_SECONDS)
        for name in names:
            if name in self.errors:
                raise self.errors[name]
        return [Outcome(result=name) for name in names]


def _functions(error):
    """Return the names of the functions in the traceback of an error."""
    return [each.name for each in traceback.extract_tb(error.__traceback__)]


class GroupCommitTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.store = _Store()
        self.sizes = []
        self.group = GroupCommit(None, 8, self.store.settle, self.sizes.append)
        self.answers = {}

    def settle(self, *names):
        """Settle requests, and keep the results, or else the error that was raised."""
        try:
            self.answers[names] = [each.result or each.error for each in self.group.settle(
                [_pending(name) for name in names])]
        except (exception.PlacementException, SystemExit) as error:
            self.answers[names] = error

    def settle_together(self, *callers):
        """Have the first caller settle, the others arrive meanwhile, and wait for all of them."""
        threads = [threading.Thread(target=self.settle, args=names) for names in callers]
        threads[0].start()
        self.assertTrue(self.store.began.wait(_SECONDS))
        for number, thread in enumerate(threads[1:], 1):
            thread.start()
            self.wait_until_waiting(number)
        self.store.go.set()
        for thread in threads:
            thread.join(_SECONDS)
        self.assertEqual(set(callers), set(self.answers))

    def wait_until_waiting(self, count):
        base.wait_until(lambda: self.group.waiting >= count, _SECONDS,
                        lambda: f"{count} callers do not wait")

    def test_a_lone_request_is_settled_at_once(self):
        self.store.go.set()
        self.settle("a")
        self.assertEqual({("a",): ["a"]}, self.answers)
        self.assertEqual([["a"]], self.store.batches)

    def test_callers_that_arrive_meanwhile_share_the_next_transaction(self):
        self.settle_together(("a",), ("b",), ("c", "d"), ("e",))
        self.assertEqual([["a"], ["b", "c", "d", "e"]], self.store.batches)
        self.assertEqual(["c", "d"], self.answers["c", "d"])
        self.assertEqual(["e"], self.answers[("e",)])
        self.assertEqual([1, 4], self.sizes)

    def test_a_transaction_has_a_limit(self):
        callers = [(f"{number}",) for number in range(20)]
        self.settle_together(*callers)
        self.assertEqual([1, 8, 8, 3], [len(batch) for batch in self.store.batches])
        self.assertEqual({names: list(names) for names in callers}, self.answers)

    def test_more_than_the_limit_from_one_caller(self):
        self.store.go.set()
        names = [str(number) for number in range(19)]
        self.settle(*names)
        self.assertEqual([8, 8, 3], [len(batch) for batch in self.store.batches])
        self.assertEqual(names, self.answers[tuple(names)])

    def test_what_a_transaction_has_done_is_told_when_the_next_one_fails(self):
        self.store.go.set()
        self.store.errors["9"] = exception.StoreBusy(method="claim", attempts=3)
        names = [str(number) for number in range(19)]
        outcomes = self.group.settle([_pending(name) for name in names])
        self.assertEqual(names[:8], [each.result for each in outcomes[:8]])
        self.assertEqual([exception.StoreBusy] * 11, [type(each.error) for each in outcomes[8:]])
        self.assertEqual([8, 8], [len(batch) for batch in self.store.batches])

    def test_when_the_store_is_unavailable_each_caller_gets_an_error_of_its_own(self):
        self.store.errors["c"] = failure = exception.StoreUnavailable(reason="away")
        self.settle_together(("a",), ("b",), ("c",), ("d",))
        self.assertEqual(["a"], self.answers[("a",)])
        errors = [self.answers[(name,)] for name in "bcd"]
        for error in errors:
            self.assertIsInstance(error, exception.StoreUnavailable)
            self.assertEqual(failure.kwargs, error.kwargs)
            self.assertIs(failure, error.__cause__)
        self.assertEqual(3, len({id(error) for error in errors}))
        self.settle("e")
        self.assertEqual(["e"], self.answers[("e",)])

    def test_no_thread_changes_the_error_of_another(self):
        self.store.errors["c"] = failure = exception.StoreUnavailable(reason="away")
        failure.__cause__ = origin = OSError("the driver's")
        self.settle_together(("a",), *((name,) for name in "bcdefgh"))
        errors = [self.answers[(name,)] for name in "bcdefgh"]
        self.assertNotIn(failure, errors)
        # The cause has the traceback of the thread that led, and none of those that waited.
        self.assertNotIn("result", _functions(failure))
        for error in errors:
            self.assertEqual("result", _functions(error)[-1])
            self.assertIs(failure, error.__cause__)
            self.assertIs(origin, error.__cause__.__cause__)
            error.kwargs = {"reason": "changed by one thread"}
        self.assertEqual({"reason": "away"}, failure.kwargs)
        self.assertEqual(7, len({id(error.__traceback__) for error in errors}))

    def test_a_leader_that_is_ended_leaves_no_caller_waiting(self):
        self.store.errors["c"] = SystemExit()
        self.settle_together(("a",), ("b",), ("c",))
        self.assertEqual(["a"], self.answers[("a",)])
        # The caller that waited first led, and its thread was ended.
        self.assertIsInstance(self.answers[("b",)], SystemExit)
        # It may have been committed.
        self.assertIsInstance(self.answers[("c",)], exception.StoreUnavailable)
        self.settle("d")
        self.assertEqual(["d"], self.answers[("d",)])

    def test_a_leader_that_is_interrupted_before_its_transaction_leaves_no_caller_waiting(self):
        self.store.go.set()
        take = self.group._take_batch
        for has_taken, expected in ((False, ["b"]), (True, exception.StoreUnavailable)):
            def interrupt(taken, has_taken=has_taken):
                self.group._take_batch = take
                base.wait_until(lambda: self.group.waiting == 2)
                if has_taken:
                    take(taken)
                raise SystemExit

            self.group._take_batch = interrupt
            threads = [threading.Thread(target=self.settle, args=name) for name in "ab"]
            threads[0].start()
            base.wait_until(lambda: self.group.waiting)
            threads[1].start()
            for thread in threads:
                thread.join(_SECONDS)
            self.assertIsInstance(self.answers.pop(("a",)), SystemExit)
            answer = self.answers.pop(("b",))
            self.assertEqual(expected, answer if answer == ["b"] else type(answer))
            self.assertEqual(0, self.group.waiting)
            self.settle("c")
            self.assertEqual(["c"], self.answers.pop(("c",)))

    def test_a_request_that_the_store_fails_on_does_not_fail_the_others(self):
        self.store.errors["c"] = ZeroDivisionError("a defect")
        self.settle_together(("a",), ("b",), ("c",), ("d",))
        self.assertEqual(["b"], self.answers[("b",)])
        self.assertEqual(["d"], self.answers[("d",)])
        self.assertIsInstance(self.answers[("c",)][0], ZeroDivisionError)
