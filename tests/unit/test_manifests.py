# SPDX-License-Identifier: Apache-2.0
"""Manifests of releases: a changed object has a new version, and a version its entry."""

import uuid

from placement_rpc import exception, manager, objects
from placement_rpc.objects import payloads
from placement_rpc.objects.base import PlacementObjectRegistry
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.nova.base import NovaObjectRegistry
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.service import Service
from placement_rpc.versions import contract, pins, releases
from tests import base

NEWTON, OCATA, OF_2026_2, CURRENT = releases.RELEASES


def _registered():
    objects.register_all()
    return {name: classes[0] for registry in (PlacementObjectRegistry, NovaObjectRegistry)
            for name, classes in registry.obj_classes().items()}


class ManifestTest(base.TestCase):

    def test_this_release_has_every_object_at_its_version(self):
        self.assertEqual({name: cls.VERSION for name, cls in _registered().items()},
                         CURRENT.versions)

    def test_payloads_and_what_is_in_them_are_told_apart_from_objects(self):
        found = {name for name, cls in _registered().items()
                 if cls.__module__ == payloads.__name__}
        self.assertEqual(found, set(CURRENT.payloads))

    def test_no_release_lost_an_object_and_no_version_went_back(self):
        for older, newer in zip(releases.RELEASES, releases.RELEASES[1:], strict=False):
            self.assertLess(older.number, newer.number)
            for name, version in older.versions.items():
                self.assertGreaterEqual(
                    releases.number(newer.versions[name]), releases.number(version))

    def test_every_version_between_is_some_releases(self):
        """Each field was added in a version of the object that a release has."""
        for name, cls in _registered().items():
            known = {each.versions.get(name) for each in releases.RELEASES}
            if cls.OBJ_PROJECT_NAMESPACE == "placement":
                self.assertEqual(set(), set(cls.added.values()) - known, name)
            self.assertEqual(set(), set(cls.added) - set(cls.fields))

    def test_every_older_version_can_be_made(self):
        """Of objects that are full, with the objects in them."""
        for release in releases.RELEASES:
            for name, version in release.versions.items():
                cls = _registered()[name]
                full = _full(cls)
                primitive = full.obj_to_primitive(version_manifest=release.versions)
                self.assertEqual(version, primitive[cls._obj_primitive_key("version")])
                late = {field for field, since in cls.added.items()
                        if releases.number(since) > releases.number(version)}
                self.assertEqual(
                    {field for field in cls.fields if full.obj_attr_is_set(field)} - late,
                    set(primitive[cls._obj_primitive_key("data")]))
                for nested, its in base.objects_in(primitive):
                    self.assertEqual(release.versions[nested], its, name)


def _full(cls, depth=0):
    """Return an object with all fields whose values can be generated from their types."""
    instance = cls()
    for name, field in cls.fields.items():
        nested = getattr(field, "objname", None)
        if nested is not None:
            inner = _full(_registered()[nested], depth + 1)
            setattr(instance, name, [inner] if "List" in type(field).__name__ else inner)
            continue
        for value in (5, "text", {"a": "b"}, [], True, 1.5, base.new_uuid(), "VCPU",
                      {"VCPU": 1}, {base.new_uuid(): 5}, {base.new_uuid(): {"VCPU": 1}},
                      "10.0.0.1", {1}, [{1}], "pack", "isolate", "deflate", "aggregate",
                      ["text"], {"": [base.new_uuid()]}):
            try:
                setattr(instance, name, value)
                break
            except (ValueError, TypeError, AttributeError):
                continue
        else:
            raise AssertionError(f"{cls.__name__}.{name}")
    return instance


class ContractTest(base.TestCase):

    def test_an_argument_that_is_a_uuid_object_is_plain(self):
        """It has an attribute ``fields``, as versioned objects do."""
        self.assertTrue(contract.is_plain("get_provider", {"provider_uuid": uuid.uuid4()}))

    def test_every_call_has_a_version(self):
        exposed = {name for name in dir(manager.Manager)
                   if getattr(getattr(manager.Manager, name), "exposed", False)}
        self.assertEqual(exposed, set(contract.CALLS))

    def test_what_a_release_does_not_know(self):
        guarded = Claim(consumer_uuid=base.new_uuid(), consumer_generation=3)
        claim = Claim(consumer_uuid=base.new_uuid(), consumer_generation=None)
        for method, arguments, newton, ocata in (
                ("claim_batch", {}, ["claim_batch"], ["claim_batch"]),
                ("resource_class_create", {}, ["resource_class_create"], []),
                ("claim_allocations", {"claim": claim}, [], []),
                ("claim_allocations", {"claim": guarded}, ["Claim.consumer_generation"], []),
                ("release_allocations", {"consumer_generation": 1},
                 ["release_allocations(consumer_generation)"], []),
                ("get_by_request", {"wanted": ResourceRequest(
                    resources={"VCPU": 1}, limit=5, member_of=[[base.new_uuid()]])},
                 ["ResourceRequest.limit", "ResourceRequest.member_of"],
                 ["ResourceRequest.member_of"])):
            self.assertEqual(newton, contract.missing(method, arguments, NEWTON))
            self.assertEqual(ocata, contract.missing(method, arguments, OCATA))
            self.assertEqual([], contract.missing(method, arguments, CURRENT))

    def test_which_answers_may_be_large(self):
        def wanted(**values):
            return {"wanted": ResourceRequest(
                resources={"VCPU": 1}, **values).obj_to_primitive()}

        for method, arguments, large in (
                ("get_by_request", wanted(), True), ("get_by_request", wanted(limit=1), False),
                ("get_by_request", wanted(limit=100_000), True), ("get_by_request", 5, True),
                ("get_by_request", {"wanted": {"placement_object.data": 5}}, True),
                ("list_providers", {}, True), ("list_providers", {"limit": 5}, False),
                ("list_events", {"limit": "x"}, True), ("ping", {}, False),
                # Neither heeds the limit of the request that it is asked about.
                ("explain", wanted(limit=1), True), ("get_headroom", wanted(limit=1), True),
                ("explain", {**wanted(), "limit": 1}, False),
                ("claim_allocations", {}, False)):
            self.assertIs(large, contract.CALLS[method].is_large(arguments), method)

    def test_releases_by_version(self):
        for version, release in (("1.0", NEWTON), ("1.1", OCATA), ("1.2", OF_2026_2),
                                 ("1.3", CURRENT), ("1.9", CURRENT), ("0.9", None),
                                 ("2.0", None), ("x", None),
                                 ("", None), (None, None), ("1." + "9" * 99, None)):
            self.assertIs(release, releases.of_contract(version))


class PinTest(base.TestCase):

    def services(self, *versions):
        return [Service(binary="b", host="h", worker=0, rpc_version=version, alive=alive)
                for version, alive in versions]

    def test_what_an_option_may_be(self):
        for text, release in (("auto", None), ("newton", NEWTON), ("1.1", OCATA),
                              ("2026.2", OF_2026_2), ("2027.1", CURRENT)):
            self.assertIs(release, pins.fixed(text))
        for text in ("mitaka", "1.9", "", "AUTO"):
            self.assertIn("ocata", self.assertRaises(
                exception.InvalidInput, pins.fixed, text).text)

    def test_the_lowest_that_is_alive(self):
        self.assertIs(OCATA, pins.lowest(self.services(
            ("1.2", True), ("1.1", True), ("1.0", False))))
        self.assertIs(CURRENT, pins.lowest([]))
        self.assertIs(CURRENT, pins.lowest(self.services(("1.7", True))))
        error = self.assertRaises(
            exception.ServiceTooOld, pins.lowest, self.services(("0.9", True)))
        self.assertIn("0.9", error.text)

    def test_it_is_asked_for_again_after_a_time_and_when_it_is_forgotten(self):
        answers = [self.services(("1.0", True)), self.services(("1.1", True)),
                   self.services(("1.3", True)), self.services(("1.1", True))]
        pin = pins.AutoPin(lambda seconds: answers.pop(0), interval=1000)
        self.assertIs(NEWTON, pin.release(1))
        self.assertIs(NEWTON, pin.release(1))
        pin.forget()
        self.assertIs(OCATA, pin.release(1))
        pin = pins.AutoPin(lambda seconds: answers.pop(0), interval=0)
        self.assertIs(CURRENT, pin.release(1))
        self.assertIs(OCATA, pin.release(1))
        self.assertEqual([], answers)
