# SPDX-License-Identifier: Apache-2.0
"""Query strings with repeated parameters, and the request groups in them."""

import types

from placement_rpc.http import errors, queries, request_groups
from tests import base

ONE, TWO = sorted(base.new_uuid() for _ in range(2))
NEWEST = (1, 39)


def read(text):
    return queries.read(types.SimpleNamespace(query_string=text))


class QueryTest(base.TestCase):

    def test_of_a_repeated_parameter_the_last_the_first_or_all_count(self):
        query = read("a=1&b=&a=2&c&a=%C3%A4+")
        self.assertEqual({"a": "\u00e4 ", "b": "", "c": ""}, query)
        self.assertEqual(("1", "", None, "x"), (
            query.first("a"), query.first("c"), query.first("d"), query.first("d", "x")))
        self.assertEqual((["1", "2", "\u00e4 "], []), (query.all("a"), query.all("d")))

    def test_separators(self):
        self.assertEqual({"a": "1", "b": "2=3"}, read("&&a=1;b=2=3;&"))
        self.assertEqual({}, read(""))

    def test_what_cannot_be_read(self):
        for text in ("a=%ff", "%ff=a", "&".join(["a=1"] * 1001)):
            error = self.assertRaises(errors.BadRequest, read, text)
            self.assertIn("Invalid query string parameters", error.text)
        self.assertEqual(1000, len(read("&".join(["a=1"] * 1000)).all("a")))


class GroupTest(base.TestCase):

    def group(self, text, version=NEWEST):
        return request_groups.group(read(text), version)

    def refused(self, text, version, says):
        error = self.assertRaises(errors.BadRequest, self.group, text, version)
        self.assertIn(says, error.text)

    def test_amounts(self):
        for text, found in (
                ("VCPU:1", {"VCPU": 1}), ("VCPU:1,DISK_GB:2", {"VCPU": 1, "DISK_GB": 2}),
                ("VCPU:%2B1,A: 2,B:1_0", {"VCPU": 1, "A": 2, "B": 10}),
                ("VCPU:1,VCPU:3", {"VCPU": 3}), (f"VCPU:{2 ** 63 - 1}", {"VCPU": 2 ** 63 - 1}),
                ("VCPU:1&resources=VCPU:3", {"VCPU": 3})):
            self.assertEqual(found, self.group(f"resources={text}").resources)

    def test_amounts_that_are_refused(self):
        for text, says in (
                ("", "Got: empty string"), ("%20", "empty string"), ("VCPU", "Got: VCPU"),
                ("VCPU:1,", "Badly formed"), ("VCPU:1:2", "Badly formed"),
                ("VCPU:0", "amount >= 1"), ("VCPU:-1", "amount >= 1"),
                ("VCPU:x", "expected positive integer"), ("VCPU:1.0", "expected positive"),
                ("VCPU:", "expected positive"), (f"VCPU:{2 ** 63}", "amount <="),
                ("VCPU:" + "9" * 5000, "expected positive")):
            self.refused(f"resources={text}", NEWEST, says)

    def test_traits(self):
        for text, version, required, forbidden in (
                ("required=A, B ", (1, 18), [["A"], ["B"]], []),
                ("required=A,A", (1, 18), [["A"]], []),
                ("required=A,!B,!!C", (1, 22), [["A"]], ["B", "C"]),
                ("required=A,!A", (1, 22), [["A"]], ["A"]),
                ("required=A&required=B", (1, 38), [["B"]], []),
                ("required=A&required=in:C,B&required=!D", (1, 39), [["A"], ["B", "C"]], ["D"]),
                ("required=A,in:B", (1, 39), [["A"], ["in:B"]], [])):
            group = self.group(text, version)
            self.assertEqual((required, forbidden), (group.required, group.forbidden), text)

    def test_traits_that_are_refused(self):
        for text, version, says in (
                ("", (1, 18), "form: HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: "),
                ("A,,B", (1, 22), "HW_CPU_X86_VMX,!CUSTOM_MAGIC. Got an empty trait in: A,,B"),
                ("!", (1, 22), "empty trait"), ("A,!!", (1, 22), "empty trait"),
                ("!A", (1, 21), "form: HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: !A"),
                ("in:A,B", (1, 38), "only supported since microversion 1.39"),
                ("in:", (1, 39), "empty trait in: in:"), ("in:A,", (1, 39), "empty trait"),
                ("in:A,!B", (1, 39), "does not support forbidden traits")):
            self.refused(f"required={text}", version, says)

    def test_aggregates(self):
        for text, version, member_of, not_member_of in (
                (ONE, (1, 3), [[ONE]], []), (f"in:{TWO},{ONE}", (1, 3), [[ONE, TWO]], []),
                (f"in:{ONE}", (1, 3), [[ONE]], []), (ONE.upper(), (1, 3), [[ONE]], []),
                (f"{TWO}&member_of={ONE}", (1, 24), [[TWO], [ONE]], []),
                (f"!{ONE}", (1, 32), [], [ONE]), (f"!in:{TWO},{ONE}", (1, 32), [], [ONE, TWO]),
                (f"{TWO}&member_of=!{ONE}", (1, 32), [[TWO]], [ONE])):
            group = self.group(f"member_of={text}", version)
            self.assertEqual((member_of, not_member_of), (group.member_of, group.not_member_of))

    def test_aggregates_that_are_refused(self):
        for text, version, says in (
                ("", (1, 3), "to contain valid UUID(s). Got: "), ("in:", (1, 3), "valid UUID(s)"),
                ("pony", (1, 3), "Got: pony"), (f"in:{ONE},pony", (1, 3), "Got: pony"),
                (f"{ONE},{TWO}", (1, 3), "must be prefixed with the 'in:'"),
                (f"!{ONE},{TWO}", (1, 32), "must be prefixed"), (f"!!{ONE}", (1, 32), "valid"),
                (f"in:!{ONE}", (1, 32), "valid UUID(s)"),
                (f"{ONE}&member_of={TWO}", (1, 23), "Multiple member_of parameters"),
                (f"!{ONE}", (1, 31), "Forbidden member_of parameters are not supported")):
            self.refused(f"member_of={text}", version, says)

    def test_trees(self):
        self.assertEqual(ONE, self.group(f"in_tree={TWO}&in_tree=%20{ONE}").in_tree)
        self.assertIsNone(self.group("").in_tree)
        self.refused("in_tree=pony", NEWEST, "Expected 'in_tree' parameter")

    def test_groups_by_suffix(self):
        text = (f"limit=5&required_A=X&resources=VCPU:1&resources_A=DISK_GB:2&in_tree1={ONE}"
                f"&member_of-x_=!{TWO}&resources_=A:1&same_subtree=_A")
        found = request_groups.groups(read(text), (1, 33))
        self.assertEqual(["_A", "", "1", "-x_", "_"], list(found))
        self.assertEqual(({"DISK_GB": 2}, [["X"]]), (
            found["_A"].resources, found["_A"].required))
        self.assertEqual((ONE, [TWO]), (found["1"].in_tree, found["-x_"].not_member_of))
        self.assertEqual({}, request_groups.groups(read("limit=1"), NEWEST))

    def test_suffixes(self):
        for suffix, version, is_one in (
                ("1", (1, 25), True), ("10", (1, 32), True), ("01", (1, 25), False),
                ("0", (1, 25), False), ("_A", (1, 32), False), ("_A", (1, 33), True),
                ("01", (1, 33), True), ("a" * 64, (1, 33), True), ("a" * 65, (1, 33), False),
                ("%C3%A4", (1, 33), False), ("A%0A", (1, 33), False), (".", (1, 33), False)):
            found = request_groups.groups(read(f"resources{suffix}=VCPU:1"), version)
            self.assertEqual(is_one, bool(found), (suffix, version))
        error = self.assertRaises(errors.BadRequest, request_groups.groups, read(
            f"member_of2={ONE}&member_of2={TWO}"), (1, 23))
        self.assertIn("Multiple member_of2 parameters", error.text)
