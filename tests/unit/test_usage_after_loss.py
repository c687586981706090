# SPDX-License-Identifier: Apache-2.0
"""Resource-hours after the store has lost changes, or was restored from a backup."""

import itertools

import fixtures
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import base
from tests.usage_story import VCPU, Story, add_up, held, hours


class AfterLossTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.story = Story()

    def test_what_the_store_has_lost_is_taken_back(self):
        """Two claims are lost in the hour 3; one consumer claims again before that is said."""
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(2, "a", {VCPU: 5})
        self.story.hold(2, "b", {VCPU: 7})
        self.story.epoch = "second"
        self.story.held = {"a": ({VCPU: 1}, ("project", "user"))}
        self.story.hold(4, "b", {VCPU: 2})
        self.assertFalse(self.story.account(0, 10).complete)
        self.story.reconcile(5, "ab", self.story.events[1:3])
        self.story.hold(6, "a", {})
        account = self.story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 2}, held(account))
        # a: 1 for an hour, 5 for three, 1 for one; b: 7 for two, 2 for six.
        self.assertEqual({("project", "VCPU", "node"): 1 + 15 + 1 + 14 + 12}, hours(account))

    def test_a_lost_deletion_that_is_taken_back_after_the_period(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(4, "a", {})
        self.story.epoch = "second"
        self.story.held = {"a": ({VCPU: 1}, ("project", "user"))}
        self.story.reconcile(11, "a", self.story.events[1:])
        self.story.hold(12, "a", {})
        account = self.story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 3}, hours(account))

    def test_events_that_are_published_again_count_once(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(4, "a", {})
        self.story.epoch = "second"
        for event in list(self.story.events):
            self.story.publish_again(event)
        self.story.reconcile(5, "a")
        account = self.story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 3}, hours(account))

    def test_more_events_than_are_remembered_may_be_published_again(self):
        self.useFixture(fixtures.MonkeyPatch("placement_rpc.notifications.usage._REMEMBERED", 2))
        for hour, consumer in enumerate("abcd"):
            self.story.hold(hour, consumer, {VCPU: 1})
        self.story.epoch = "second"
        self.story.hold(5, "e", {VCPU: 1})
        self.assertTrue(self.story.account(0, 10).complete)
        self.story.publish_again(self.story.events[1])
        self.assertFalse(self.story.account(0, 10).complete)

    def test_a_lost_deletion_and_a_change_before_that_is_said(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.hold(2, "a", {})
        self.story.epoch = "second"
        self.story.held = {"a": ({VCPU: 1}, ("project", "user"))}
        self.story.hold(4, "a", {VCPU: 2})
        self.assertFalse(self.story.account(0, 10).complete)
        self.story.reconcile(5, "a", self.story.events[1:2])
        account = self.story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "VCPU", "node"): 1 + 2 * 6}, hours(account))

    def test_renamings_that_are_lost_are_taken_back(self):
        self.story.hold(1, "a", {("node", "CUSTOM_A"): 1})
        kept = dict(self.story.held)
        self.story.rename(2, "CUSTOM_A", "CUSTOM_B")
        self.story.rename(3, "CUSTOM_B", "CUSTOM_C")
        self.story.epoch, self.story.held = "second", kept
        lost = self.story.events[1:]
        classes = {"CUSTOM_A": True, "CUSTOM_B": False, "CUSTOM_C": False}
        self.story.reconcile(4, (), lost[:1], part=1, parts=2)
        self.story.reconcile(4, (), lost[1:], classes, part=2, parts=2)
        self.story.hold(8, "a", {})
        account = self.story.account(0, 10)
        self.assertTrue(account.complete)
        self.assertEqual({("project", "CUSTOM_A", "node"): 1 + 4,
                          ("project", "CUSTOM_B", "node"): 1,
                          ("project", "CUSTOM_C", "node"): 1}, hours(account))

    def test_a_lost_renaming_to_a_name_that_another_class_has(self):
        self.story.hold(1, "a", {("node", "CUSTOM_A"): 1})
        self.story.rename(2, "CUSTOM_A", "CUSTOM_B")
        self.story.epoch = "second"
        self.story.reconcile(4, (), self.story.events[1:], {"CUSTOM_A": True, "CUSTOM_B": True})
        self.assertFalse(self.story.account(0, 10).complete)

    def test_another_epoch_alone_does_not_explain_another_past(self):
        self.story.hold(1, "a", {VCPU: 1})
        self.story.epoch = "second"
        self.story.held = {}
        self.story.hold(2, "a", {VCPU: 1})
        self.assertFalse(self.story.account(0, 10).complete)

    @settings(max_examples=base.examples(150), deadline=None)
    @given(st.lists(st.tuples(
        st.integers(0, 5), st.sampled_from("abc"),
        st.dictionaries(st.tuples(st.just("n1"), st.sampled_from(["X", "Y"])),
                        st.integers(1, 9), max_size=2), st.sampled_from(["p1", "p2"])),
        max_size=20), st.tuples(*[st.integers(0, 5)] * 4), st.integers(0, 40), st.integers(1, 40))
    def test_what_was_published_counts_until_the_store_says_otherwise(
            self, steps, sizes, begin, length):
        """After some steps some have lost their positions, and others all; it is said later."""
        story, hour, expected, published = Story(), 0, {}, {}
        agreed, moved, lost, said = itertools.accumulate(sizes)
        marks, kept, gone = {}, {}, []
        steps += [(1, "d", {}, "")] * (said + 1 - len(steps))
        for number, (pause, consumer, amounts, project) in enumerate(steps):
            marks[number] = len(story.events)
            if number == moved:
                kept = dict(story.held)
            if number == lost:
                gone = story.events[marks[moved]:]
                again = story.events[marks[agreed]:marks[moved]]
                story.epoch, story.held = "second", kept
                for event in again:
                    story.publish_again(event)
                named = {each.payload["consumer_uuid"] for each in [*gone, *again]}
            if number == said:
                story.reconcile(hour, named, gone)
                published = {key: value for key, value in published.items() if key not in named}
                published |= {key: story.held[key] for key in named & set(story.held)}
            add_up(expected, published, hour, hour + pause, begin, begin + length)
            hour += pause
            if amounts or consumer in story.held:
                story.hold(hour, consumer, amounts, (project, "user"))
                published.pop(consumer, None)
                if amounts:
                    published[consumer] = story.held[consumer]
        add_up(expected, published, hour, begin + length, begin, begin + length)
        account = story.account(begin, begin + length)
        self.assertTrue(account.complete)
        self.assertEqual(expected, hours(account))
