# SPDX-License-Identifier: Apache-2.0
"""A batch that is settled in parts, since rows are locked, with a store that answers as told."""

from unittest import mock

from placement_rpc import exception
from placement_rpc.accounting import batch, blocked_requests
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.batch_settler import BatchSettler
from placement_rpc.accounting.idempotency import Request
from placement_rpc.db import api as db
from tests import base


class _OfConsumer(PendingRequest):
    """A request for a consumer."""

    def __init__(self, consumer):
        super().__init__(Request(base.new_uuid(), "claim", "fingerprint"))
        self._consumer = consumer

    def add_to_scope(self, scope):
        scope.consumers.add(self._consumer)


class PartsTest(base.TestCase):

    def settle(self, *answers, requests="ab"):
        """Settle requests; each transaction has one of the answers."""
        self.database = mock.Mock(write=mock.Mock(side_effect=answers))
        return BatchSettler().settle(self.database, [
            PendingRequest(Request(name, "claim", "fingerprint")) for name in requests])

    def test_what_one_part_has_done_is_told_when_the_other_one_fails(self):
        for error in (exception.StoreBusy(method="claim", attempts=9),
                      exception.StoreUnavailable(reason="away")):
            first, second = self.settle(
                db.Locked(), db.Locked(), [Outcome(result="done")], error)
            self.assertEqual("done", first.result)
            self.assertEqual((type(error), error.kwargs), (
                type(second.error), second.error.kwargs))

    def test_no_part_is_tried_after_the_store_was_found_away(self):
        done, *others = self.settle(
            db.Locked(), db.Locked(), db.Locked(), [Outcome(result="done")],
            exception.StoreUnavailable(reason="away"), requests="abcd")
        self.assertEqual("done", done.result)
        self.assertEqual([exception.StoreUnavailable] * 3, [type(each.error) for each in others])

    def test_when_the_first_part_fails_nothing_is_done(self):
        busy = exception.StoreBusy(method="claim", attempts=9)
        self.assertRaises(exception.StoreBusy, self.settle, db.Locked(), db.Locked(), busy)


class OrderTest(base.TestCase):
    """The requests of a consumer keep their order, in whatever parts a batch is settled."""

    def settle(self, parts, blocked):
        """Settle parts, each a text with a letter for each consumer.

        :param blocked: numbers of the requests that wait for a locked row
        :returns: the letters that were tried, and whether each outcome is a blocked one
        """
        tried, numbers = [], iter(range(100))

        def settle(part):
            tried.extend(each._consumer for each in part)
            return [batch.blocked("claim") if next(numbers) in blocked else Outcome(result="done")
                    for _ in part]

        outcomes = blocked_requests.settle_parts(
            ([_OfConsumer(letter) for letter in part] for part in parts), settle, "claim")
        return "".join(tried), [each.blocked for each in outcomes]

    def test_nothing_is_blocked(self):
        self.assertEqual(("aba", [False] * 3), self.settle(["ab", "a"], ()))

    def test_those_behind_a_blocked_one_are_not_tried(self):
        self.assertEqual(("abbc", [True, False, True, False, True, False]),
                         self.settle(["ab", "ab", "ac"], {0}))

    def test_a_part_of_which_all_come_behind_a_blocked_one(self):
        self.assertEqual(("a", [True] * 3), self.settle(["a", "aa"], {0}))
