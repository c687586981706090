# SPDX-License-Identifier: Apache-2.0
"""Owners in the body of an allocation (1.8), and usages of projects and users (1.9)."""

from tests import base, http


class OwnedTest(http.HTTPTest):
    """Requests at microversion 1.9."""

    version = "1.9"

    def setUp(self):
        super().setUp()
        self.one = self.make(VCPU={"total": 8}, MEMORY_MB={"total": 4096})

    def allocate(self, consumer, project="ada", user="anna", status=204, **amounts):
        body = {"allocations": [{"resource_provider": {"uuid": self.one}, "resources": amounts}]}
        for name, value in (("project_id", project), ("user_id", user)):
            if value is not None:
                body[name] = value
        answer = self.send("PUT", f"/allocations/{consumer}", body)
        self.assertEqual(status, answer.status_code, answer.text)

    def usages(self, query, token="admin"):
        return self.send("GET", f"/usages?{query}", token=token)

    def test_a_claim_names_its_owner(self):
        consumer = base.new_uuid()
        self.allocate(consumer, VCPU=1)
        held = self.running.api.get_allocations(None, consumer).consumer
        self.assertEqual(("ada", "anna"), (held.project_id, held.user_id))
        # It changes hands.
        self.allocate(consumer, "bob", "ben", VCPU=1)
        held = self.running.api.get_allocations(None, consumer).consumer
        self.assertEqual(("bob", "ben"), (held.project_id, held.user_id))
        for project, user in ((None, "anna"), ("ada", None), ("", "anna"), ("x" * 256, "anna")):
            self.allocate(base.new_uuid(), project, user, 400, VCPU=1)

    def test_an_older_request_keeps_the_owner(self):
        consumer = base.new_uuid()
        self.allocate(consumer, VCPU=1)
        body = {"allocations": [
            {"resource_provider": {"uuid": self.one}, "resources": {"VCPU": 2}}]}
        self.assertEqual(204, self.send(
            "PUT", f"/allocations/{consumer}", body, version="1.7").status_code)
        self.assertEqual({"VCPU": 2}, self.usages("project_id=ada").json["usages"])

    def test_the_sums_of_a_project_and_of_a_user(self):
        self.allocate(base.new_uuid(), VCPU=1, MEMORY_MB=512)
        self.allocate(base.new_uuid(), VCPU=2)
        self.allocate(base.new_uuid(), user="alan", VCPU=1)
        self.allocate(base.new_uuid(), "bob", VCPU=1)
        self.assertEqual({"VCPU": 4, "MEMORY_MB": 512},
                         self.usages("project_id=ada").json["usages"])
        self.assertEqual({"VCPU": 1}, self.usages("project_id=ada&user_id=alan").json["usages"])
        self.assertEqual({}, self.usages("project_id=nobody").json["usages"])
        self.assertEqual({"VCPU": 4, "MEMORY_MB": 512},
                         self.running.api.get_project_usages(None, "ada").usages)

    def test_what_is_refused(self):
        for query in ("", "user_id=anna", "project_id=", "project_id=a&pony=1",
                      f"project_id={'x' * 256}"):
            self.assertEqual(400, self.usages(query).status_code, query)
        self.assertEqual(404, self.send("GET", "/usages?project_id=a", version="1.8").status_code)

    def test_the_readers_of_a_project_may_ask(self):
        reader = {"X_Roles": "reader"}
        for project, status in (("ada", 200), ("bob", 403)):
            answer = self.send("GET", f"/usages?project_id={project}", token="ada", **reader)
            self.assertEqual(status, answer.status_code, answer.text)
        self.assertEqual(403, self.usages("project_id=ada", token="ada").status_code)

    def test_the_rule_reads_the_project_that_is_answered(self):
        self.allocate(base.new_uuid(), "bob", VCPU=1)
        for query in ("project_id=ada&user_id=anna;project_id=bob",
                      "project_id=ada;project_id=bob", "project_id=ada&project_id=bob",
                      "project_id=ada&%70roject_id=bob"):
            answer = self.send("GET", f"/usages?{query}", token="ada", X_Roles="reader")
            self.assertEqual(403, answer.status_code, (query, answer.text))
        self.assertEqual({"VCPU": 1}, self.usages("project_id=ada;project_id=bob").json["usages"])


class TypedTest(http.HTTPTest):
    """Requests at microversion 1.38."""

    version = "1.38"

    def setUp(self):
        super().setUp()
        self.node = self.make(VCPU={"total": 100}, MEMORY_MB={"total": 4096})
        for consumer_type, user, amounts in (
                ("INSTANCE", "anna", {"VCPU": 2, "MEMORY_MB": 512}),
                ("INSTANCE", "alan", {"VCPU": 3}), ("MIGRATION", "anna", {"VCPU": 5}),
                (None, "anna", {"MEMORY_MB": 64, "VCPU": 1}), (None, "alan", {"VCPU": 1})):
            self.api.claim_allocations(None, base.claim(
                {self.node: amounts}, project_id="ada", user_id=user,
                consumer_type=consumer_type))
        self.api.claim_allocations(None, base.claim(
            {self.node: {"VCPU": 7}}, project_id="bob", consumer_type="INSTANCE"))

    def usages(self, query="", project="ada"):
        return self.get(f"/usages?project_id={project}{query}")["usages"]

    def test_all_types(self):
        self.assertEqual({
            "INSTANCE": {"VCPU": 5, "MEMORY_MB": 512, "consumer_count": 2},
            "MIGRATION": {"VCPU": 5, "consumer_count": 1},
            "unknown": {"VCPU": 2, "MEMORY_MB": 64, "consumer_count": 2}}, self.usages())
        self.assertEqual({"INSTANCE": {"VCPU": 3, "consumer_count": 1},
                          "unknown": {"VCPU": 1, "consumer_count": 1}},
                         self.usages("&user_id=alan"))
        self.assertEqual({}, self.usages(project="nobody"))

    def test_one_type_and_all_together(self):
        self.assertEqual({"INSTANCE": {"VCPU": 5, "MEMORY_MB": 512, "consumer_count": 2}},
                         self.usages("&consumer_type=INSTANCE"))
        self.assertEqual({"unknown": {"VCPU": 2, "MEMORY_MB": 64, "consumer_count": 2}},
                         self.usages("&consumer_type=unknown"))
        self.assertEqual({"unknown": {"VCPU": 1, "consumer_count": 1}},
                         self.usages("&consumer_type=unknown&user_id=alan"))
        self.assertEqual({"all": {"VCPU": 12, "MEMORY_MB": 576, "consumer_count": 5}},
                         self.usages("&consumer_type=all"))
        for nothing in ("allx", "ALL", "PONY"):
            self.assertEqual({}, self.usages(f"&consumer_type={nothing}"))
        self.assertEqual({}, self.usages("&consumer_type=all", "nobody"))
        self.assertEqual({}, self.usages("&consumer_type=all%C3%A9"))

    def test_what_is_no_type_or_of_no_version(self):
        for wrong in ("instance", "unknownx", "", "A" * 256):
            self.refused(400, self.send("GET", f"/usages?project_id=ada&consumer_type={wrong}"))
        self.refused(400, self.send(
            "GET", "/usages?project_id=ada&consumer_type=INSTANCE", version="1.37"))
        self.assertEqual({"VCPU": 12, "MEMORY_MB": 576}, self.get(
            "/usages?project_id=ada", version="1.37")["usages"])

    def test_the_same_over_the_bus(self):
        found = self.api.get_project_usages(None, "ada", consumer_type="unknown")
        self.assertEqual(({"VCPU": 2, "MEMORY_MB": 64}, {"unknown": {
            "consumers": 2, "usages": {"VCPU": 2, "MEMORY_MB": 64}}}),
            (found.usages, found.by_type))
