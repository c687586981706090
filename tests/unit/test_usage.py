# SPDX-License-Identifier: Apache-2.0
"""Resource-hours from events alone."""

import decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.notifications.usage import UsageAccount
from tests import base
from tests.usage_story import DISK, VCPU, Story, add_up, at, held, hours


class UsageTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.story = Story()

    def test_amount_times_hours(self):
        self.story.hold(1, "a", {VCPU: 4})
        self.story.hold(3, "a", {})
        account = self.story.account(0, 24)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 8}, hours(account))
        self.assertEqual({}, held(account))

    def test_only_what_is_within_the_time_counts(self):
        self.story.hold(1, "a", {VCPU: 4})
        self.story.hold(3, "a", {VCPU: 2})
        self.story.hold(9, "a", {})
        account = self.story.account(2, 5)
        self.assertEqual({("project", "VCPU", "node"): 4 + 2 * 2}, hours(account))
        self.assertEqual({("project", "VCPU", "node"): 2}, held(account))
        self.assertEqual({}, hours(self.story.account(10, 12)))

    def test_what_is_still_held_counts_until_the_end(self):
        self.story.hold(1, "a", {VCPU: 1, DISK: 50})
        self.assertEqual({("project", "VCPU", "node"): 9, ("project", "DISK_GB", "node"): 450},
                         hours(self.story.account(0, 10)))

    def test_a_fraction_of_an_hour_is_exact(self):
        self.story.hold(0, "a", {VCPU: 3})
        self.story.hold(1 / 3600 / 1000, "a", {})
        self.assertEqual({("project", "VCPU", "node"): decimal.Decimal(3) / 3_600_000},
                         hours(self.story.account(0, 1)))

    def test_a_change_of_owner_splits_it(self):
        self.story.hold(1, "a", {VCPU: 1}, ("one", "user"))
        self.story.hold(4, "a", {VCPU: 1}, ("two", "user"))
        self.assertEqual({("one", "VCPU", "node"): 3, ("two", "VCPU", "node"): 6},
                         hours(self.story.account(0, 10)))

    def test_a_class_that_was_renamed_is_billed_by_the_name_it_had(self):
        self.story.hold(1, "a", {("node", "CUSTOM_OLD"): 1})
        self.story.add("resource_class.update", 3, name="CUSTOM_NEW", previous_name="CUSTOM_OLD")
        self.story.add("resource_class.update", 30, name="CUSTOM_LATE",
                       previous_name="CUSTOM_NEW")
        self.assertEqual({("project", "CUSTOM_OLD", "node"): 2,
                          ("project", "CUSTOM_NEW", "node"): 7},
                         hours(self.story.account(0, 10)))

    def test_a_claim_that_names_a_class_as_it_was_before(self):
        """It was under way while the class was renamed, here twice."""
        self.story.rename(2, "CUSTOM_OLD", "CUSTOM_LATER")
        self.story.rename(2, "CUSTOM_LATER", "CUSTOM_NEW")
        self.story.hold(2, "a", {("node", "CUSTOM_OLD"): 3})
        self.story.held["a"] = {("node", "CUSTOM_NEW"): 3}, ("project", "user")
        self.story.hold(4, "a", {})
        account = self.story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "CUSTOM_NEW", "node"): 6}, hours(account))

    def test_a_name_that_another_class_has_now_means_that_class(self):
        story = Story()
        story.hold(0, "old", {("node", "A"): 10})
        story.rename(2, "A", "B")
        story.add("resource_class.create", 3, name="A", previous_name=None)
        story.add("resource_class.create", 3, name="C", previous_name=None)
        story.hold(4, "new", {("node", "A"): 100, ("node", "C"): 1})
        story.hold(4, "both", {
            ("node", "A"): 1000, ("node", "B"): 3, ("node", "C"): 1}, ("x", "y"))
        story.rename(6, "C", "D")
        story.hold(8, "new", {("node", "A"): 100, ("node", "D"): 2})
        account = story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({
            ("project", "A", "node"): 20 + 600, ("project", "B", "node"): 80,
            ("project", "C", "node"): 2, ("project", "D", "node"): 2 + 4,
            ("x", "A", "node"): 6000, ("x", "B", "node"): 18, ("x", "C", "node"): 2,
            ("x", "D", "node"): 4}, hours(account))

    def test_a_claim_that_read_the_old_name_is_no_other_past(self):
        self.story.add("resource_class.update", 1, name="CUSTOM_NEW", previous_name="CUSTOM_OLD")
        self.story.hold(2, "a", {("node", "CUSTOM_OLD"): 1})
        self.story.held["a"] = {("node", "CUSTOM_NEW"): 1}, ("project", "user")
        self.story.hold(4, "a", {})
        self.assertTrue(self.story.account(0, 10).complete)

    def test_events_of_another_past_make_it_incomplete(self):
        """A store that was restored from a backup continues from the backup."""
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(2, "a", {VCPU: 2})
        self.assertTrue(self.story.account(0, 9).complete)
        self.story.held["a"] = {VCPU: 1}, ("project", "user")
        self.story.hold(3, "a", {VCPU: 4})
        account = self.story.account(0, 9)
        self.assertFalse(account.complete)
        self.assertTrue(account.hopeless)
        self.assertEqual({("project", "VCPU", "node"): 4}, held(account))

    def test_without_the_beginning_it_is_not_complete(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(2, "b", {VCPU: 1})
        self.assertFalse(self.story.account(3, 4, first=2).complete)

    def test_a_gap_makes_it_incomplete(self):
        for hour in range(3):
            self.story.hold(hour, f"consumer {hour}", {VCPU: 1})
        del self.story.events[1]
        self.assertFalse(self.story.account(0, 9).complete)

    def test_a_gap_after_the_period_changes_nothing(self):
        story = Story()
        story.hold(0, "c", {("node", "VCPU"): 2})
        story.hold(11, "other", {("node", "VCPU"): 1})
        story.hold(12, "c", {})
        story.hold(13, "other", {})
        account = UsageAccount(at(0), at(10))
        for event in story.events[0], story.events[1], story.events[3]:
            account.apply(event)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 20}, hours(account))

    def test_an_event_that_is_delivered_twice_counts_once(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(3, "a", {})
        account = self.story.account(0, 9)
        for event in self.story.events:
            account.apply(event)
        self.assertEqual({("project", "VCPU", "node"): 2}, hours(account))

    def test_from_a_snapshot(self):
        self.story.hold(1, "gone", {VCPU: 8})
        self.story.hold(1, "stays", {VCPU: 1})
        self.story.hold(2, "gone", {})
        begin = len(self.story.events) + 1
        self.story.snapshot(5)
        self.story.hold(7, "stays", {VCPU: 2})
        account = self.story.account(6, 10, first=begin)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 1 + 2 * 3}, hours(account))

    def test_what_happens_while_the_snapshot_is_taken(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(1, "b", {VCPU: 2})
        self.story.hold(1, "c", {VCPU: 4})
        begin = len(self.story.events) + 1
        self.story.snapshot_begin(2)
        self.story.exists(2, "a")
        self.story.hold(3, "b", {})
        self.story.hold(3, "a", {VCPU: 16})
        self.story.hold(3, "d", {VCPU: 8})
        self.story.exists(4, "c")
        self.story.snapshot_end(4, 2, 2)
        account = self.story.account(2, 10, first=begin)
        self.assertTrue(account.complete)
        self.assertEqual(
            {("project", "VCPU", "node"): 1 + 16 * 7 + 2 + 4 * 8 + 8 * 7}, hours(account))

    def test_an_incomplete_or_later_snapshot_is_ignored(self):
        self.story.hold(1, "a", {VCPU: 1})
        begin = len(self.story.events) + 1
        self.story.snapshot_begin(2)
        self.story.exists(2, "a")
        self.assertFalse(self.story.account(3, 9, first=begin).complete)
        self.story.snapshot_end(3, 2, 2)
        self.assertFalse(self.story.account(3, 9, first=begin).complete)
        self.story.snapshot(6)
        self.assertFalse(self.story.account(5, 9, first=begin).complete)
        self.assertTrue(self.story.account(6, 9, first=begin).complete)

    def test_a_snapshot_mends_a_gap_from_before_the_time(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(2, "a", {})
        self.story.hold(3, "b", {VCPU: 2})
        self.story.snapshot(4)
        del self.story.events[1]
        account = self.story.account(5, 7)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 4}, hours(account))

    def test_a_snapshot_after_the_end_tells_what_was_held(self):
        """A consumer without changes has its only event after the end of the period."""
        self.story.hold(1, "a", {VCPU: 3})
        begin = len(self.story.events) + 1
        self.story.snapshot_begin(2)
        self.story.exists(5, "a")
        self.story.hold(6, "a", {VCPU: 9})
        self.story.snapshot_end(6, 2, 1)
        account = self.story.account(3, 4, first=begin)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 3}, hours(account))
        self.assertEqual({("project", "VCPU", "node"): 3}, held(account))


class PropertyTest(base.TestCase):

    @settings(max_examples=base.examples(150), deadline=None)
    @given(st.lists(st.tuples(
        st.integers(0, 5), st.sampled_from("abcd"),
        st.dictionaries(st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from("XYZ")),
                        st.integers(1, 9), max_size=3),
        st.sampled_from(["p1", "p2"]), st.booleans()), max_size=25), st.integers(0, 25),
        st.integers(0, 60), st.integers(1, 40))
    def test_it_does_not_matter_where_one_begins(self, steps, snapshot_after, begin, length):
        """The sum hour by hour, the account from the first event, and the one from a snapshot."""
        story, hour, expected = Story(), 0, {}
        first = None
        names = {"X": "X", "Y": "Y", "Z": "Z"}
        for number, (pause, consumer, amounts, project, rename) in enumerate(steps):
            if number == snapshot_after:
                first = len(story.events) + 1, hour
                story.snapshot(hour)
            add_up(expected, story.held, hour, hour + pause, begin, begin + length)
            hour += pause
            if rename:
                # Another class gets the former name.
                names["Z"], names["X"] = names["X"], f"X{number}"
                story.rename(hour, names["Z"], names["X"])
                story.add("resource_class.create", hour, name=names["Z"], previous_name=None)
            amounts = {(provider, names[name]): amount
                       for (provider, name), amount in amounts.items()}
            if amounts or consumer in story.held:
                story.hold(hour, consumer, amounts, (project, "user"))
        add_up(expected, story.held, hour, begin + length, begin, begin + length)
        account = story.account(begin, begin + length)
        self.assertEqual(expected, hours(account))
        if first and first[1] <= begin:
            late = story.account(begin, begin + length, first=first[0])
            self.assertTrue(late.complete)
            self.assertEqual(account.lines(), late.lines())

    def test_an_invalid_period(self):
        begin, end = at(0), at(1)
        for wrong in ((end, begin), (begin.replace(tzinfo=None), end), (begin, "2026-11-01"),
                      (begin, None)):
            self.assertRaises(exception.InvalidInput, UsageAccount, *wrong)
