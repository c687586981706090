# SPDX-License-Identifier: Apache-2.0
"""The books of a listener, which tests compare with stores."""

from placement_rpc.notifications.event import Event
from tests import base, stream_books

_EPOCH = "first"


def event(position, event_type, epoch=_EPOCH, **payload):
    return Event(f"id {position}", event_type, position, "2026-11-21T00:00:00+00:00",
                 {"request_id": f"request {position}", "epoch": epoch, **payload})


def change(provider, generation, before, after):
    return {"provider_uuid": provider, "previous_generation": generation - 1,
            "generation": generation, "before": before, "after": after}


class StreamBooksTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.books = stream_books.StreamBooks()
        self.books.apply(event(1, "resource_provider.create", provider_uuid="p", generation=0,
                               previous_generation=None))
        self.claim(2, "c", change("p", 1, {}, {"VCPU": 2}))

    def claim(self, position, consumer, *changes, epoch=_EPOCH):
        self.books.apply(event(position, "allocation.create", epoch, consumer_uuid=consumer,
                               providers=list(changes)))

    def test_what_is_held(self):
        self.claim(3, "d", change("p", 2, {}, {"VCPU": 3}))
        self.claim(3, "d", change("p", 2, {}, {"VCPU": 3}))
        self.assertEqual({("p", "VCPU"): 5}, self.books.used)
        self.claim(4, "c", change("p", 3, {"VCPU": 2}, {}))
        self.assertEqual({"d": {"p": {"VCPU": 3}}}, self.books.held)
        self.assertEqual(([], [], {"p": 3}),
                         (self.books.gaps, self.books.broken, self.books.generations))

    def test_a_snapshot_may_have_an_older_generation(self):
        self.claim(3, "d", change("p", 2, {}, {"VCPU": 3}))
        self.books.apply(event(4, "allocation.exists", consumer_uuid="c", providers=[
            {**change("p", 1, {"VCPU": 2}, {"VCPU": 2}), "previous_generation": 1}]))
        self.claim(5, "d", change("p", 3, {"VCPU": 3}, {}))
        self.assertEqual(([], {"p": 3}, {"c": {"p": {"VCPU": 2}}}),
                         (self.books.broken, self.books.generations, self.books.held))

    def test_gaps_and_broken_chains_are_seen(self):
        self.claim(5, "d", change("p", 4, {}, {"VCPU": 3}))
        self.assertEqual([(2, 5)], self.books.gaps)
        self.assertEqual([(5, "p")], [
            (each.position, uuid) for each, uuid in self.books.broken])

    def test_what_is_lost_is_taken_back(self):
        self.claim(3, "c", change("p", 2, {"VCPU": 2}, {"VCPU": 9}))
        self.claim(4, "d", change("p", 3, {}, {"VCPU": 1}))
        # The store goes on before it is said what it lost.
        self.claim(5, "f", change("p", 1, {}, {"VCPU": 1}), epoch="second")
        self.assertEqual(1, len(self.books.broken))
        self.books.apply(event(
            6, "outbox.reconciled", "second",
            providers=[{"provider_uuid": "p", "generation": 1, "inventories": [
                {"resource_class": "VCPU", "total": 8}]}],
            consumers=[{"consumer_uuid": "c", "allocations": {"p": {"VCPU": 2}}},
                       {"consumer_uuid": "d", "allocations": {}}]))
        self.claim(7, "e", change("p", 2, {}, {"VCPU": 3}), epoch="second")
        self.assertEqual({"generations": {"p": 2}, "inventories": {"p": {"VCPU": 8}},
                          "used": {("p", "VCPU"): 6}, "held": {
                              "f": {"p": {"VCPU": 1}}, "c": {"p": {"VCPU": 2}},
                              "e": {"p": {"VCPU": 3}}}},
                         self.books.as_stored())
        self.assertEqual(([], ["first", "second"]), (self.books.broken, self.books.epochs))
