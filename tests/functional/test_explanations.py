# SPDX-License-Identifier: Apache-2.0
"""Explanations of requests with groups, funnels and headroom, over the contract and over HTTP."""

from placement_rpc import exception
from placement_rpc.api import CandidateGroup, CandidatesRequest, ResourceRequest
from placement_rpc.candidates.index import SHARES
from tests import base, http

PATH = "/resource_providers"


def request(*groups, **more):
    """Return a request with groups, each a dict of the values of a group."""
    return CandidatesRequest(groups=[CandidateGroup(**each) for each in groups], **more)


def traits(api, uuid, *names):
    """Set the traits of a provider."""
    api.set_provider_traits(None, uuid, list(names), api.get_provider(None, uuid).generation)


class GroupsTest(base.ContractTest):

    def made(self, name, parent, inventories):
        uuid = self.api.create_provider(None, name, parent_provider_uuid=parent).uuid
        self.api.set_inventory(None, uuid, [
            base.inventory(each, values) for each, values in inventories.items()])
        return uuid

    def setUp(self):
        super().setUp()
        self.api.create_trait(None, "CUSTOM_FAST")
        self.zone = base.new_uuid()
        self.node = self.provider("node", VCPU=8, MEMORY_MB=4096)
        self.api.set_aggregates(None, self.node, [self.zone])
        traits(self.api, self.node, "HW_CPU_X86_AVX2")
        self.gpus = [self.made(f"gpu{number}", self.node, {"VGPU": number + 1})
                     for number in range(2)]
        traits(self.api, self.gpus[1], "CUSTOM_FAST")
        self.small = self.provider("small", VCPU=1)

    def reasons(self, wanted, **values):
        """Return for each root's name a list of (rule, group, class, by, provider's name)."""
        names = {each.uuid: each.name for each in self.api.list_providers(None).objects}
        found = self.api.explain(None, wanted, **values)
        for each in found.objects:
            self.assertEqual(each.fits, not each.reasons)
        return {each.name: [
            (reason["rule"], reason["group"], reason["resource_class"], reason["by"],
             names.get(reason["provider_uuid"])) for reason in each.reasons]
            for each in found.objects}

    def test_each_group(self):
        some = {"resources": {"VCPU": 2, "MEMORY_MB": 1024}}
        found = self.reasons(request(
            some, {"suffix": "_G", "resources": {"VGPU": 2}, "required": [["CUSTOM_FAST"]]}))
        self.assertEqual({"node": [], "small": [
            ("capacity", "", "VCPU", 1, "small"), ("inventory", "", "MEMORY_MB", 1024, None),
            ("inventory", "_G", "VGPU", 2, None)]}, found)
        found = self.reasons(request(
            some, {"suffix": "_G", "resources": {"VGPU": 3}, "required": [["CUSTOM_FAST"]]}))
        # Of the two devices, the one that lacks least is shown.
        self.assertEqual([("capacity", "_G", "VGPU", 1, "gpu1")], found["node"])

    def test_a_provider_that_shares_with_a_tree_in_a_forbidden_aggregate(self):
        shared = base.new_uuid()
        storage = self.provider("storage", DISK_GB=100)
        traits(self.api, storage, SHARES)
        for uuid, aggregates in ((storage, [shared]), (self.node, [shared, self.zone])):
            self.api.set_aggregates(None, uuid, aggregates)
        found = self.reasons(request({"resources": {"DISK_GB": 1}, "not_member_of": [self.zone]}))
        self.assertEqual([("not_member_of", "", None, None, "storage")], found["node"])
        self.assertEqual([], found["storage"])

    def test_rules_about_all_groups(self):
        groups = [{"suffix": f"{number}", "resources": {"VGPU": 1}} for number in range(3)]
        for policy, expected in (("none", []), ("isolate", ["group_policy"])):
            found = self.reasons(request(*groups, group_policy=policy))
            self.assertEqual(expected, [each[0] for each in found["node"]])
        self.assertEqual([("capacity", None, None, None, None)], self.reasons(request(
            *groups, {"suffix": "3", "resources": {"VGPU": 1}}))["node"])
        found = self.reasons(request(
            {"suffix": "1", "resources": {"VGPU": 1}, "required": [["CUSTOM_FAST"]]},
            {"suffix": "2", "resources": {"VGPU": 1}, "forbidden": ["CUSTOM_FAST"]},
            same_subtree=[["1", "2"]]))
        self.assertEqual(["same_subtree"], [each[0] for each in found["node"]])
        found = self.reasons(request(
            {"resources": {"VCPU": 1}}, root_required=["CUSTOM_FAST"],
            root_forbidden=["HW_CPU_X86_AVX2"]))
        self.assertEqual({"node": ["root_required", "root_forbidden"],
                          "small": ["root_required"]}, {
            name: [each[0] for each in reasons] for name, reasons in found.items()})

    def test_traits_together(self):
        wanted = {"resources": {"VCPU": 1, "VGPU": 1}}
        self.assertEqual([], self.reasons(request(
            {**wanted, "required": [["CUSTOM_FAST"], ["HW_CPU_X86_AVX2"]]}))["node"])
        self.assertEqual([("required", "", None, None, None)], self.reasons(request(
            {**wanted, "required": [["HW_CPU_X86_AVX"]]}))["node"])

    def test_pages_of_trees(self):
        wanted = request({"resources": {"VCPU": 1}})
        self.assertEqual(["node"], list(self.reasons(wanted, limit=1)))
        self.assertEqual(["small"], list(self.reasons(wanted, marker=self.node)))
        self.assertRaises(exception.ProviderNotFound, self.api.explain, None, wanted,
                          marker=base.new_uuid())
        self.assertRaises(exception.TraitNotFound, self.api.explain, None, request(
            {"resources": {"VCPU": 1}}, root_required=["CUSTOM_NONE"]))
        self.assertRaises(exception.InvalidInput, self.api.explain, None, request())

    def steps(self, wanted):
        return [(step["rule"], step["group"], step["resource_class"], step["providers"],
                 step["trees"]) for step in self.api.explain(None, wanted, funnel=True).funnel]

    def test_funnel(self):
        self.assertEqual([
            ("fleet", None, None, 4, 2), ("root_required", None, None, 3, 1),
            ("inventory", "", None, 1, 1), ("member_of", "", None, 1, 1),
            ("required", "", None, 1, 1), ("capacity", "", "VCPU", 1, 1),
            ("inventory", "_G", None, 2, 1), ("required", "_G", None, 1, 1),
            ("capacity", "_G", "VGPU", 0, 0)], self.steps(request(
                {"resources": {"VCPU": 2}, "member_of": [[self.zone]],
                 "required": [["HW_CPU_X86_AVX2"]]},
                {"suffix": "_G", "resources": {"VGPU": 3}, "required": [["CUSTOM_FAST"]]},
                root_required=["HW_CPU_X86_AVX2"])))

    def test_funnel_of_a_flat_request(self):
        found = self.steps(ResourceRequest(
            resources={"VCPU": 2}, member_of=[[base.new_uuid(), self.zone]]))
        self.assertEqual([
            ("fleet", None, None, 4, 2), ("inventory", None, None, 2, 2),
            ("member_of", None, None, 1, 1), ("capacity", None, "VCPU", 1, 1)], found)
        self.assertIsNone(self.api.explain(
            None, ResourceRequest(resources={"VCPU": 2})).value("funnel"))

    def test_funnel_of_equal_groups(self):
        found = self.steps(request(*(
            {"suffix": f"{number}", "resources": {"VGPU": 1}} for number in range(4))))
        self.assertEqual([("fleet", None), ("inventory", "0"), ("capacity", "0"),
                          ("together", None)], [each[:2] for each in found])
        self.assertEqual([2, 1, 1, 0], [each[-1] for each in found])


class HTTPTest(http.HTTPTest):

    def setUp(self):
        super().setUp()
        self.zone = base.new_uuid()
        self.nodes = [base.new_uuid() for _ in range(3)]
        for number, uuid in enumerate(self.nodes):
            self.api.create_provider(None, f"node{number}", uuid)
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", 2 * number)]
                                   if number else [])
        self.api.set_aggregates(None, self.nodes[2], [self.zone])

    def post(self, question, body, status=200):
        answer = self.send("POST", f"{PATH}?{question}", body)
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.json

    def test_headroom(self):
        body = {"resources": {"VCPU": 2}, "by": "aggregate"}
        self.assertEqual({
            "count": 3, "at_most": 3, "exact": True, "by": "aggregate",
            "limits": [{"resource_class": "VCPU", "groups": [""], "trees": 2}],
            "parts": [{"name": self.zone, "count": 2, "at_most": 2, "limits": {"VCPU": 1}}]},
            self.post("headroom", body))
        body = {"groups": [{"suffix": "1", "resources": {"VCPU": 2}, "member_of": [[self.zone]]}]}
        found = self.post("headroom", body)
        self.assertEqual((2, None, []), (found["count"], found["by"], found["parts"]))

    def test_explanations_of_groups(self):
        found = self.post("explain", {"groups": [{"resources": {"VCPU": 3}}], "limit": 2})
        self.assertEqual([(False, "inventory"), (False, "capacity")], [
            (each["fits"], each["reasons"][0]["rule"]) for each in found[PATH[1:]]])
        self.assertEqual(["fleet", "inventory", "capacity"],
                         [step["rule"] for step in found["funnel"]])
        self.assertEqual([3, 2, 1], [step["providers"] for step in found["funnel"]])

    def test_the_first_page_has_a_funnel(self):
        body = {"resources": {"VCPU": 3}, "limit": 2}
        self.assertEqual([3, 2, 1], [
            step["providers"] for step in self.post("explain", body)["funnel"]])
        found = self.post("explain", {**body, "marker": self.nodes[1]})
        self.assertEqual((1, None), (len(found[PATH[1:]]), found["funnel"]))

    def test_the_funnel_is_a_choice(self):
        body = {"groups": [{"resources": {"VCPU": 2}}]}
        self.assertIsNone(self.post("explain", {**body, "funnel": False})["funnel"])
        marker = self.post("explain", {**body, "limit": 1})[PATH[1:]][0]["uuid"]
        self.assertEqual(self.post("explain", body)["funnel"], self.post(
            "explain", {**body, "marker": marker, "funnel": True})["funnel"])

    def test_bad_bodies(self):
        for body in ({}, {"groups": []}, {"groups": [{}]}, {"groups": [{"suffix": "1"}]},
                     {"resources": {"VCPU": 1}, "groups": [{"resources": {"VCPU": 1}}]},
                     {"resources": {"VCPU": 1}, "group_policy": "none"},
                     {"groups": [{"resources": {"VCPU": 1}}] * 2},
                     {"groups": [{"resources": {"CUSTOM_NONE": 1}}]},
                     {"groups": [{"resources": {"VCPU": 1}, "required": [["nope"]]}]},
                     {"groups": [{"resources": {"VCPU": 1}}], "root_required": ["CUSTOM_NONE"]},
                     {"groups": [{"resources": {"VCPU": 1}}], "same_subtree": [["_A"]]},
                     {"groups": [{"resources": {"VCPU": 10 ** 30}}]},
                     {"groups": [{"suffix": str(number), "resources": {"VCPU": 1}}
                                 for number in range(101)]}):
            for question in ("explain", "headroom"):
                self.post(question, body, 400)
        self.post("headroom", {"resources": {"VCPU": 1}, "by": "colour"}, 400)
        self.post("headroom", {"resources": {"VCPU": 1}, "limit": 1}, 400)
