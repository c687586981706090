# SPDX-License-Identifier: Apache-2.0
"""Calls that this library's client would not make: an error, and nothing written."""

import sqlalchemy as sa

from placement_rpc import exception, manager
from placement_rpc.context import RequestContext
from placement_rpc.db import models
from placement_rpc.rpc.dispatcher import Dispatcher
from tests import base


class RawTest(base.ContractTest):
    """Calls as a program without this library's client could make them."""

    def setUp(self):
        super().setUp()
        self.uuid = self.provider(VCPU=8)
        self.before = self.rows()

    def rows(self):
        with self.service.database.reader() as tx:
            return {table.name: tx.execute(
                sa.select(sa.func.count()).select_from(table)).scalar()
                for table in models.metadata.sorted_tables
                # What processes write on their own account.
                if table.name not in ("services", "leases", "relay_state")}

    def refused(self, code, method, **arguments):
        arguments.setdefault("request_id", f"raw-{base.new_uuid()}")
        if arguments["request_id"] is ...:
            del arguments["request_id"]
        error = self.assertRaises(
            exception.PlacementException, self.api.sender.call, RequestContext(), method,
            arguments, 10)
        self.assertEqual(code, error.code, error.text)
        self.assertEqual(self.before, self.rows(), "something was written")
        return error.text

    def claim_primitive(self, version="1.0", **data):
        data = {"consumer_uuid": base.new_uuid(), "project_id": "project", "user_id": "user",
                "allocations": {self.uuid: {"VCPU": 1}}, **data}
        return {"placement_object.name": "Claim", "placement_object.namespace": "placement",
                "placement_object.version": version, "placement_object.data": data,
                "placement_object.changes": sorted(data)}

    def test_amounts(self):
        for amount in (0, -1, 2 ** 31, 10 ** 30, 1.5, "1", True, None, [1], {}):
            text = self.refused(
                "placement.input.invalid", "claim_allocations",
                claim=self.claim_primitive(allocations={self.uuid: {"VCPU": amount}}))
            self.assertIn("VCPU", text)

    def test_shapes_of_allocations(self):
        for allocations in ({}, [], "text", {self.uuid: {}}, {self.uuid: 5},
                            {"not-a-uuid": {"VCPU": 1}}, {self.uuid: {"vcpu": 1}},
                            {self.uuid: {"PCI_GENERIC": 1, "PCI_DEVICE": 1}},
                            {self.uuid: {"VCPU": 1}, self.uuid.upper(): {"VCPU": 1}}):
            text = self.refused("placement.input.invalid", "claim_allocations",
                                claim=self.claim_primitive(allocations=allocations))
            self.assertIn("allocations", text)

    def test_uuids(self):
        for value in ("", "nonsense", 5, None, self.uuid + "0", "../" + self.uuid, "0x" + "1" * 30,
                      "1_" * 16, "\uff11" * 32, " " * 31 + "1"):
            self.assertIn("consumer_uuid", self.refused(
                "placement.input.invalid", "claim_allocations",
                claim=self.claim_primitive(consumer_uuid=value)))
            for method in ("get_provider", "get_inventory", "get_usages", "get_aggregates"):
                self.assertIn("provider_uuid", self.refused(
                    "placement.input.invalid", method, provider_uuid=value, request_id=...))

    def test_projects_and_users(self):
        for value in ("", "x" * 256, "line\nbreak", 5, None):
            self.assertIn("project_id", self.refused(
                "placement.input.invalid", "claim_allocations",
                claim=self.claim_primitive(project_id=value)))

    def test_what_is_missing_is_named(self):
        for name in ("consumer_uuid", "project_id", "allocations"):
            primitive = self.claim_primitive()
            del primitive["placement_object.data"][name]
            self.assertIn(name, self.refused(
                "placement.input.invalid", "claim_allocations", claim=primitive))

    def test_a_class_or_a_provider_that_does_not_exist(self):
        consumer = self.claim_primitive
        for code, allocations in (
                ("placement.resource_class.not_found", {self.uuid: {"CUSTOM_NOT_THERE": 1}}),
                ("placement.resource_provider.not_found", {base.new_uuid(): {"VCPU": 1}})):
            error = self.assertRaises(
                exception.PlacementException, self.api.sender.call, RequestContext(),
                "claim_allocations",
                {"claim": consumer(allocations=allocations), "request_id": base.new_uuid()}, 10)
            self.assertEqual(code, error.code)
        # Their outcomes and the events of the refusals are kept, and nothing else is.
        self.assertEqual({**self.before, "requests": self.before["requests"] + 2,
                          "events": self.before["events"] + 2}, self.rows())

    def test_values_that_are_not_the_object_are_refused(self):
        for value in (None, 5, "Claim", [], {}, {"placement_object.name": "Claim"},
                      self.claim_primitive() | {"placement_object.name": "NoSuchObject"},
                      self.claim_primitive() | {"placement_object.namespace": "nova"},
                      self.claim_primitive() | {"placement_object.data": 5},
                      {"placement_object.name": "ResourceClass",
                       "placement_object.namespace": "placement",
                       "placement_object.version": "1.0",
                       "placement_object.data": {"name": "VCPU"}}):
            self.refused("placement.input.invalid", "claim_allocations", claim=value)

    def test_an_object_of_a_newer_version(self):
        for version in ("1.99", "2.0"):
            text = self.refused("placement.object.incompatible_version", "claim_allocations",
                                claim=self.claim_primitive(version=version))
            self.assertIn(version, text)
            self.assertIn("Claim", text)

    def test_the_id_of_a_creation_is_checked_by_the_client_too(self):
        for request_id in ("\ud800", "a b", "x" * 51):
            self.assertRaises(exception.InvalidInput, self.api.create_provider, None, "provider",
                              request_id=request_id)

    def test_request_ids(self):
        for value in ("", "x" * 51, "with space", "new\nline", 5, None):
            self.assertIn("request_id", self.refused(
                "placement.input.invalid", "claim_allocations", claim=self.claim_primitive(),
                request_id=value))

    def test_generations_limits_and_names(self):
        for value in (-1, 1.5, "1", True):
            self.assertIn("generation", self.refused(
                "placement.input.invalid", "delete_provider", provider_uuid=self.uuid,
                generation=value))
            self.assertIn("limit", self.refused(
                "placement.input.invalid", "list_providers", limit=value, request_id=...))
        for value in ("vcpu", "", 5, "A" * 256, "VCPU; DROP TABLE consumers"):
            self.refused("placement.input.invalid", "delete_inventory",
                         provider_uuid=self.uuid, name=value)

    def test_inventories(self):
        for data, word in (
                ({"total": 0}, "total"), ({"total": -1}, "total"), ({"total": 2 ** 31}, "total"),
                ({}, "total"), ({"total": 8, "step_size": 0}, "step_size"),
                ({"total": 8, "allocation_ratio": -1}, "ratio of -1"),
                ({"total": 8, "allocation_ratio": "2"}, "allocation_ratio"),
                ({"total": 8, "allocation_ratio": 1e300}, "allocation_ratio"),
                ({"total": 8, "allocation_ratio": 10 ** 400}, "allocation_ratio"),
                ({"total": 8, "reserved": 9}, "reserved")):
            primitive = {
                "placement_object.name": "Inventory", "placement_object.namespace": "placement",
                "placement_object.version": "1.0",
                "placement_object.data": {"resource_class": "DISK_GB", **data}}
            error = self.assertRaises(
                exception.InvalidInput, self.api.sender.call, RequestContext(),
                "add_inventory", {"provider_uuid": self.uuid, "given": primitive,
                                  "request_id": base.new_uuid()}, 10)
            self.assertIn(word, error.text)
        self.assertEqual(1, len(self.api.get_inventory(None, self.uuid).objects))

    def test_fields_that_there_are_not(self):
        self.assertIn("generatoin", self.refused(
            "placement.input.invalid", "claim_allocations",
            claim=self.claim_primitive(generatoin=1)))

    def test_lists_without_end(self):
        lists = [[base.new_uuid()]] * 17
        self.refused("placement.input.batch_too_large", "list_providers", member_of=lists,
                     request_id=...)
        self.refused("placement.input.batch_too_large", "list_providers",
                     member_of=[[base.new_uuid()] * 501], request_id=...)

    def test_depths_without_end(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        dispatcher = Dispatcher(manager.Manager(self.service.conf, self.service.database))
        for method, arguments in (("get_provider", {"provider_uuid": deep}),
                                  ("claim_allocations", {"claim": deep, "request_id": "one"})):
            self.assertRaises(exception.InvalidInput, dispatcher.invoke, method, {}, arguments)
        # Taken apart by hand: the interpreter would do it by recursion.
        while deep:
            deep = deep.pop()

    def test_contexts_and_arguments_that_are_none(self):
        dispatcher = Dispatcher(manager.Manager(self.service.conf, self.service.database))
        for context in (None, 5, [], {"deadline": "soon"}, {"deadline": []}):
            self.assertRaises(exception.InvalidInput, dispatcher.invoke, "ping", context, {})
        for arguments in (None, 5, []):
            self.assertRaises(exception.InvalidInput, dispatcher.invoke, "ping", {}, arguments)

    def test_ids_of_requests_to_ask_for(self):
        for value in ("\u00e9", "a b", "", "x" * 70, 5, "one#", "one#two"):
            self.refused("placement.input.invalid", "get_request_result", settled_id=value,
                         request_id=...)

    def test_methods_and_arguments_that_there_are_not(self):
        for method in ("no_such_method", "_settle", "__init__", "database", "target", ""):
            self.refused("placement.rpc.unsupported", method)
        self.assertIn("colour", self.refused(
            "placement.rpc.unsupported", "get_provider", provider_uuid=self.uuid, colour="red",
            request_id=...))
        self.assertIn("provider_uuid", self.refused(
            "placement.rpc.unsupported", "get_provider", request_id=...))
