# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates."""

from tests import http

ADDRESS = "/allocation_candidates"


class InputTest(http.HTTPTest):
    """What is refused, at once and with the reason."""

    version = "1.39"

    def setUp(self):
        super().setUp()
        self.make(VCPU={"total": 8})

    def refuse(self, query, says, status=400, **how):
        answer = self.send("GET", f"{ADDRESS}?{query}", **how)
        error = self.refused(status, answer)
        self.assertIn(says, error["detail"])
        self.assertLess(len(answer.text), 10_000)
        return error

    def test_the_address_is_new_in_1_10(self):
        for version in ("1.0", "1.9"):
            self.refuse("resources=VCPU:1", "could not be found", 404, version=version)
        self.get(f"{ADDRESS}?resources=VCPU:1", version="1.10")

    def test_other_methods(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD"):
            answer = self.send(method, ADDRESS)
            self.assertEqual((405, "GET"), (answer.status_code, answer.headers["allow"]))

    def test_the_rule(self):
        self.refuse("resources=VCPU:1", "Policy does not allow "
                    "placement:allocation_candidates:list to be performed.", 403, token="someone")
        self.refuse("resources=VCPU:1", "Authentication", 401, token=None)
        self.get(f"{ADDRESS}?resources=VCPU:1", token="someone", X_Roles="service")

    def test_conditions(self):
        self.refuse("resources=VCPU:1", "no ETag", 412, If_Match='"x"')

    def test_codes(self):
        for query, code in (
                ("required=A", "placement.query.missing_value"),
                ("resources=VCPU:1&same_subtree=_A", "placement.query.bad_value"),
                ("resources=VCPU:1&root_required=A&root_required=B",
                 "placement.query.duplicate_key"),
                ("resources=VCPU:0", "placement.undefined_code"),
                ("resources=CUSTOM_NONE:1", "placement.undefined_code"),
                ("resources=VCPU:1&required=CUSTOM_NONE", "placement.undefined_code")):
            self.assertEqual(code, self.refuse(query, "")["code"])

    def test_unknown_names(self):
        for query, says in (
                ("resources=CUSTOM_NONE:1", "Invalid resource class in resources parameter: "
                 "No such resource class CUSTOM_NONE"),
                ("resources=vcpu:1", "Invalid resource class in resources parameter: "
                 "No such resource class vcpu"),
                ("resources=VCPU:1&required=CUSTOM_NONE", "No such trait(s): CUSTOM_NONE"),
                ("resources=VCPU:1&required=!CUSTOM_NONE", "No such trait(s): CUSTOM_NONE"),
                ("resources=VCPU:1&required=none", "No such trait(s): none"),
                ("resources=VCPU:1&root_required=CUSTOM_NONE", "No such trait(s): CUSTOM_NONE")):
            self.refuse(query, says)

    def test_large_numbers(self):
        self.refuse(f"resources=VCPU:{2 ** 63}", "requires amount <= 9223372036854775807")
        self.refuse("resources=VCPU:" + "9" * 100_000, "expected positive integer amount")
        for query in (f"resources=VCPU:{2 ** 63 - 1}", f"resources=VCPU:{2 ** 31}",
                      "resources=VCPU:9&limit=" + "9" * 100_000):
            self.assertEqual([], self.get(f"{ADDRESS}?{query}")["allocation_requests"])

    def test_many_groups(self):
        for number, says in ((101, "it has 101 groups, and 100 are allowed"),
                             (900, "it has 900 groups"), (1001, "there are more than 1000")):
            self.refuse("group_policy=none&" + "&".join(
                f"resources_{each}=VCPU:1" for each in range(number)), says)

    def test_long_values(self):
        names = ",".join(f"CUSTOM_{number}" for number in range(100_000))
        for query, says in (
                (f"resources={names}", "Badly formed"), (f"resources={'A' * 1_000_000}:1", "AAA"),
                (f"resources={names.replace(',', ':1,')}:1", "No such resource class CUSTOM_0"),
                (f"resources=VCPU:1&required={names}", "required has 100000 values"),
                (f"resources=VCPU:1&required=in:{names}", "has 100000 values"),
                (f"resources=VCPU:1&member_of=in:{names}", "CUSTOM_"),
                (f"resources=VCPU:1&in_tree={names}", "in_tree"),
                (f"resources=VCPU:1&same_subtree={names}", "CUSTOM_0"),
                (f"resources=VCPU:1&root_required={names}", "has 100000 values"),
                (f"resources=VCPU:1&{'A' * 1_000_000}=1", "AAA")):
            self.refuse(query, says)

    def test_characters(self):
        for query in ("resources=VCPU%00:1", "resources=VCPU:1&required=%00",
                      "resources%00=VCPU:1", "resources=VCPU:%FF", "resources=%ED%A0%80:1",
                      "resources=VCPU:1&required=%C3%84"):
            self.refuse(query, "")
