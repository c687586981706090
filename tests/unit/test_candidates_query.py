# SPDX-License-Identifier: Apache-2.0
"""The query of GET /allocation_candidates: what it asks for, and what is refused."""

import types

from placement_rpc import exception
from placement_rpc.http import bodies, candidates_query, errors, queries, routes
from placement_rpc.http.microversion import schema_at
from tests import base

ONE, TWO = sorted(base.new_uuid() for _ in range(2))
NEWEST = (1, 39)
UNDEFINED, BAD, MISSING, DUPLICATE = (
    "placement.undefined_code", "placement.query.bad_value", "placement.query.missing_value",
    "placement.query.duplicate_key")

_SCHEMAS = next(route.query for route in routes.ROUTES if route.path == "/allocation_candidates")


def parse(text, version=NEWEST):
    """Return the request, as the application reads it."""
    query = queries.read(types.SimpleNamespace(query_string=text))
    bodies.check(bodies.compiled(schema_at(_SCHEMAS, version)), query,
                 "Invalid query string parameters")
    return candidates_query.parse(query, version)


class ReadTest(base.TestCase):

    def test_a_request_of_nova(self):
        found = parse(
            f"limit=1000&member_of=in%3A{ONE}%2C{TWO}&member_of=%21in%3A{TWO}"
            "&required=CUSTOM_A%2C%21CUSTOM_B&resources=DISK_GB%3A20%2CMEMORY_MB%3A512%2CVCPU%3A2"
            "&resources_port=NET_BW_EGR_KILOBIT_PER_SEC%3A1000&required_port=CUSTOM_PHYSNET_1"
            "&resources_pps=NET_PACKET_RATE_KILOPACKET_PER_SEC%3A5&same_subtree=_port%2C_pps"
            f"&group_policy=none&root_required=%21COMPUTE_STATUS_DISABLED%2COWNER_NOVA"
            f"&in_tree={ONE}", (1, 36))
        self.assertEqual(
            (1000, "none", [["_port", "_pps"]], ["OWNER_NOVA"], ["COMPUTE_STATUS_DISABLED"]),
            (found.limit, found.group_policy, found.same_subtree, found.root_required,
             found.root_forbidden))
        host, port, rate = found.groups
        self.assertEqual(
            ("", {"DISK_GB": 20, "MEMORY_MB": 512, "VCPU": 2}, [["CUSTOM_A"]], ["CUSTOM_B"],
             [[ONE, TWO]], [TWO], ONE),
            (host.suffix, host.resources, host.required, host.forbidden, host.member_of,
             host.not_member_of, host.in_tree))
        self.assertEqual(
            ("_port", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, [["CUSTOM_PHYSNET_1"]], [], None),
            (port.suffix, port.resources, port.required, port.member_of, port.in_tree))
        self.assertEqual(("_pps", []), (rate.suffix, rate.required))

    def test_groups_keep_their_order(self):
        found = parse("resources_B=VCPU:1&group_policy=isolate&required_A=X&resources=VCPU:2"
                      "&resources_A=VCPU:3")
        self.assertEqual(["_B", "_A", ""], [group.suffix for group in found.groups])
        self.assertEqual([1, 3, 2], [group.resources["VCPU"] for group in found.groups])

    def test_which_of_repeated_values_counts(self):
        found = parse("resources=VCPU:1&resources=VCPU:3&limit=2&limit=9&group_policy=isolate"
                      "&group_policy=none&resources1=VCPU:1&required1=A&required1=in:B,C"
                      "&same_subtree=1&same_subtree=1,%201")
        self.assertEqual((2, "isolate", [["1"], ["1"]]), (
            found.limit, found.group_policy, found.same_subtree))
        self.assertEqual({"VCPU": 3}, found.groups[0].resources)
        self.assertEqual([["A"], ["B", "C"]], found.groups[1].required)
        self.assertEqual([["B"]], parse(
            "resources=VCPU:1&required=A&required=B", (1, 38)).groups[0].required)

    def test_a_group_without_resources(self):
        found = parse("resources=VCPU:1&required_A=HW_NUMA_ROOT&same_subtree=_A")
        self.assertEqual([{"VCPU": 1}, {}], [group.resources for group in found.groups])

    def test_limits(self):
        for text, limit in (("1", 1), ("1000", 1000), (str(2 ** 31 - 1), 2 ** 31 - 1),
                            (str(2 ** 31), 2 ** 31 - 1), ("9" * 6000, 2 ** 31 - 1)):
            self.assertEqual(limit, parse(f"resources=VCPU:1&limit={text}").limit)
        self.assertIsNone(parse("resources=VCPU:1", (1, 10)).limit)

    def test_the_first_versions(self):
        found = parse(f"resources=VCPU:1&limit=3&required=A&member_of=in:{TWO},{ONE}", (1, 21))
        self.assertEqual((3, [["A"]], [[ONE, TWO]]), (
            found.limit, found.groups[0].required, found.groups[0].member_of))


class RefusedTest(base.TestCase):

    def refused(self, text, version, says, code=UNDEFINED):
        error = self.assertRaises(errors.BadRequest, parse, text, version)
        self.assertIn(says, error.text, text)
        self.assertEqual(code, error.code, text)

    def test_parameters_of_later_versions(self):
        for last, text in ((15, "limit=1"), (16, "required=A"), (20, f"member_of={ONE}"),
                           (24, "group_policy=none"), (24, "resources1=VCPU:1"),
                           (30, f"in_tree={ONE}"), (32, "resources_A=VCPU:1"),
                           (34, "root_required=A"), (35, "same_subtree=1&resources1=VCPU:1")):
            text = f"resources=VCPU:1&{text}"
            self.refused(text, (1, last), "Invalid query string parameters")
            self.assertTrue(parse(text, (1, last + 1)).groups)

    def test_names_and_values_that_the_schema_refuses(self):
        for text, version in (
                ("pony=1", NEWEST), ("resources01=VCPU:1", (1, 25)), ("limit=1", (1, 16)),
                ("", (1, 10)), ("required=A", (1, 17)),
                ("resources=VCPU:1&limit=0", NEWEST), ("resources=VCPU:1&limit=-1", NEWEST),
                ("resources=VCPU:1&limit=", NEWEST), ("resources=VCPU:1&limit=1.5", NEWEST),
                ("resources=VCPU:1&limit=1&limit=x", NEWEST),
                ("resources=VCPU:1&limit=x&limit=1", NEWEST),
                ("resources=VCPU:1&group_policy=pony", NEWEST),
                ("resources=VCPU:1&group_policy=pony&group_policy=none", NEWEST),
                (f"resources{'a' * 65}=VCPU:1", NEWEST), (f"resources{'1' * 65}=VCPU:1", (1, 25)),
                ("resources%0A=VCPU:1", NEWEST)):
            self.refused(text, version, "Invalid query string parameters")

    def test_groups_without_resources_before_1_36(self):
        for text, says in (
                ("", "At least one request group"), ("limit=1", "At least one request group"),
                ("required=A", "orphaned traits keys: required"),
                ("resources=VCPU:1&required1=A&required2=B", "keys: required1, required2"),
                (f"resources=VCPU:1&member_of1={ONE}", "orphaned member_of keys: member_of1"),
                (f"resources=VCPU:1&member_of1=!{ONE}", "orphaned member_of keys: member_of1"),
                ("resources=VCPU:1&required1=!A", "All request groups must specify resources."),
                (f"resources=VCPU:1&in_tree1={ONE}", "All request groups must specify")):
            self.refused(text, (1, 35), says)

    def test_groups_without_resources(self):
        for text, says, code in (
                ("", "There must be at least one resources or resources[$S]", MISSING),
                ("required=A", "at least one resources", MISSING),
                ("required_A=X&same_subtree=_A", "at least one resources", MISSING),
                ("resources=VCPU:1&required_A=X", "bad group(s) - _A.", BAD),
                ("resources1=VCPU:1&required=X&same_subtree=1", "bad group(s)", BAD),
                ("resources=VCPU:1&same_subtree=_A", "_A not found in ", BAD),
                ("resources1=VCPU:1&same_subtree=1,", "Empty string (unsuffixed group)", BAD),
                ("resources1=VCPU:1&same_subtree=", "Empty string (unsuffixed group)", BAD)):
            self.refused(text, (1, 36), says, code)

    def test_several_groups_need_a_policy(self):
        says = 'The "group_policy" parameter is required'
        two = "resources1=VCPU:1&resources2=VCPU:1"
        self.refused(two, (1, 25), says)
        self.refused("resources1=VCPU:1&required2=A&same_subtree=2", (1, 36), says)
        self.assertEqual(3, len(parse(f"resources=VCPU:1&{two}&group_policy=none").groups))
        self.assertEqual(2, len(parse("resources=VCPU:1&resources1=VCPU:1").groups))

    def test_traits(self):
        of = "resources=VCPU:1&"
        for text, says, code in (
                ("required=A,!A", "Conflicting required and forbidden traits found in the "
                 "following traits keys: required: (A)", UNDEFINED),
                ("resources1=VCPU:1&required1=in:A,B&required1=!A,!B", "required1: (A, B)",
                 UNDEFINED),
                ("root_required=A,!A,B", "root_required: A", BAD),
                ("root_required=A&root_required=A", "only once", DUPLICATE),
                ("root_required=", "Got an empty trait in: ", UNDEFINED),
                ("root_required=A,,B", "Got an empty trait in: A,,B", UNDEFINED),
                ("root_required=in:A,B", "only supported since microversion 1.39", UNDEFINED)):
            self.refused(of + text, NEWEST, says, code)
        self.assertEqual([["A", "B"]], parse(
            f"{of}required=in:A,B&required=!A").groups[0].required)

    def test_values_of_groups(self):
        for text, says in (
                ("resources1=", "Got: empty string"), ("resources_A=VCPU", "Badly formed"),
                ("resources_A=VCPU:0", "amount >= 1"), (f"resources_A=VCPU:{2 ** 63}", "amount <"),
                ("resources_A=VCPU:" + "9" * 6000, "expected positive integer"),
                ("resources_A=VCPU:1&in_tree_A=pony", "in_tree"),
                ("resources_A=VCPU:1&member_of_A=pony", "member_of"),
                ("resources_A=VCPU:1&member_of_A=", "member_of"),
                ("resources_A=VCPU:1&required_A=", "Got an empty trait")):
            self.refused(text, NEWEST, says)

    def test_more_values_than_are_allowed(self):
        uuids, traits = ",".join([ONE] * 499), ",".join(f"CUSTOM_{n}" for n in range(2001))
        for text, what in (
                (f"required=in:{traits}", "required[0] has 2001 values, and 2000 are allowed"),
                (f"required=!{traits.replace(',', ',!')}", "forbidden has 2001 values"),
                (f"root_required={traits}", "root_required has 2001 values"),
                ("&".join(f"member_of=in:{uuids}" for _ in range(101)), "member_of has 101"),
                ("&".join(["resources1=VCPU:1"] + ["same_subtree=1"] * 101), "has 101 values")):
            self.refused(f"resources=VCPU:1&{text}", NEWEST, what)

    def test_names_that_nothing_can_have(self):
        for text, error in (
                ("resources=vcpu:1", exception.ResourceClassNotFound),
                ("resources=:1", exception.ResourceClassNotFound),
                (f"resources={'A' * 256}:1", exception.ResourceClassNotFound),
                ("resources=VCPU:1&required=pony", exception.TraitNotFound),
                ("resources=VCPU:1&required=in:A,b", exception.TraitNotFound),
                ("resources=VCPU:1&required=!b", exception.TraitNotFound),
                ("resources=VCPU:1&root_required=!b", exception.TraitNotFound),
                (f"resources=VCPU:1&required={'A' * 256}", exception.TraitNotFound)):
            self.assertRaises(error, parse, text)

    def test_an_error_names_few_of_many_groups(self):
        for text in ("&".join(f"required{number}=A" for number in range(1, 900)),
                     "resources=VCPU:1&same_subtree=" + ",".join(map(str, range(100_000)))):
            for version in ((1, 35), (1, 36)):
                error = self.assertRaises(exception.InvalidInput, parse, text, version)
                self.assertLess(len(error.text), 2000)
