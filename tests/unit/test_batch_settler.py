# SPDX-License-Identifier: Apache-2.0
"""A batch that is settled in parts, since rows are locked, with a store that answers as told."""

from unittest import mock

from placement_rpc import exception
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.batch_settler import BatchSettler
from placement_rpc.accounting.idempotency import Request
from placement_rpc.db import api as db
from tests import base


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
