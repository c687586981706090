# SPDX-License-Identifier: Apache-2.0
"""How what a batch of claims writes is given to PostgreSQL."""

import datetime

from placement_rpc.db.queries import claims_at_once
from tests import base

_NONE = {"consumers": [], "allocations": [], "used": [], "generations": [], "events": [],
         "requests": []}


class ParametersTest(base.TestCase):

    def test_numbers_times_and_nothing(self):
        found = claims_at_once.parameters({
            **_NONE, "allocations": [(None, "a", 1, 2, 3), (7, "b", 4, 5, 6)],
            "events": [("e", "t", datetime.datetime(2026, 1, 2, 3, 4, 5, 6), "{}", "")]})
        self.assertEqual('{NULL,"7"}', found["allocations_consumer_id"])
        self.assertEqual('{"3","6"}', found["allocations_used"])
        self.assertEqual('{"2026-01-02 03:04:05.000006"}', found["events_occurred_at"])
        self.assertEqual("{}", found["used_id"])

    def test_one_empty_text_is_not_none(self):
        found = claims_at_once.parameters({
            **_NONE, "events": [("e", "t", datetime.datetime(2026, 1, 2), "{}", "")]})
        self.assertEqual(("\x1e", ""), (found["events_touched"], found["requests_outcome"]))

    def test_what_holds_the_separator_is_written_in_another_way(self):
        self.assertIsNone(claims_at_once.parameters(
            {**_NONE, "consumers": [("uuid", "pro\x1eject", "user", 1)]}))
