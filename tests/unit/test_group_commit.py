# SPDX-License-Identifier: Apache-2.0
"""Group commit: who comes while a transaction runs shares the next one."""

import threading

from placement_rpc import exception
from placement_rpc.accounting.batch import AllocationChange, Outcome
from placement_rpc.accounting.group_commit import GroupCommit
from placement_rpc.accounting.idempotency import Request
from tests import base


def _settlement(name):
    return AllocationChange(Request(str(name), "claim", "fingerprint"))


class _Store:
    """Settles batches, the first of them only when it is told to."""

    def __init__(self):
        self.batches = []
        self.go = threading.Event()
        self.began = threading.Event()
        self.error = None

    def settle(self, _database, settlements):
        names = [each.request.request_id for each in settlements]
        self.batches.append(names)
        self.began.set()
        self.go.wait(20)
        if self.error and self.error[0] in names:
            raise self.error[1]
        return [Outcome(result=name) for name in names]


class GroupCommitTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.store = _Store()
        self.group = GroupCommit(None, 8, self.store.settle)
        self.answers = {}

    def settle(self, *names):
        try:
            self.answers[names] = [each.result or each.error for each in self.group.settle(
                [_settlement(name) for name in names])]
        except exception.PlacementException as error:
            self.answers[names] = error

    def together(self, *tickets):
        """Let the first be under way, the others come meanwhile, and all end."""
        threads = [threading.Thread(target=self.settle, args=names) for names in tickets]
        threads[0].start()
        self.store.began.wait(20)
        for position, thread in enumerate(threads[1:], 1):
            thread.start()
            while len(self.group._waiting) < position:
                threading.Event().wait(0.001)
        self.store.go.set()
        for thread in threads:
            thread.join(20)

    def test_a_lone_claim_is_settled_at_once_in_its_own_thread(self):
        self.store.go.set()
        self.settle("a")
        self.assertEqual({("a",): ["a"]}, self.answers)
        self.assertEqual([["a"]], self.store.batches)

    def test_who_comes_meanwhile_shares_the_next_transaction(self):
        self.together(("a",), ("b",), ("c", "d"), ("e",))
        self.assertEqual([["a"], ["b", "c", "d", "e"]], self.store.batches)
        self.assertEqual(["c", "d"], self.answers["c", "d"])
        self.assertEqual(["e"], self.answers[("e",)])

    def test_a_transaction_has_a_limit_and_nobody_is_forgotten(self):
        self.together(*[(f"{number}",) for number in range(20)])
        self.assertEqual([1, 8, 8, 3], [len(batch) for batch in self.store.batches])
        self.assertEqual(20, len(self.answers))

    def test_more_than_the_limit_from_one_caller(self):
        self.store.go.set()
        names = [str(number) for number in range(19)]
        self.settle(*names)
        self.assertEqual([8, 8, 3], [len(batch) for batch in self.store.batches])
        self.assertEqual(names, self.answers[tuple(names)])

    def test_when_the_store_is_away_all_are_told_and_it_goes_on(self):
        self.store.error = ("c", exception.StoreUnavailable(reason="away"))
        self.together(("a",), ("b",), ("c",))
        self.assertEqual(["a"], self.answers[("a",)])
        for name in "bc":
            self.assertIsInstance(self.answers[(name,)], exception.StoreUnavailable)
        self.settle("d")
        self.assertEqual(["d"], self.answers[("d",)])

    def test_a_leader_that_is_ended_leaves_nobody_waiting(self):
        self.store.error = ("c", SystemExit())
        self.together(("a",), ("b",), ("c",))
        self.assertEqual(["a"], self.answers[("a",)])
        followers = [name for name in "bc" if (name,) in self.answers]
        for name in followers:
            self.assertIsInstance(self.answers[(name,)], exception.StoreBusy)
        self.settle("d")
        self.assertEqual(["d"], self.answers[("d",)])

    def test_one_that_the_store_chokes_on_does_not_take_the_others_along(self):
        self.store.error = ("c", ZeroDivisionError("a defect"))
        self.together(("a",), ("b",), ("c",), ("d",))
        self.assertEqual(["b"], self.answers[("b",)])
        self.assertEqual(["d"], self.answers[("d",)])
        self.assertIsInstance(self.answers[("c",)][0], ZeroDivisionError)
