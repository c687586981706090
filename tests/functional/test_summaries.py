# SPDX-License-Identifier: Apache-2.0
"""Pages of all providers and consumers, compared with a plain model of what was stored."""

import collections
import pathlib
import random

import fixtures

from placement_rpc import exception
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, http, statements

_TRAITS = ("CUSTOM_A", "HW_CPU_X86_AVX2", "CUSTOM_B")
_RULES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


class World:
    """Providers and consumers as plain values, written through the API.

    :ivar providers: dict of uuid to a dict of name, parent, inventories (class to total),
        traits and aggregates
    :ivar consumers: dict of uuid to a dict of project_id, user_id, consumer_type and allocations
    """

    def __init__(self, api, seed):
        self.api, self.random = api, random.Random(seed)
        self.providers, self.consumers = {}, {}
        for name in _TRAITS:
            if name.startswith("CUSTOM_"):
                api.create_trait(None, name)
        self.aggregates = [base.new_uuid() for _ in range(3)]

    def some(self, values):
        return sorted(each for each in values if self.random.random() < 0.5)

    def provider(self):
        uuid = base.new_uuid()
        parent = self.random.choice([None, *self.providers])
        name = f"provider {len(self.providers)} {uuid}"
        inventories = {each: self.random.randint(100, 200)
                       for each in self.some(("VCPU", "MEMORY_MB", "DISK_GB"))}
        traits, aggregates = self.some(_TRAITS), self.some(self.aggregates)
        self.api.create_provider(None, name, uuid, parent_provider_uuid=parent)
        if inventories:
            self.api.set_inventory(None, uuid, [
                base.inventory(each, total) for each, total in inventories.items()])
        if traits:
            self.api.set_provider_traits(None, uuid, traits, 1 if inventories else 0)
        if aggregates:
            self.api.set_aggregates(None, uuid, aggregates)
        self.providers[uuid] = {"name": name, "parent": parent, "inventories": inventories,
                                "traits": traits, "aggregates": aggregates}

    def consumer(self):
        uuid = base.new_uuid()
        having = [each for each, its in self.providers.items() if its["inventories"]]
        allocations = {each: {name: self.random.randint(1, 3) for name in (
            self.some(self.providers[each]["inventories"])
            or list(self.providers[each]["inventories"])[:1])}
            for each in self.random.sample(having, min(len(having), self.random.randint(1, 3)))}
        owner = {"project_id": self.random.choice(("p", "P", "q")),
                 "user_id": self.random.choice(("u", "v"))}
        kind = self.random.choice((None, "INSTANCE", "MIGRATION"))
        self.api.claim_allocations(
            None, base.claim(allocations, uuid, consumer_type=kind, **owner))
        self.consumers[uuid] = {**owner, "consumer_type": kind, "allocations": allocations}

    def root(self, uuid):
        parent = self.providers[uuid]["parent"]
        return uuid if parent is None else self.root(parent)

    def used(self, uuid, name):
        return sum(each["allocations"].get(uuid, {}).get(name, 0)
                   for each in self.consumers.values())

    def expected_providers(self):
        """Return what the pages have to say, in their order."""
        return [{"uuid": uuid, "name": its["name"], "parent": its["parent"],
                 "root": self.root(uuid), "traits": its["traits"],
                 "aggregates": its["aggregates"], "inventories": {
                     name: (total, self.used(uuid, name))
                     for name, total in its["inventories"].items()}}
                for uuid, its in sorted(self.providers.items())]

    def expected_consumers(self, project_id=None, user_id=None, provider_uuid=None):
        return [{"uuid": uuid, **its} for uuid, its in sorted(self.consumers.items())
                if project_id in (None, its["project_id"]) and user_id in (None, its["user_id"])
                and (provider_uuid is None or provider_uuid in its["allocations"])]


def provider_of(summary):
    """Return a summary as :meth:`World.expected_providers` has it."""
    return {"uuid": summary.uuid, "name": summary.name, "parent": summary.parent_provider_uuid,
            "root": summary.root_provider_uuid, "traits": summary.traits,
            "aggregates": summary.aggregates, "inventories": {
                name: (its["total"], its["used"]) for name, its in summary.inventories.items()}}


def consumer_of(summary):
    return {"uuid": summary.uuid, "project_id": summary.project_id, "user_id": summary.user_id,
            "consumer_type": summary.consumer_type, "allocations": summary.allocations}


class SummariesTest(base.ContractTest):

    def world(self, seed=7, providers=23, consumers=40):
        world = World(self.api, seed)
        for _ in range(providers):
            world.provider()
        for _ in range(consumers):
            world.consumer()
        return world

    def test_pages_of_any_size_have_all_providers(self):
        world = self.world()
        for size in (None, 1, 5, 23, 24, 1000):
            found = list(self.api.all_provider_summaries(None, page=size))
            self.assertEqual(world.expected_providers(), [provider_of(each) for each in found])

    def test_each_provider_is_what_the_single_calls_say(self):
        self.world(providers=6, consumers=10)
        for each in self.api.all_provider_summaries(None):
            provider = self.api.get_provider(None, each.uuid)
            self.assertEqual((provider.generation, provider.updated_at),
                             (each.generation, each.updated_at))
            capacities = {its.resource_class: (its.used, its.capacity)
                          for its in self.api.get_usages(None, each.uuid).objects}
            self.assertEqual(capacities, {
                name: (its["used"], its["capacity"]) for name, its in each.inventories.items()})
            for its in self.api.get_inventory(None, each.uuid).objects:
                self.assertEqual({name: getattr(its, name) for name in _RULES}, {
                    name: each.inventories[its.resource_class][name] for name in _RULES})

    def test_pages_of_any_size_have_all_consumers(self):
        world = self.world()
        held = collections.Counter(
            uuid for each in world.consumers.values() for uuid in each["allocations"])
        busiest = held.most_common(1)[0][0]
        for only in ({}, {"project_id": "p"}, {"project_id": "p", "user_id": "v"},
                     {"provider_uuid": busiest}, {"project_id": "none"}, {"user_id": "u"},
                     {"project_id": "q", "provider_uuid": busiest}):
            for size in (None, 1, 7, 1000):
                found = list(self.api.all_consumers(None, page=size, **only))
                self.assertEqual(world.expected_consumers(**only),
                                 [consumer_of(each) for each in found], (only, size))

    def test_a_consumer_has_its_generation_and_times(self):
        node = self.provider(VCPU=8)
        consumer, _ = self.claim({node: {"VCPU": 1}})
        first, = self.api.list_consumers(None).objects
        self.claim({node: {"VCPU": 2}}, consumer)
        second, = self.api.list_consumers(None).objects
        self.assertEqual((1, 2), (first.generation, second.generation))
        self.assertEqual(first.created_at, second.created_at)
        self.assertLess(first.updated_at, second.updated_at)

    def test_what_is_not_changed_meanwhile_is_there_once(self):
        """Others are deleted, the marker among them, and created, on both sides of it."""
        world = self.world()
        expected = {each["uuid"] for each in world.expected_consumers()}
        found, marker, more, gone = [], None, True, set()
        while more:
            page = self.api.list_consumers(None, marker=marker, limit=4)
            found += [each.uuid for each in page.objects]
            if not page.objects:
                # All that had been left is among what was deleted.
                self.assertFalse(page.more)
                break
            marker, more = page.objects[-1].uuid, page.more
            left = sorted(expected - gone - set(found))
            for uuid in {marker, *left[-1:]}:
                self.api.release_allocations(None, uuid)
                gone.add(uuid)
            world.consumer()
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(found, sorted(found))
        self.assertEqual(set(), (expected - gone) - set(found))

    def test_a_page_is_bounded(self):
        page = self.api.list_provider_summaries(None, limit=2 ** 31 - 1)
        self.assertEqual(([], False), (page.objects, page.more))
        for limit in (0, -1, "5", 2 ** 40):
            for call in (self.api.list_provider_summaries, self.api.list_consumers):
                self.assertRaises(exception.InvalidInput, call, None, limit=limit)

    def test_input(self):
        for only in ({"marker": "pony"}, {"provider_uuid": "pony"}, {"project_id": ""},
                     {"project_id": 5}, {"user_id": "x" * 256}):
            self.assertRaises(
                exception.InvalidInput, self.api.list_consumers, None, **only)
        self.assertRaises(exception.InvalidInput, self.api.list_provider_summaries, None, "pony")
        self.assertRaises(exception.ProviderNotFound, self.api.list_consumers, None,
                          provider_uuid=base.new_uuid())

    def test_a_page_takes_the_same_number_of_statements_whatever_its_size(self):
        self.world()
        for call, most in ((self.api.list_provider_summaries, 5), (self.api.list_consumers, 3)):
            counts = {limit: self.statements(call, limit) for limit in (1, 10, 1000)}
            self.assertEqual(1, len(set(counts.values())), counts)
            self.assertLessEqual(max(counts.values()), most)

    def statements(self, call, limit):
        """Return how many SELECTs a page takes; the service may be in this process."""
        with statements.recorded(self.service.database) as found:
            call(None, limit=limit)
        return statements.reads(found)


class PositionTest(base.TestCase):

    def test_a_page_has_the_position_that_it_includes(self):
        running = self.useFixture(placement_fixtures.RunningService())
        running.api.create_provider(None, "node")
        last = base.wait_published(running.database)
        self.assertEqual(1, last)
        for page in (running.api.list_consumers(None),
                     running.api.list_provider_summaries(None)):
            self.assertEqual(last, page.position)


class HTTPSummariesTest(http.HTTPTest):

    def setUp(self):
        super().setUp()
        self.world = World(self.api, 5)
        for _ in range(6):
            self.world.provider()
        for _ in range(12):
            self.world.consumer()

    def pages(self, path, name, limit):
        """Return what all pages have, and check that each has its link to the next."""
        found, after = [], ""
        for _ in range(100):
            page = self.get(f"{path}limit={limit}{after}")
            self.assertLessEqual(len(page[name]), limit)
            found += page[name]
            if page["next"] is None:
                return found
            self.assertEqual(page[name][-1]["uuid"], page["next"])
            after = f"&marker={page['next']}"
        raise AssertionError("it never ends")

    def test_providers(self):
        for limit in (1, 4, 100):
            found = self.pages("/provider_summaries?", "provider_summaries", limit)
            self.assertEqual(self.world.expected_providers(), [
                {**{name: each[name] for name in ("uuid", "name", "traits", "aggregates")},
                 "parent": each["parent_provider_uuid"], "root": each["root_provider_uuid"],
                 "inventories": {name: (its["total"], its["used"])
                                 for name, its in each["inventories"].items()}}
                for each in found])

    def test_consumers(self):
        busy = next(iter(next(iter(self.world.consumers.values()))["allocations"]))
        for query, only in (("", {}), ("project_id=P&", {"project_id": "P"}),
                            (f"resource_provider={busy}&", {"provider_uuid": busy}),
                            ("project_id=q&user_id=u&", {"project_id": "q", "user_id": "u"})):
            found = self.pages(f"/consumers?{query}", "consumers", 3)
            self.assertEqual(self.world.expected_consumers(**only), [
                {name: each[name] for name in (
                    "uuid", "project_id", "user_id", "consumer_type", "allocations")}
                for each in found], query)

    def test_a_position_is_there(self):
        for path in ("/consumers", "/provider_summaries"):
            self.assertIn("placement-position", self.send("GET", path).headers)

    def test_what_is_refused(self):
        for path in ("/consumers?limit=0", "/consumers?limit=x", "/consumers?marker=pony",
                     "/consumers?project_id=", "/consumers?pony=1", "/provider_summaries?limit=-1",
                     "/provider_summaries?project_id=p",
                     f"/consumers?resource_provider={base.new_uuid()}"):
            self.refused(400, self.send("GET", path))
        for path in ("/consumers", "/provider_summaries"):
            self.refused(403, self.send("GET", path, token="reader:p", X_Roles="reader"))
            self.assertEqual(
                200, self.send("GET", path, token="x", X_Roles="service").status_code)


class ReaderTest(http.HTTPTest):
    """A rule of the operator's can admit the readers of a project."""

    def configure(self, conf):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "policy.yaml")
        path.write_text('"placement:consumers:list": "rule:project_reader_api"\n')
        conf.set_override("policy_file", str(path), group="oslo_policy")

    def test_own_consumers_only(self):
        node = self.make(VCPU={"total": 8})
        self.api.claim_allocations(None, base.claim({node: {"VCPU": 1}}, project_id="blue"))
        answer = self.send(
            "GET", "/consumers?project_id=blue", token="ada:blue", X_Roles="reader")
        self.assertEqual(1, len(answer.json["consumers"]))
        for path in ("/consumers", "/consumers?project_id=red",
                     f"/consumers?resource_provider={node}"):
            self.refused(403, self.send("GET", path, token="ada:blue", X_Roles="reader"))
