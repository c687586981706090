# SPDX-License-Identifier: Apache-2.0
"""``etc/integration/ceilometer/``: ceilometer's samples from this service's events.

Ceilometer 27 was tried with the same files and messages; here its reading of them is imitated,
with the library that it uses for it.
"""

import copy
import fnmatch
import functools
import itertools
import json
import pathlib
import re

import yaml
from jsonpath_rw_ext import parser

from placement_rpc.objects import catalog
from tests import base

_ROOT = pathlib.Path(__file__).parents[2]
_DEFINITIONS = _ROOT / "etc" / "integration" / "ceilometer"


def _load(name):
    return yaml.safe_load((_DEFINITIONS / name).read_text())


def sample(event_type):
    return json.loads((_ROOT / "docs" / "notification_samples" / f"{event_type}.json").read_text())


def with_providers(*providers):
    """An update of a consumer: (provider, before, after) for each."""
    message = copy.deepcopy(sample("allocation.update"))
    message["payload"]["placement_object.data"]["providers"] = [
        {"placement_object.data": {"provider_uuid": uuid, "before": before, "after": after}}
        for uuid, before, after in providers]
    return message


class MeterTest(base.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        compiler = parser.ExtentedJsonPathParser()
        cls.meters = [
            (definition, {name: compiler.parse(definition[name]) for name in (
                "name", "volume", "resource_id", "project_id", "user_id", "timestamp")})
            for definition in _load("meters.yaml")["metric"]]

    def samples(self, message):
        """(meter, resource, volume, project) of each sample"""
        found = []
        for definition, paths in self.meters:
            if not any(re.match(pattern, message["event_type"])
                       for pattern in definition["event_type"]):
                continue
            values = {name: [each.value for each in path.find(message)]
                      for name, path in paths.items()}
            for name in definition["lookup"]:
                # Ceilometer makes none of them otherwise.
                self.assertEqual(len(values["name"]), len(values[name]), name)
            found += [(*each, values["project_id"][0]) for each in zip(
                values["name"], values["resource_id"], values["volume"], strict=True)]
        return found

    def of(self, event_type):
        return [(name, volume) for name, _, volume, _ in self.samples(sample(event_type))]

    def test_what_is_held_after_the_event_and_nothing_after_the_last(self):
        self.assertEqual([("placement.vcpu", 2), ("placement.memory_mb", 4096)],
                         self.of("allocation.create"))
        self.assertEqual([("placement.vcpu", 4), ("placement.memory_mb", 8192)],
                         self.of("allocation.update"))
        self.assertEqual([("placement.vcpu", 4), ("placement.memory_mb", 8192)],
                         self.of("allocation.exists"))
        self.assertEqual([("placement.vcpu", 0), ("placement.memory_mb", 0)],
                         self.of("allocation.delete"))

    def test_other_events_make_no_sample(self):
        metered = {"allocation.create", "allocation.update", "allocation.delete",
                   "allocation.exists"}
        for event_type in set(catalog.EVENTS) - metered:
            self.assertEqual([], self.samples(sample(event_type)))

    def test_several_providers_and_classes_that_come_and_go(self):
        found = self.samples(with_providers(
            ("A", {"VCPU": 2}, {}), ("B", {"VCPU": 2, "DISK_GB": 3}, {"VCPU": 5}),
            ("C", {}, {"VCPU": 7, "CUSTOM_GOLD": 1}), ("D", {}, {})))
        consumer = sample("allocation.update")["payload"]["placement_object.data"]
        self.assertEqual([
            ("placement.vcpu", "A", 0), ("placement.vcpu", "B", 5), ("placement.vcpu", "C", 7),
            ("placement.disk_gb", "B", 0)],
            [(name, resource.rpartition(":")[2], volume) for name, resource, volume, _ in found])
        self.assertEqual({(consumer["consumer_uuid"], consumer["project_id"])},
                         {(resource.rpartition(":")[0], project)
                          for _, resource, _, project in found})


class EventDefinitionTest(base.TestCase):

    def test_every_event_has_its_traits(self):
        # The library builds its grammar again for every path that it parses.
        parse = functools.cache(parser.ExtentedJsonPathParser().parse)
        definitions = _load("event_definitions.yaml")
        for event_type in catalog.EVENTS:
            definition, = [each for each in definitions if any(
                fnmatch.fnmatchcase(event_type, pattern) for pattern in (
                    [each["event_type"]] if isinstance(each["event_type"], str)
                    else each["event_type"]))]
            traits = {}
            for name, trait in definition["traits"].items():
                values = [each.value for each in parse(trait["fields"]).find(sample(event_type))]
                self.assertLessEqual(len(values), 1, (event_type, name))
                if values and values[0] is not None:
                    traits[name] = values[0]
            data = sample(event_type)["payload"]["placement_object.data"]
            self.assertEqual([data["event_id"], data["position"]],
                             [traits["event_id"], traits["position"]])
            self.assertIn("resource_id", traits, event_type)
            initiator = data["initiator"] or {}
            self.assertEqual(
                (data["epoch"], initiator.get("user_id"), initiator.get("project_id")),
                tuple(map(traits.get, ("epoch", "initiator_user_id", "initiator_project_id"))))

    def test_amounts_of_an_allocation(self):
        definition = next(each for each in _load("event_definitions.yaml")
                          if "allocation.update" in each["event_type"])
        compiler = parser.ExtentedJsonPathParser()
        message = with_providers(("A", {"VCPU": 2}, {}), ("B", {}, {"VCPU": 5, "DISK_GB": 3}))

        def trait(name):
            return [each.value for each in compiler.parse(
                definition["traits"][name]["fields"]).find(message)]

        names = [f"provider_{number}{suffix}" for number, suffix in itertools.product(
            (1, 2, 3), ("", "_vcpu", "_disk_gb"))]
        self.assertEqual([["A"], [0], [], ["B"], [5], [3], [], [], []], list(map(trait, names)))
