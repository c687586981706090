# SPDX-License-Identifier: Apache-2.0
"""``openstack resource provider explain`` and ``headroom``: their requests, and their output."""

from tests.functional.test_osc_commands import AGGREGATE, OTHER, UUID, CommandTest


class ExplainTest(CommandTest):

    def test_a_line_for_each_reason(self):
        reason = {"rule": "capacity", "resource_class": "VCPU", "requested": 8, "allowed": 3,
                  "by": 5, "detail": "3 are free"}
        other = {**reason, "rule": "max_unit", "allowed": 4, "by": 4}
        self.server.on("POST /resource_providers", (200, {"resource_providers": [
            {"uuid": UUID, "name": "a", "generation": 1, "fits": True, "reasons": []},
            {"uuid": OTHER, "name": "b", "generation": 1, "fits": False,
             "reasons": [reason, other]}]}))
        lines = self.run_json("resource-provider", "explain", "--resource", "VCPU=8",
                              "--member-of", f"{AGGREGATE},{OTHER}", "--limit", "7")
        self.assertEqual(
            [("a", True, None, None), ("b", False, "capacity", 5), ("b", False, "max_unit", 4)],
            [(line["name"], line["fits"], line["rule"], line["by"]) for line in lines])
        request, = self.server.requests
        self.assertEqual({"explain": ""}, request["query"])
        self.assertEqual({"resources": {"VCPU": 8}, "limit": 7,
                          "member_of": [[AGGREGATE, OTHER]]}, request["body"])

    def test_a_person_sees_an_empty_cell_where_there_is_nothing(self):
        self.server.on("POST /resource_providers", (200, {"resource_providers": [
            {"uuid": UUID, "name": "a", "generation": 1, "fits": True, "reasons": []}]}))
        for style, told in (("table", "|"), ("csv", '""')):
            _, out, _ = self.openstack(
                "resource-provider", "explain", "--resource", "VCPU=8", "-f", style)
            self.assertIn(told, out)
            self.assertNotIn("None", out)

    def test_a_table_has_names_and_fits_100_columns(self):
        reason = {"rule": "required_traits", "resource_class": "CUSTOM_" + "BANDWIDTH_" * 4,
                  "requested": 2147483647, "allowed": 1, "by": 2147483646, "detail": "",
                  "group": "_GPU", "provider_uuid": OTHER}
        self.server.on("POST /resource_providers", (200, {"resource_providers": [
            {"uuid": UUID, "name": "compute-" * 12, "generation": 1, "fits": False,
             "reasons": [reason]}]}))
        self.server.on("GET /resource_providers", (200, {"resource_providers": [
            {"uuid": OTHER, "name": "gpu-of-rack-7"}]}))
        asked = ("resource-provider", "explain", "--resource", "VCPU=8", "--required", "A")
        _, out, _ = self.openstack(*asked)
        self.assertLessEqual(max(map(len, out.splitlines())), 100, out)
        for word in ("rack-7", "requested", "2147483647", "_GPU"):
            self.assertIn(word, out)
        for uuid in (UUID, OTHER):
            self.assertNotIn(uuid, out)
        _, out, _ = self.openstack(*asked, "-c", "uuid", "-c", "provider_uuid")
        self.assertIn(f"| {UUID} | {OTHER} |", out)

    def test_all_pages_are_read(self):
        def page(size):
            return (200, {"resource_providers": [
                {"uuid": f"{number}", "name": "a", "generation": 1, "fits": True, "reasons": []}
                for number in range(size)]})

        self.server.on("POST /resource_providers", page(100), page(5))
        lines = self.run_json("resource-provider", "explain", "--resource", "VCPU=8")
        self.assertEqual(105, len(lines))
        self.assertEqual([None, "99"],
                         [each["body"].get("marker") for each in self.server.requests])


    def test_groups(self):
        reason = {"rule": "capacity", "resource_class": "VGPU", "requested": 2, "allowed": 1,
                  "by": 1, "detail": "1 is free", "group": "_G", "provider_uuid": OTHER}
        self.server.on("POST /resource_providers", (200, {"resource_providers": [
            {"uuid": UUID, "name": "a", "generation": 1, "fits": False, "reasons": [reason]}]}))
        line, = self.run_json(
            "resource-provider", "explain", "--resource", "VCPU=8", "--required", "A,B",
            "--group", "_G", "--resource", "VGPU=2", "--forbidden", "C", "--in-tree", OTHER,
            "--group", "_H", "--resource", "VGPU=1", "--not-member-of", f"{AGGREGATE},{OTHER}",
            "--member-of", AGGREGATE, "--group-policy", "isolate", "--same-subtree", "_G,_H",
            "--root-required", "D", "--root-forbidden", "E")
        self.assertEqual(("a", False, "_G", OTHER, "capacity", 1), tuple(
            line[column] for column in (
                "name", "fits", "group", "provider_uuid", "rule", "by")))
        self.assertEqual({
            "groups": [
                {"suffix": "", "resources": {"VCPU": 8}, "required": [["A", "B"]]},
                {"suffix": "_G", "resources": {"VGPU": 2}, "forbidden": ["C"], "in_tree": OTHER},
                {"suffix": "_H", "resources": {"VGPU": 1},
                 "not_member_of": [AGGREGATE, OTHER], "member_of": [[AGGREGATE]]}],
            "group_policy": "isolate", "same_subtree": [["_G", "_H"]], "root_required": ["D"],
            "root_forbidden": ["E"], "limit": 100}, self.server.requests[0]["body"])

    def test_a_funnel(self):
        steps = [{"rule": "fleet", "group": None, "resource_class": None, "detail": "exist",
                  "providers": 9, "trees": 3},
                 {"rule": "capacity", "group": "", "resource_class": "VCPU", "detail": "have 8",
                  "providers": 0, "trees": 0}]
        self.server.on("POST /resource_providers", (
            200, {"resource_providers": [], "funnel": steps}))
        asked = ("resource-provider", "explain", "--funnel", "--resource", "VCPU=8")
        self.assertEqual(steps, self.run_json(*asked))
        self.assertEqual({"resources": {"VCPU": 8}, "limit": 1},
                         self.server.requests[0]["body"])
        _, out, _ = self.openstack(*asked)
        self.assertNotIn("None", out)

    def test_mistakes_in_groups(self):
        for arguments, told in (
                ((), "give --resource"), (("--group", "a/b"), "is not a suffix"),
                (("--group", "_A", "--group", "_A"), "given twice"),
                (("--resource", "VCPU=1", "--resource", "VCPU=2"), "given twice"),
                (("--resource", "VCPU=x"), "CLASS=AMOUNT")):
            for command in ("explain", "headroom"):
                code, _, err = self.openstack("resource-provider", command, *arguments)
                self.assertNotEqual(0, code)
                self.assertIn(told, err)
        self.assertEqual([], self.server.requests)


class HeadroomTest(CommandTest):

    asked = ("resource-provider", "headroom", "--resource", "VCPU=4", "--resource",
             "MEMORY_MB=8192")

    def answer(self, *parts, **values):
        self.server.on("POST /resource_providers", (200, {
            "count": 7, "at_most": 7, "exact": True, "by": None, "parts": list(parts),
            "limits": [{"resource_class": "VCPU", "groups": [""], "trees": 3},
                       {"resource_class": "MEMORY_MB", "groups": [""], "trees": 5}], **values}))

    def test_the_fleet(self):
        self.answer(at_most=9)
        self.assertEqual([{"name": "all", "count": 7, "at_most": 9,
                           "trees": {"VCPU": 3, "MEMORY_MB": 5}}], self.run_json(*self.asked))
        request, = self.server.requests
        self.assertEqual({"headroom": ""}, request["query"])
        self.assertEqual({"groups": [
            {"suffix": "", "resources": {"VCPU": 4, "MEMORY_MB": 8192}}]}, request["body"])
        _, out, _ = self.openstack(*self.asked)
        self.assertIn("MEMORY_MB: 5, VCPU: 3", out)

    def test_by_aggregate(self):
        self.answer({"name": AGGREGATE, "count": 4, "at_most": 4, "limits": {"VCPU": 2}})
        lines = self.run_json(*self.asked, "--by", "aggregate")
        self.assertEqual([("all", 7), (AGGREGATE, 4)], [
            (line["name"], line["count"]) for line in lines])
        self.assertEqual({"VCPU": 2}, lines[1]["trees"])
        self.assertEqual("aggregate", self.server.requests[0]["body"]["by"])

    def test_by_class(self):
        self.answer({"name": "VCPU", "groups": [""], "count": 90, "at_most": 90, "trees": 3,
                     "left": 332})
        asked = (*self.asked, "--by", "class-limit")
        lines = self.run_json(*asked)
        self.assertEqual([("all", None), ("VCPU", 332)], [
            (line["name"], line["left"]) for line in lines])
        _, out, _ = self.openstack(*asked)
        self.assertNotIn("None", out)
