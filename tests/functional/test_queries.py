# SPDX-License-Identifier: Apache-2.0
"""Diagnostic queries: why a provider has no room, and events by position."""

import datetime
from unittest import mock

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events
from placement_rpc.notifications import publishers, relay
from placement_rpc.objects.request import ResourceRequest
from tests import base, statements


class ExplainTest(base.ContractTest):

    def explain(self, resources, **values):
        """Return a list of (rule, class, requested, allowed, by) for each provider's name."""
        wanted = {name: values.pop(name) for name in ("member_of", "not_member_of")
                  if name in values}
        return {each.name: [tuple(reason[key] for key in (
            "rule", "resource_class", "requested", "allowed", "by")) for reason in each.reasons]
            for each in self.api.explain(
                None, ResourceRequest(resources=resources, **wanted), **values).objects}

    def test_each_rule(self):
        self.provider("fits", VCPU=8, DISK_GB=100)
        self.provider("nothing")
        self.provider("units", VCPU={"total": 8, "min_unit": 5, "step_size": 3}, DISK_GB={
            "total": 100, "max_unit": 9})
        full = self.provider("full", VCPU={"total": 8, "reserved": 1}, DISK_GB=100)
        self.claim({full: {"VCPU": 5}})
        self.assertEqual({
            "fits": [],
            "nothing": [("inventory", "DISK_GB", 10, 0, 10), ("inventory", "VCPU", 4, 0, 4)],
            "units": [("max_unit", "DISK_GB", 10, 9, 1), ("min_unit", "VCPU", 4, 5, 1),
                      ("step_size", "VCPU", 4, 3, 1)],
            "full": [("capacity", "VCPU", 4, 2, 2)],
        }, self.explain({"VCPU": 4, "DISK_GB": 10}))

    def test_aggregates(self):
        first, second = self.provider("first", VCPU=8), self.provider("second", VCPU=8)
        red, blue = base.new_uuid(), base.new_uuid()
        self.api.set_aggregates(None, first, [red, blue])
        self.api.set_aggregates(None, second, [red])
        found = self.explain({"VCPU": 1}, member_of=[[red], [blue, base.new_uuid()]])
        self.assertEqual(([], "member_of"), (found["first"], found["second"][0][0]))
        found = self.explain({"VCPU": 1}, not_member_of=[blue])
        self.assertEqual(("not_member_of", []), (found["first"][0][0], found["second"]))

    def test_it_says_what_find_says(self):
        uuids = [self.provider(f"provider {number}", VCPU={
            "total": 4 + number, "max_unit": 6, "step_size": 1 + number % 3})
            for number in range(8)]
        for uuid in uuids[::2]:
            self.claim({uuid: {"VCPU": 3 * (1 + uuids.index(uuid) % 3)}}
                       if uuids.index(uuid) % 3 == 0 else {uuid: {"VCPU": (
                           1 + uuids.index(uuid) % 3)}})
        for amount in range(1, 9):
            explained = self.api.explain(None, ResourceRequest(resources={"VCPU": amount}))
            self.assertEqual(set(self.find({"VCPU": amount})), {
                each.provider_uuid for each in explained.objects if each.fits})

    def test_pages(self):
        uuids = [self.provider(f"provider {number}", VCPU=4) for number in range(3)]
        self.assertEqual(["provider 0"], list(self.explain({"VCPU": 1}, limit=1)))
        self.assertEqual(["provider 2"], list(self.explain({"VCPU": 1}, marker=uuids[1])))
        self.assertRaises(exception.ProviderNotFound, self.explain, {"VCPU": 1},
                          marker=base.new_uuid())
        self.assertRaises(exception.ResourceClassNotFound, self.explain, {"CUSTOM_NONE": 1})
        self.assertRaises(exception.InvalidInput, self.explain, {"VCPU": 1}, limit=0)


class ProviderListTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        for name in ("CUSTOM_A", "CUSTOM_B"):
            self.api.create_trait(None, name)
        self.one, self.two = self.provider("one"), self.provider("two")
        self.api.set_provider_traits(None, self.one, ["CUSTOM_A"])

    def listed(self, **filters):
        return {each.name for each in self.api.list_providers(None, **filters).objects}

    def test_traits_that_are_deleted_and_created_again(self):
        both = {"required": [["CUSTOM_A", "CUSTOM_B"]]}
        self.assertEqual({"one"}, self.listed(**both))
        self.api.set_provider_traits(None, self.one, [])
        for name in ("CUSTOM_A", "CUSTOM_B"):
            self.api.delete_trait(None, name)
        self.assertRaises(exception.TraitNotFound, self.listed, **both)
        # Each has the row id that the other had, if the database gives ids a second time.
        for name in ("CUSTOM_B", "CUSTOM_A"):
            self.api.create_trait(None, name)
        self.api.set_provider_traits(None, self.two, ["CUSTOM_A"])
        for filters, expected in ((both, {"two"}), ({"required": [["CUSTOM_A"]]}, {"two"}),
                                  ({"required": [["CUSTOM_B"]]}, set()),
                                  ({"forbidden": ["CUSTOM_A"]}, {"one"}),
                                  ({"forbidden": ["CUSTOM_B"]}, {"one", "two"})):
            self.assertEqual(expected, self.listed(**filters), filters)
        self.api.delete_trait(None, "CUSTOM_B")
        self.assertRaises(exception.TraitNotFound, self.listed, **both)
        self.assertRaises(exception.TraitNotFound, self.listed, forbidden=["CUSTOM_B"])

    def test_a_list_is_one_statement(self):
        filters = {"required": [["CUSTOM_A"]], "forbidden": ["CUSTOM_B"], "in_tree": self.one}
        self.assertEqual({"one"}, self.listed(**filters))
        # Over the bus, heartbeats and the relay have statements of their own.
        if self.service.conductor is None:
            for each in (filters, {}, {"name": "nobody"}):
                with statements.recorded(self.service.database) as sent:
                    self.listed(**each)
                self.assertEqual(1, len(sent), sent)


class PublishedEvents(base.ContractTest):
    """A service whose events can be given their positions, whether or not a conductor runs."""

    def place(self):
        """Let events have positions and be published; returns the last position."""
        if self.service.conductor is not None:
            return base.wait_published(self.service.database)
        # What a conductor does, which does not run here.
        relayed = relay.Relay(self.service.conf, self.service.database,
                              publishers.MemoryPublisher(), "test")
        relayed.start()
        try:
            return base.wait_published(self.service.database)
        finally:
            relayed.stop()


class LargeEventsTest(PublishedEvents):
    # Less than all events of the test.
    options = {"messages__max_answer": 64 * 1024}

    def test_a_page_ends_before_the_answer_is_too_large(self):
        names = [f"{number}{'n' * 190}" for number in range(150)]
        for name in names:
            self.api.create_provider(None, name)
        self.place()
        pages = [self.api.list_events(None)]
        while pages[-1].events:
            pages.append(self.api.list_events(None, after=pages[-1].position))
        self.assertEqual(names, [each["payload"]["name"] for page in pages
                                 for each in page.events])
        self.assertGreater(len(pages), 3)
        self.assertEqual(names[:2], [each["payload"]["name"] for each in self.api.list_events(
            None, limit=2).events])


class EventPagesTest(PublishedEvents):

    def test_a_page_has_no_gap_where_events_are_pruned_meanwhile(self):
        for _ in range(120):
            self.api.create_provider(None, base.new_uuid())
        self.place()
        read, later, pruned = events.after, bulk.now() + datetime.timedelta(days=1), []

        def after(tx, *arguments):
            rows = read(tx, *arguments)
            if not pruned:
                # More than one statement reads.
                pruned.append(self.service.database.write(
                    lambda writing: events.prune(writing, later, limit=105)))
            return rows

        with mock.patch.object(events, "after", after):
            page = self.api.list_events(None)
        found = [each["position"] for each in page.events]
        self.assertEqual(([105], 120), (pruned, found[-1]))
        self.assertEqual(list(range(found[0], 121)), found)

    def test_pages(self):
        self.assertEqual((1, 0), self.bounds())
        page = self.api.list_events(None)
        self.assertEqual(([], 0), (page.events, page.position))
        for name in ("a", "b", "c"):
            self.provider(name)
        if self.service.conductor is None:
            # Events without a position are not listed yet.
            self.assertEqual([], self.api.list_events(None).events)
        self.assertEqual(3, self.place())
        self.assertEqual((1, 3), self.bounds())
        page = self.api.list_events(None, 1, 1)
        self.assertEqual((["b"], 2), ([each["payload"]["name"] for each in page.events],
                                      page.position))
        page = self.api.list_events(None, 3)
        self.assertEqual(([], 3), (page.events, page.position))
        for after in (4, -1, "1", True):
            self.assertRaises(exception.InvalidInput, self.api.list_events, None, after)

    def bounds(self):
        found = self.api.get_event_positions(None)
        return found.oldest, found.last

    def test_what_was_pruned(self):
        for name in ("a", "b", "c"):
            self.provider(name)
        self.place()
        later = bulk.now() + datetime.timedelta(days=1)
        self.service.database.write(lambda tx: events.prune(tx, later, limit=2))
        error = self.assertRaises(exception.EventsPruned, self.api.list_events, None, 1)
        self.assertEqual(3, error.kwargs["oldest"])
        self.assertEqual(3, self.api.list_events(None, 2).events[0]["position"])
        self.service.database.write(lambda tx: events.prune(tx, later))
        self.assertEqual((4, 3), self.bounds())
        self.assertRaises(exception.EventsPruned, self.api.list_events, None, 2)
        self.assertEqual(3, self.api.list_events(None).position)

    def test_positions_of_changes_that_the_store_has_lost(self):
        """No event has them, and none was pruned: a reader goes on wherever its page ends."""
        for name in ("a", "b", "c", "d"):
            self.provider(name)
        self.place()
        self.service.database.write(lambda tx: tx.execute(sa.delete(models.events).where(
            models.events.c.position.in_([2, 3]))))
        for after, limit in (0, 10), (0, 1), (1, 1), (2, 1), (3, 1):
            found = []
            while (page := self.api.list_events(None, after, limit)).events:
                found += [each["position"] for each in page.events]
                after = page.position
            self.assertEqual([1, 4][-len(found):], found)

    def test_pruning_leaves_no_hole(self):
        """The clocks of several machines differ: an older time may follow a newer one."""
        for name in ("a", "b", "c", "d"):
            self.provider(name)
        self.place()
        now = bulk.now()
        times = {1: 90, 2: 10, 3: 90, 4: 10}

        def prune(tx):
            for position, age in times.items():
                tx.execute(sa.update(models.events).where(
                    models.events.c.position == position).values(
                        occurred_at=now - datetime.timedelta(minutes=age)))
            return events.prune(tx, now - datetime.timedelta(minutes=50))

        self.assertEqual(1, self.service.database.write(prune))
        self.assertEqual([2, 3, 4], [
            each["position"] for each in self.api.list_events(None).events])


class ReadTest(base.ContractTest):
    """A read says up to which event it is current, and when what it shows last changed."""

    def test_lists_have_the_position_that_they_include(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}})
        last = self.api.get_event_positions(None).last
        wanted = ResourceRequest(resources={"VCPU": 1})
        for read in (self.api.list_providers(None), self.api.get_by_request(None, wanted),
                     self.api.explain(None, wanted), self.api.get_allocations(None, consumer),
                     self.api.get_provider_allocations(None, uuid)):
            self.assertGreaterEqual(read.position, last, read)

    def test_what_is_read_has_the_time_of_its_last_change(self):
        uuid = self.provider(VCPU=8)
        self.api.create_trait(None, "CUSTOM_A")
        self.api.resource_class_create(None, "CUSTOM_B")
        consumer = base.new_uuid()

        def shown():
            return [found.updated_at for found in (
                self.api.get_provider(None, uuid), self.api.get_provider_traits(None, uuid),
                self.api.get_allocations(None, consumer),
                self.api.get_provider_allocations(None, uuid))]

        before = shown()
        self.assertEqual([None, None], before[2:])
        self.claim({uuid: {"VCPU": 1}}, consumer)
        changed = self.api.set_provider_traits(None, uuid, ["CUSTOM_A"]).updated_at
        self.assertGreaterEqual(changed, shown()[1])
        self.assertGreater(changed, before[1])
        for old, new in zip(before, shown(), strict=True):
            self.assertLess(old or "", new)
        for found in (self.api.resource_class_get(None, "CUSTOM_B"),
                      *self.api.resource_class_list(None).objects,
                      *self.api.list_traits(None, names=["CUSTOM_A"]).objects):
            self.assertGreater(datetime.datetime.fromisoformat(found.updated_at),
                               bulk.now() - datetime.timedelta(days=1), found)
