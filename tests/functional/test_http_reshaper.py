# SPDX-License-Identifier: Apache-2.0
"""``POST /reshaper``, from microversion 1.30 on."""

import copy

from tests import base, http

_OWNER = {"project_id": "project", "user_id": "user"}


class ReshaperTest(http.HTTPTest):
    version = "1.30"

    def setUp(self):
        super().setUp()
        self.root = self.make("root", VCPU={"total": 8}, VGPU={"total": 4})
        self.child = self.api.create_provider(None, "child", parent_provider_uuid=self.root).uuid
        self.consumer = base.new_uuid()
        self.api.claim_allocations(None, base.claim(
            {self.root: {"VCPU": 1, "VGPU": 2}}, self.consumer))

    def claim(self, allocations=None, **values):
        return {"consumer_generation": 1, **_OWNER, **values, "allocations": {
            uuid: {"resources": resources} for uuid, resources in (
                allocations or {self.root: {"VCPU": 1}, self.child: {"VGPU": 2}}).items()}}

    def body(self, generation=2, claim=None, **of_child):
        return {
            "inventories": {
                self.root: {"resource_provider_generation": generation,
                            "inventories": {"VCPU": {"total": 8}}},
                self.child: {"resource_provider_generation": 0,
                             "inventories": {"VGPU": {"total": 4, **of_child}}}},
            "allocations": {self.consumer: claim or self.claim()}}

    def reshape(self, body, version=None, **headers):
        return self.send("POST", "/reshaper", body, version, **{"X_Roles": "service", **headers})

    def usages(self, uuid):
        return self.get(f"/resource_providers/{uuid}/usages")["usages"]

    def check_refused(self, status, code, words, answer):
        error = self.refused(status, answer)
        self.assertEqual(code, error["code"])
        self.assertIn(words, error["detail"])
        self.assertEqual({"VCPU": 1, "VGPU": 2}, self.usages(self.root))
        self.assertEqual({}, self.usages(self.child))

    def test_it_moves_inventory_in_use(self):
        answer = self.reshape(self.body(), Idempotency_Key="move")
        self.assertEqual((204, ""), (answer.status_code, answer.text))
        self.assertEqual({"VCPU": 1}, self.usages(self.root))
        self.assertEqual({"VGPU": 2}, self.usages(self.child))
        # The same request again has its first outcome, whatever has changed since.
        self.assertEqual(204, self.reshape(self.body(), Idempotency_Key="move").status_code)
        held = self.get(f"/allocations/{self.consumer}", version="1.28")
        self.assertEqual((2, {"VGPU": 2}), (
            held["consumer_generation"], held["allocations"][self.child]["resources"]))
        self.refused(409, self.reshape(self.body()))

    def test_before_1_30_and_other_methods(self):
        self.refused(404, self.reshape(self.body(), "1.29"))
        answer = self.send("GET", "/reshaper")
        self.assertEqual((405, "POST"), (answer.status_code, answer.headers["allow"]))

    def test_bodies_of_later_microversions(self):
        mappings = {"": [self.root], "_GPU": [self.child]}
        self.refused(400, self.reshape(self.body(claim=self.claim(mappings=mappings)), "1.33"))
        self.refused(400, self.reshape(self.body(claim=self.claim()), "1.38"))
        self.refused(400, self.reshape(
            self.body(claim=self.claim(consumer_type="INSTANCE")), "1.37"))
        answer = self.reshape(
            self.body(claim=self.claim(mappings=mappings, consumer_type="INSTANCE")), "1.38")
        self.assertEqual(204, answer.status_code, answer.text)
        self.assertEqual("INSTANCE", self.get(
            f"/allocations/{self.consumer}", version="1.38")["consumer_type"])

    def test_refusals(self):
        nowhere = base.new_uuid()
        lost = self.body()
        lost["inventories"][nowhere] = lost["inventories"].pop(self.child)
        unknown = self.body()
        unknown["inventories"][self.root]["inventories"] = {"CUSTOM_NOT_THERE": {"total": 1}}
        malformed, stale, nameless = self.body(), self.body(7), copy.deepcopy(lost)
        for body in malformed, stale:
            body["inventories"][self.root]["inventories"] = {"vcpu": {"total": 1}}
        nameless["inventories"][nowhere]["inventories"] = {"": {"total": 1}}
        new = self.body()
        new["allocations"] = {base.new_uuid(): self.claim({self.root: {"VCPU": 1}})}
        in_use = self.body()
        in_use["allocations"] = {}
        for status, code, words, body in (
                (400, "resource_provider.not_found", f"Resource provider {nowhere} in inventories "
                 "not found", lost),
                (409, "concurrent_update", "resource provider generation conflict for provider "
                 f"{self.root}: actual: 2, given: 7", self.body(7)),
                (409, "concurrent_update", "consumer generation conflict - expected null but got "
                 "1", new),
                (409, "concurrent_update", "consumer generation conflict - expected 1 but got "
                 "None", self.body(claim=self.claim(consumer_generation=None))),
                (400, "undefined_code", f"Allocation for resource provider '{nowhere}' that does "
                 "not exist", self.body(claim=self.claim({nowhere: {"VGPU": 1}}))),
                (400, "undefined_code", "No such resource class CUSTOM_NOT_THERE", unknown),
                (400, "undefined_code", "No such resource class vcpu", malformed),
                (409, "concurrent_update", "resource provider generation conflict", stale),
                (400, "resource_provider.not_found", f"Resource provider {nowhere} in inventories "
                 "not found", nameless),
                (409, "undefined_code", "Unable to allocate inventory", self.body(total=1)),
                (409, "undefined_code", "Unable to allocate inventory", self.body(max_unit=1)),
                (409, "inventory.inuse", "update conflict", in_use)):
            self.check_refused(status, f"placement.{code}", words, self.reshape(body))

    def test_bodies_that_are_not_valid(self):
        body = self.body()
        for wrong in (
                {}, {"inventories": body["inventories"]}, {"allocations": {}},
                {**body, "inventories": {}}, {**body, "cows": "moo"},
                {**body, "inventories": {"x": body["inventories"][self.root]}},
                {**body, "inventories": {"-" * 36: body["inventories"][self.root]}},
                {**body, "allocations": {self.consumer: {"allocations": {}}}},
                self.body(bad_field=1), self.body(total=0), self.body(total="4"),
                self.body(claim=self.claim({self.root: {}})),
                {**body, "inventories": {self.root: body["inventories"][self.root],
                                         self.root.upper(): body["inventories"][self.root]}}):
            self.assertEqual(400, self.reshape(wrong).status_code, wrong)

    def test_a_record_is_not_checked_and_a_claim_may_be_empty(self):
        body = self.body(claim={**self.claim(), "allocations": {}}, reserved=9, allocation_ratio=0)
        answer = self.reshape(body)
        self.assertEqual(204, answer.status_code, answer.text)
        self.assertEqual({"VCPU": 0}, self.usages(self.root))
        self.assertEqual({"allocations": {}}, self.get(f"/allocations/{self.consumer}"))

    def test_it_is_for_services(self):
        self.refused(403, self.reshape(self.body(), token="user", X_Roles="member"))
        self.refused(403, self.reshape(self.body(), token="user", X_Roles="admin"))
        answer = self.reshape(self.body(), token="user")
        self.assertEqual(204, answer.status_code, answer.text)
