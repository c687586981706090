# SPDX-License-Identifier: Apache-2.0
"""The events that a listener has handled, and the gaps between them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from placement_rpc.notifications.event import Event
from placement_rpc.notifications.sequence import Sequence
from tests import base


def event(position, epoch=None):
    return Event(f"event {position} {epoch}", "x", position, "2026-11-21T00:00:00+00:00",
                 {"epoch": epoch})


def handle(sequence, positions, epoch=None):
    """The positions that are taken for new, in their order."""
    new = []
    for position in positions:
        found = event(position, epoch)
        if sequence.is_new(found):
            sequence.report_gap(found)
            sequence.add(found)
            new.append(position)
    return new


class SequenceTest(base.TestCase):

    def test_an_event_that_was_handled_is_not_new_also_in_another_process(self):
        sequence = Sequence()
        self.assertEqual([4, 5, 6], handle(sequence, [4, 5, 4, 6, 5]))
        self.assertEqual([7], handle(Sequence(sequence.state), [5, 6, 7, 4]))

    def test_gaps_are_reported_and_can_be_filled(self):
        gaps = []
        sequence = Sequence(on_gap=lambda *gap: gaps.append(gap))
        self.assertEqual([1, 2, 9], handle(sequence, [1, 2, 9]))
        self.assertEqual([(3, 9)], gaps)
        again = Sequence(sequence.state)
        self.assertEqual([5, 3, 8], handle(again, [5, 3, 2, 9, 8, 5]))
        self.assertEqual(
            {"position": 9, "missing": [[4, 4], [6, 7]], "epoch": None, "ended_epochs": []},
            again.state)

    def test_a_new_epoch_begins_a_new_sequence(self):
        """The store was restored from a backup at position 3."""
        for number, restart in enumerate((False, True), 1):
            gaps = []
            sequence = Sequence(on_gap=lambda *gap, gaps=gaps: gaps.append(gap))
            self.assertEqual([1, 2, 3, 4, 5, 9], handle(sequence, [1, 2, 3, 4, 5, 9], "first"))
            if restart:
                sequence = Sequence(sequence.state, lambda *gap, gaps=gaps: gaps.append(gap))
            self.assertEqual([4, 5, 6], handle(sequence, [4, 5, 5, 4, 6], "second"))
            self.assertEqual([(6, 9)], gaps)
            self.assertEqual({"position": 6, "missing": [], "epoch": "second",
                              "ended_epochs": ["first"]}, sequence.state)
            self.assertEqual(number, self.log.output.count("restored from a backup"))
            # One that was on its way has an id by which it can be recognised.
            self.assertEqual([8, 8], handle(sequence, [8, 8], "first"))
            self.assertEqual("second", sequence.state["epoch"])
            self.assertEqual([7], handle(sequence, [7, 7], "second"))
            # Also in another process.
            sequence = Sequence(sequence.state)
            self.assertEqual([9, 9], handle(sequence, [9, 9], "first"))
            self.assertEqual([8], handle(sequence, [7, 8, 8], "second"))
            self.assertEqual(number, self.log.output.count("restored from a backup"))

    def test_a_new_epoch_fills_no_gap(self):
        """Positions continue after those that were published, as after a reconciliation."""
        for restart in False, True:
            gaps = []
            sequence = Sequence(on_gap=lambda *gap, gaps=gaps: gaps.append(gap))
            handle(sequence, [1, 2, 5], "first")
            if restart:
                sequence = Sequence(sequence.state, lambda *gap, gaps=gaps: gaps.append(gap))
            self.assertEqual([9, 10], handle(sequence, [9, 10, 9], "second"))
            self.assertEqual([(3, 5), (6, 9)], gaps)
            # They are published again in the current epoch.
            self.assertEqual([3, 4, 6, 7, 8], handle(sequence, [*range(1, 11), 3], "second"))
            self.assertEqual([], sequence.state["missing"])

    def test_a_gap_before_positions_that_are_given_again_stays(self):
        sequence = Sequence()
        handle(sequence, [1, 4, 5, 9], "first")
        self.assertEqual([7, 8], handle(sequence, [7, 8, 5], "second"))
        self.assertEqual([[2, 3], [6, 6]], sequence.state["missing"])
        self.assertEqual([2, 6], handle(sequence, [2, 4, 6, 7], "second"))

    def test_events_without_an_epoch_belong_to_the_known_one(self):
        """A relay of an older release publishes in between."""
        sequence = Sequence()
        self.assertEqual([1], handle(sequence, [1]))
        self.assertEqual([2], handle(sequence, [1, 2], "first"))
        self.assertEqual([3], handle(sequence, [2, 3]))
        self.assertEqual([4], handle(sequence, [3, 4], "first"))

    @settings(max_examples=base.examples(200), deadline=None)
    @given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=60))
    def test_every_event_is_new_once_in_any_order(self, arrivals):
        """The boolean is a restart before the event."""
        sequence, seen, first = Sequence(), set(), None
        for position, restart in arrivals:
            if restart:
                sequence = Sequence(sequence.state)
            first = first or position
            # Events before the first one belong to another listener.
            expected = position not in seen and position >= first
            if sequence.is_new(event(position)) and position >= first:
                self.assertTrue(expected)
                sequence.add(event(position))
                seen.add(position)
            elif position >= first:
                self.assertFalse(expected)
