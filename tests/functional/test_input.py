# SPDX-License-Identifier: Apache-2.0
"""Bad input: an error with a stable code and the wrong value, and nothing written."""

import copy
import inspect
import random
import uuid as uuids

from placement_rpc import exception, manager
from placement_rpc.context import RequestContext
from placement_rpc.objects.base import PlacementObjectRegistry
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.event_page import EventPage
from placement_rpc.objects.nova.base import NovaObjectRegistry
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.rpc.dispatcher import Dispatcher
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base

# Stands for a new uuid; it is a uuid itself.
_NEW_UUID = "00000000-0000-4000-8000-000000000000"


class _Junk:
    """Arguments of calls, most of them of wrong types; the same ones for the same seed."""

    def __init__(self, seed, uuid):
        self._random = random.Random(seed)
        self._uuid = uuid
        self._plain_values = (
            None, "", "x", 0, -1, 1, 5, 1.5, -0.0, 1e300, float("nan"), float("inf"), True, False,
            10 ** 30, 2 ** 63, "\x00", "\ud800", "x" * 300, "1", "VCPU", "CUSTOM_A", "1.0",
            "1.99", uuid, _NEW_UUID, "req-1", "ComputeNode", "get_by_uuid", "create",
            "save", "get_by_pagination", "2026-11-21T10:00:00Z", "null", "[]", "10.0.0.1")
        # By class and field, those of these and a few others that it accepts.
        self._accepted = {}
        self._classes = {name: found[0]
                         for registry in (PlacementObjectRegistry, NovaObjectRegistry)
                         for name, found in sorted(registry.obj_classes().items())}

    def value(self, depth=0):
        kinds = [self._plain] * 3 + ([self._list, self._dict, self._object, self._object]
                                     if depth < 4 else [])
        return self._random.choice(kinds)(depth)

    def _plain(self, _depth):
        value = self._random.choice(self._plain_values)
        return base.new_uuid() if value == _NEW_UUID else value

    def _list(self, depth):
        return [self.value(depth + 1) for _ in range(self._random.randrange(3))]

    def _dict(self, depth):
        keys = ("", "x", "VCPU", self._uuid, "limit", "marker", "ComputeNode", "1.0",
                "placement_object.name", "placement_object.version", "placement_object.data",
                "nova_object.name", "allocations")
        return {self._random.choice(keys): self.value(depth + 1)
                for _ in range(self._random.randrange(4))}

    def _object(self, depth):
        return self.object(self._random.choice(list(self._classes)), depth)

    def object(self, name, depth=0):
        """Return an object in wire format with values that its fields accept, and a few others."""
        cls = self._classes[name]
        key = cls._obj_primitive_key
        primitive = {key("name"): name, key("namespace"): cls.OBJ_PROJECT_NAMESPACE,
                     key("version"): cls.VERSION,
                     key("data"): {field: self._field(cls, field, depth)
                                   for field in cls.fields if self._random.random() < 0.9},
                     key("changes"): sorted(cls.fields)}
        if self._random.random() < 0.1:
            primitive[self._random.choice(list(primitive))] = self.value(depth + 1)
        return primitive

    def _field(self, cls, field, depth):
        """Return a value that the field accepts, and one of twenty times any."""
        if self._random.random() < 0.05:
            return self.value(depth + 1)
        nested = getattr(cls.fields[field], "objname", None)
        if nested in self._classes:
            inner = self.object(nested, depth + 1)
            return [inner] if "List" in type(cls.fields[field]).__name__ else inner
        if (cls, field) not in self._accepted:
            self._accepted[cls, field] = self._accepted_by(cls, field)
        value = copy.deepcopy(self._random.choice(self._accepted[cls, field]))
        return base.new_uuid() if value == _NEW_UUID else value

    def _accepted_by(self, cls, field):
        accepted = []
        for value in (*self._plain_values, [], {}, {"VCPU": 1}, {self._uuid: {"VCPU": 1}},
                      {self._uuid: 1}, ["CUSTOM_A"], [["CUSTOM_A"]], [[self._uuid]]):
            try:
                cls.fields[field].from_primitive(cls(), field, value)
                cls.fields[field].coerce(cls(), field, value)
            except Exception:  # The library's fields raise anything.
                continue
            accepted.append(value)
        return accepted or [None]

    def arguments(self, names, good):
        """Return a value for each of the names: of one any, of the others a good one."""
        return {name: self.value() if name not in good or self._random.random() < 1 / len(names)
                else good[name] for name in names}


class MissingArgumentTest(base.TestCase):
    """None where a call needs a value is an error of this project, with a code."""

    def test_every_call_of_the_client(self):
        service = self.useFixture(placement_fixtures.RunningService("local"))
        tried = set()
        for name in contract.CALLS:
            call = getattr(service.api, name)
            needed = [each for each in list(inspect.signature(call).parameters.values())[1:]
                      if each.default is each.empty]
            if needed:
                error = self.assertRaises(
                    exception.InvalidInput, call, None, *(None for _ in needed))
                self.assertEqual("placement.input.invalid", error.code, name)
                tried.add(name)
        self.assertLess({"create_trait", "create_provider", "set_provider_traits"}, tried)


class JunkTest(base.TestCase):
    """Whatever the arguments of a call are, it ends with an answer or with an error that says why.

    Any other error is an incident with a traceback in the log.
    """

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService("local"))
        self.uuid = self.service.api.create_provider(None, "provider").uuid
        self.service.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 8)])
        self.dispatcher = Dispatcher(self.service.api.sender._dispatcher._endpoint)

    def names(self, method):
        return list(inspect.signature(getattr(manager.Manager, method)).parameters)[2:]

    def call(self, method, arguments, context=None):
        try:
            return self.dispatcher.invoke(method, context or {}, arguments)
        except exception.RemoteFailure:
            self.fail(f"{method} {arguments!r}")
        except exception.PlacementException as error:
            return error

    def good(self, number, junk):
        """Return a value of the right type for each argument."""
        node = {"nova_object.name": "ComputeNode", "nova_object.namespace": "nova",
                "nova_object.version": "1.19", "nova_object.data": {
                    "host": f"h{number % 3}", "hypervisor_hostname": "h"}}
        claim = base.claim({self.uuid: {"VCPU": 1}} if number % 4 else None).obj_to_primitive()
        wanted = ResourceRequest(resources={"VCPU": 1}).obj_to_primitive()
        one = number % 2
        return {
            "request_id": f"junk-{number}", "provider_uuid": self.uuid, "name": "CUSTOM_A",
            "consumer_uuid": base.new_uuid(), "source_uuid": base.new_uuid(),
            "target_uuid": base.new_uuid(), "marker": None, "limit": 5, "after": 0,
            "generation": None, "consumer_generation": None, "member_of": None, "heal": bool(one),
            "claim": claim if one else junk.object("Claim"),
            "claims": junk.object("ClaimList"), "provider": junk.object("ResourceProvider"),
            "inventories": junk.object("InventoryList"), "aggregates": junk.object(
                "ProviderAggregates"),
            "given": junk.object("Inventory") if one else {
                "placement_object.name": "ResourceClass", "placement_object.version": "1.0",
                "placement_object.namespace": "placement",
                "placement_object.data": {"name": "CUSTOM_A"}},
            "wanted": wanted if one else junk.object(
                ("ResourceRequest", "CandidatesRequest")[number // 2 % 2]),
            "microversion": "1.39", "deflate": bool(one),
            "objname": "ComputeNodeList" if one else "ComputeNode", "args": [], "kwargs": {},
            "objmethod": "get_by_pagination" if one else "save",
            "object_versions": {"ComputeNode": "1.19"},
            "objinst": node if one else junk.object("ComputeNode"),
            "node": node if one else junk.object("ComputeNode"),
            "allocations": {base.new_uuid(): {"VCPU": 1}} if one else {}, "snapshot_at": 5.0,
            "shares_disk": None, "devices_in_use": None, "settled_id": f"junk-{number}"}

    def test_calls(self):
        junk, number = _Junk(2027, self.uuid), 0
        for _ in range(base.examples(20)):
            for method in sorted(contract.CALLS):
                number += 1
                names = self.names(method)
                if method == "delete_provider":
                    names.remove("provider_uuid")
                arguments = junk.arguments(names, self.good(number, junk))
                self.call(method, {"provider_uuid": base.new_uuid(), **arguments}
                          if method == "delete_provider" else arguments)
        self.assertNotIn("Traceback", self.log.output)

    def test_contexts(self):
        junk = _Junk(1, self.uuid)
        names = ("user_id", "project_id", "roles", "system_scope", "request_id", "deadline",
                 "global_request_id", "manifest", "rule")
        for _ in range(base.examples(300)):
            self.call("ping", {}, {name: junk.value() for name in names
                                   if junk._random.random() < 0.3})

    def test_remotable_methods(self):
        junk = _Junk(3, self.uuid)
        for _ in range(base.examples(20)):
            for name, found in sorted(NovaObjectRegistry.obj_classes().items()):
                for method in sorted(dir(found[0])):
                    if getattr(getattr(found[0], method, None), "remotable", False):
                        self.call("object_class_action_versions", {
                            "objname": name, "objmethod": method, "object_versions": {},
                            "args": [junk.value() for _ in range(junk._random.randrange(3))],
                            "kwargs": {}})

    def test_a_page_of_nodes(self):
        for name in ("limit", "marker"):
            for value in ("", [], {}, False, -1, 1.5, "5"):
                error = self.call("object_class_action_versions", {
                    "objname": "ComputeNodeList", "objmethod": "get_by_pagination",
                    "object_versions": {}, "args": [], "kwargs": {name: value}})
                self.assertEqual("placement.input.invalid", error.code)
                self.assertIn(name, error.text)

    def test_an_object_with_something_that_is_none(self):
        for broken in ({"placement_object.name": {}}, {"placement_object.name": ["Claim"]},
                       {"placement_object.name": "Claim"},
                       {"placement_object.name": "Claim", "placement_object.data": 5},
                       {"placement_object.name": "Claim", "placement_object.data": {},
                        "placement_object.changes": 5},
                       {"placement_object.name": "Claim", "placement_object.data": {},
                        "placement_object.changes": [{}]}, {"nova_object.name": {}}):
            page = EventPage(events=[broken], position=5).obj_to_primitive()
            answer = self.call("object_backport_versions", {
                "objinst": page, "object_versions": {"EventPage": "1.0", "Claim": "1.0"}})
            self.assertEqual([broken], answer["placement_object.data"]["events"])


class ClientTest(base.ContractTest):
    """The client's own objects refuse it at once."""

    def test_objects_refuse_what_their_fields_are_not(self):
        for values in ({"consumer_uuid": "nonsense"}, {"allocations": {}, "project_id": 5},
                       {"allocations": {base.new_uuid(): {"VCPU": 0}}}):
            self.assertRaises(exception.InvalidInput, Claim, **values)
        self.assertRaises(exception.InvalidInput, ResourceRequest, resources={})
        self.assertRaises(exception.InvalidInput, ResourceRequest, resources={"VCPU": 1},
                          limit=0)

    def test_a_claim_without_an_owner(self):
        uuid = self.provider(VCPU=8)
        nobodys = Claim(consumer_uuid=base.new_uuid(), allocations={uuid: {"VCPU": 1}})
        self.assertRaises(
            exception.InvalidInput, self.api.claim_allocations, None, nobodys)
        self.api.claim_allocations(
            RequestContext(user_id="ada", project_id="blue"), nobodys)
        owner = self.api.get_allocations(None, nobodys.consumer_uuid).consumer
        self.assertEqual(("blue", "ada"), (owner.project_id, owner.user_id))

    def test_names_with_blanks_at_their_ends(self):
        uuid = self.api.create_provider(None, " pool").uuid
        for name in ("pool", "pool ", " "):
            self.assertEqual(name, self.api.update_provider(None, uuid, name).name)
            found, = self.api.list_providers(None, name=name).objects
            self.assertEqual((uuid, name), (found.uuid, found.name))
        for name in ("pool\u00a0", "po\nol", "\x00", ""):
            self.assertRaises(exception.InvalidInput, self.api.create_provider, None, name)

    def test_arguments_of_another_kind(self):
        uuid = self.provider()
        for call, *arguments in (
                (self.api.claim_allocations, "x"), (self.api.claim_allocations, None),
                (self.api.claim_batch, 5), (self.api.claim_batch, ["x"]),
                (self.api.set_inventory, uuid, 5), (self.api.set_inventory, uuid, [1]),
                (self.api.set_aggregates, uuid, None), (self.api.set_aggregates, uuid, [5]),
                (self.api.get_by_request, "VCPU"), (self.api.get_provider, None)):
            self.assertRaises(exception.InvalidInput, call, None, *arguments)
        for values in ({"limit": "5"}, {"limit": -1}, {"timeout": "soon"}, {"timeout": -1}, *(
                {name: value} for value in (False, 0, "", {}) for name in (
                    "member_of", "not_member_of", "required", "forbidden"))):
            self.assertRaises(exception.InvalidInput, self.api.list_providers, None, **values)
        for marker in (False, 0, "", "a b"):
            self.assertRaises(
                exception.InvalidInput, self.api.resource_class_list, None, marker=marker)
        self.assertRaises(exception.InvalidInput, base.claim, {uuid: {"VCPU": 10 ** 5000}})
        self.assertRaises(exception.InvalidInput, Claim, colour="red")
        for groups in (None, 5, [{"resources": {"VCPU": 1}}]):
            self.assertRaises(exception.InvalidInput, CandidatesRequest, groups=groups)
        for server in (0, -1, 1.5):
            self.assertRaises(exception.InvalidInput, self.api.verify_index, None, server)

    def test_uuids_that_are_no_texts(self):
        """But objects of Python's module."""
        uuid = self.provider(VCPU=1)
        consumer, _ = self.claim({uuid: {"VCPU": 1}})
        provider, holder = uuids.UUID(uuid), uuids.UUID(consumer)
        self.assertEqual(uuid, self.api.get_provider(None, provider).uuid)
        self.assertEqual(1, self.api.get_usages(None, provider).objects[0].used)
        self.assertEqual(1, len(self.api.get_allocations(None, holder).objects))
        self.assertEqual([], self.api.list_providers(None, marker=provider).objects)
        self.api.release_allocations(None, holder)
        self.assertRaises(exception.InvalidInput, self.api.get_inventory, None, object())

    def test_an_invalid_id_of_a_request(self):
        """No other takes its place: the request could be made twice."""
        provider = self.provider(VCPU=1)
        for request_id in ("", 0, [], " "):
            for call, argument in ((self.api.create_provider, f"provider {request_id}"),
                                   (self.api.claim_allocations,
                                    base.claim({provider: {"VCPU": 1}})),
                                   (self.api.release_allocations, base.new_uuid())):
                self.assertRaises(
                    exception.InvalidInput, call, None, argument, request_id=request_id)
            self.assertRaises(exception.InvalidInput, self.api.release_allocations, None,
                              base.new_uuid(), request_id=request_id, cast=True)

    def test_a_cast_of_a_release_at_an_invalid_generation(self):
        """Nothing could be reported to its caller later."""
        provider = self.provider(VCPU=1)
        consumer, _ = self.claim({provider: {"VCPU": 1}})
        for generation in ("1", -1, 1.5, True, 10 ** 30, []):
            self.assertRaises(exception.InvalidInput, self.api.release_allocations, None,
                              consumer, generation, cast=True)

    def test_a_context_that_is_none(self):
        self.assertRaises(exception.InvalidInput, self.api.ping, {"user": "ada"})

    def test_a_claim_of_too_many_amounts(self):
        allocations = {base.new_uuid(): {"VCPU": 1} for _ in range(501)}
        error = self.assertRaises(
            exception.BatchTooLarge, self.api.claim_allocations, None, base.claim(allocations))
        self.assertEqual((500, 501), (error.kwargs["limit"], error.kwargs["size"]))
