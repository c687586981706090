# SPDX-License-Identifier: Apache-2.0
"""Resource-hours from events alone."""

import dataclasses
import datetime
import decimal
import itertools

import fixtures
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_rpc.notifications.event import Event
from placement_rpc.notifications.usage import UsageAccount
from tests import base

_DAY = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)


def at(hours):
    return _DAY + datetime.timedelta(hours=hours)


class Story:
    """Events of a made-up cloud, as they would be published."""

    def __init__(self):
        self.events = []
        self.held = {}
        self.epoch = "first"

    def add(self, event_type, hour, **payload):
        self.events.append(Event(
            f"event {len(self.events)}", event_type, len(self.events) + 1,
            at(hour).isoformat(), {**payload, "epoch": self.epoch}))

    def hold(self, hour, consumer, amounts, owner=("project", "user")):
        """A consumer holds these amounts of provider and class from now on."""
        before, previous = self.held.get(consumer, ({}, (None, None)))
        kind = "create" if not before else "update" if amounts else "delete"
        self._tell(f"allocation.{kind}", hour, consumer, before, amounts, previous, owner)
        self.held[consumer] = amounts, owner
        if not amounts:
            del self.held[consumer]

    def _tell(self, event_type, hour, consumer, before, after, previous, owner):
        providers = sorted({provider for provider, _ in [*before, *after]})
        self.add(event_type, hour, consumer_uuid=consumer, project_id=owner[0],
                 user_id=owner[1], previous_project_id=previous[0], previous_user_id=previous[1],
                 providers=[{
                     "provider_uuid": provider,
                     "before": {name: n for (uuid, name), n in before.items() if uuid == provider},
                     "after": {name: n for (uuid, name), n in after.items() if uuid == provider}}
                     for provider in providers])

    def publish_again(self, event):
        """An event has lost its position and gets another one."""
        self.events.append(dataclasses.replace(event, position=len(self.events) + 1, payload={
            **event.payload, "epoch": self.epoch}))

    def reconcile(self, hour, consumers, lost=(), classes=(), part=1, parts=1):
        """The store says what these consumers hold, and which of the classes it has."""
        found = []
        for consumer in sorted(consumers):
            amounts, owner = self.held.get(consumer, ({}, (None, None)))
            allocations = {}
            for (provider, name), amount in amounts.items():
                allocations.setdefault(provider, {})[name] = amount
            found.append({"consumer_uuid": consumer, "project_id": owner[0], "user_id": owner[1],
                          "allocations": allocations})
        self.add("outbox.reconciled", hour, consumers=found, part=part, parts=parts,
                 resource_classes=dict(classes), lost_events=[
                     {"event_id": each.event_id, "event_type": each.event_type} for each in lost])

    def rename(self, hour, old, new):
        self.add("resource_class.update", hour, name=new, previous_name=old)
        self.held = {consumer: (
            {(provider, new if name == old else name): amount
             for (provider, name), amount in amounts.items()}, owner)
            for consumer, (amounts, owner) in self.held.items()}

    def snapshot_begin(self, hour):
        self.add("allocation.snapshot.begin", hour, snapshot_id=f"s{hour}", consumers=0)

    def exists(self, hour, consumer):
        amounts, owner = self.held[consumer]
        self._tell("allocation.exists", hour, consumer, amounts, amounts, owner, owner)

    def snapshot_end(self, hour, begun, count):
        self.add("allocation.snapshot.end", hour, snapshot_id=f"s{begun}", consumers=count)

    def snapshot(self, hour):
        self.snapshot_begin(hour)
        for consumer in sorted(self.held):
            self.exists(hour, consumer)
        self.snapshot_end(hour, hour, len(self.held))

    def account(self, begin, end, first=1):
        account = UsageAccount(at(begin), at(end))
        for event in self.events[first - 1:]:
            account.apply(event)
        return account


def hours(account):
    return {(line.project_id, line.resource_class, line.provider_uuid): line.resource_hours
            for line in account.lines() if line.resource_hours}


def held(account):
    return {(line.project_id, line.resource_class, line.provider_uuid): line.held
            for line in account.lines() if line.held}


VCPU, DISK = ("node", "VCPU"), ("node", "DISK_GB")


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
        st.dictionaries(st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from(["X", "Y"])),
                        st.integers(1, 9), max_size=3),
        st.sampled_from(["p1", "p2"]), st.booleans()), max_size=25), st.integers(0, 25),
        st.integers(0, 60), st.integers(1, 40))
    def test_it_does_not_matter_where_one_begins(self, steps, snapshot_after, begin, length):
        """The sum hour by hour, the account from the first event, and the one from a snapshot."""
        story, hour, expected = Story(), 0, {}
        first = None
        names = {"X": "X", "Y": "Y"}
        for number, (pause, consumer, amounts, project, rename) in enumerate(steps):
            if number == snapshot_after:
                first = len(story.events) + 1, hour
                story.snapshot(hour)
            self.add_up(expected, story.held, hour, hour + pause, begin, begin + length)
            hour += pause
            if rename:
                old, names["X"] = names["X"], f"X{number}"
                story.rename(hour, old, names["X"])
            amounts = {(provider, names[name]): amount
                       for (provider, name), amount in amounts.items()}
            if amounts or consumer in story.held:
                story.hold(hour, consumer, amounts, (project, "user"))
        self.add_up(expected, story.held, hour, begin + length, begin, begin + length)
        account = story.account(begin, begin + length)
        self.assertEqual(expected, hours(account))
        if first and first[1] <= begin:
            late = story.account(begin, begin + length, first=first[0])
            self.assertTrue(late.complete)
            self.assertEqual(account.lines(), late.lines())

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
            self.add_up(expected, published, hour, hour + pause, begin, begin + length)
            hour += pause
            if amounts or consumer in story.held:
                story.hold(hour, consumer, amounts, (project, "user"))
                published.pop(consumer, None)
                if amounts:
                    published[consumer] = story.held[consumer]
        self.add_up(expected, published, hour, begin + length, begin, begin + length)
        account = story.account(begin, begin + length)
        self.assertTrue(account.complete)
        self.assertEqual(expected, hours(account))

    def add_up(self, expected, held, since, until, begin, end):
        for each in range(max(since, begin), min(until, end)):
            del each
            for amounts, owner in held.values():
                for (provider, name), amount in amounts.items():
                    key = owner[0], name, provider
                    expected[key] = expected.get(key, 0) + amount
