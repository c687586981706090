# SPDX-License-Identifier: Apache-2.0
"""Resource providers over HTTP from 1.5 on: trees, filters of the list, aggregates."""

from placement_rpc.http.preconditions import tag
from placement_rpc.notifications import publishers, relay
from placement_rpc.versions import releases
from tests import base, http

PATH = "/resource_providers"


class _ProvidersTest(http.HTTPTest):
    version = "1.39"

    def make_child(self, parent, name=None):
        return self.api.create_provider(
            None, name or f"child {base.new_uuid()}", parent_provider_uuid=parent).uuid

    def place(self, uuid, version=None):
        found = self.get(f"{PATH}/{uuid}", version=version)
        return found["parent_provider_uuid"], found["root_provider_uuid"]


class ShapeTest(_ProvidersTest):

    def test_the_links_of_each_version(self):
        uuid = self.make()
        expected = {"self", "inventories", "usages"}
        for version, more in (("1.0", ()), ("1.1", ["aggregates"]), ("1.5", ()),
                              ("1.6", ["traits"]), ("1.10", ()), ("1.11", ["allocations"]),
                              ("1.39", ())):
            expected |= set(more)
            for found in (self.get(f"{PATH}/{uuid}", version=version),
                          *self.get(PATH, version=version)["resource_providers"]):
                self.assertEqual(expected, {each["rel"] for each in found["links"]}, version)

    def test_parents_and_roots_from_1_14_on(self):
        root = self.make()
        child = self.make_child(root)
        for found in (self.get(f"{PATH}/{child}", version="1.13"),
                      *self.get(PATH, version="1.13")["resource_providers"]):
            self.assertEqual({"uuid", "name", "generation", "links"}, set(found))
        self.assertEqual((root, root), self.place(child, "1.14"))
        self.assertEqual((None, root), self.place(root, "1.14"))
        self.assertEqual([(None, root), (root, root)], [
            (each["parent_provider_uuid"], each["root_provider_uuid"])
            for each in self.get(PATH, version="1.14")["resource_providers"]])

    def test_a_search_has_no_trees(self):
        self.make(VCPU={"total": 8})
        found, = self.send("POST", f"{PATH}?request", {"resources": {"VCPU": 1}}).json[
            "resource_providers"]
        self.assertEqual({"uuid", "name", "generation", "links"}, set(found))

    def test_pools_stay_as_they_are(self):
        self.refused(400, self.send("POST", "/resource_pools", {
            "name": "pool", "parent_provider_uuid": None}))
        made = self.send("POST", "/resource_pools", {"name": "pool"})
        self.assertEqual((201, ""), (made.status_code, made.text))
        path = made.headers["location"].removeprefix("http://falconframework.org")
        found = self.get(path)
        self.assertEqual({"uuid", "name", "links"}, set(found))
        self.assertEqual({"aggregates": []}, self.get(f"{path}/aggregates"))
        self.assertEqual(204, self.send(
            "PUT", f"{path}/aggregates", [base.new_uuid()], If_Match="*").status_code)


class CreateTest(_ProvidersTest):

    def post(self, version=None, **body):
        return self.send("POST", PATH, {"name": "made", **body}, version=version)

    def test_the_answer_has_the_provider_from_1_20_on(self):
        for version, status in (("1.19", 201), ("1.20", 200), ("1.39", 200)):
            uuid = base.new_uuid()
            answer = self.post(version, name=version, uuid=uuid)
            self.assertEqual(status, answer.status_code, answer.text)
            self.assertTrue(answer.headers["location"].endswith(f"{PATH}/{uuid}"))
            self.assertEqual(tag(uuid, 0), answer.headers["etag"])
            if status == 200:
                self.assertEqual(self.get(f"{PATH}/{uuid}", version=version), answer.json)
            else:
                self.assertEqual("", answer.text)

    def test_parents(self):
        root = self.make()
        self.refused(400, self.post("1.13", parent_provider_uuid=root))
        child = self.post("1.14", uuid=base.new_uuid(), parent_provider_uuid=root)
        self.assertEqual(201, child.status_code, child.text)
        self.assertEqual((root, root), self.place(child.headers["location"].rpartition("/")[2]))
        answer = self.post(name="another", parent_provider_uuid=None)
        self.assertIsNone(answer.json["parent_provider_uuid"])
        self.assertEqual(answer.json["uuid"], answer.json["root_provider_uuid"])
        # Without dashes too.
        answer = self.post(name="third", parent_provider_uuid=root.replace("-", ""))
        self.assertEqual(root, answer.json["parent_provider_uuid"])

    def test_parents_that_cannot_be(self):
        uuid = base.new_uuid()
        for parent, says in ((base.new_uuid(), "parent provider UUID does not exist"),
                             (uuid, "parent provider UUID cannot be same as UUID"),
                             ("", "is not valid"), (5, "is not valid")):
            error = self.refused(400, self.post(uuid=uuid, parent_provider_uuid=parent))
            self.assertIn(says, error["detail"])
        for body in ({"root_provider_uuid": uuid}, {"generation": 5}):
            self.refused(400, self.post(**body))

    def test_conflicts(self):
        uuid = self.make("taken")
        for body, says in (({"name": "taken"}, "resource provider name: taken already exists"),
                           ({"uuid": uuid}, f"resource provider uuid: {uuid} already exists")):
            error = self.refused(409, self.post(**body))
            self.assertTrue(error["detail"].startswith(f"Conflicting {says}"), error)


class UpdateTest(_ProvidersTest):

    def put(self, uuid, version=None, **body):
        return self.send("PUT", f"{PATH}/{uuid}", {"name": f"name {uuid}", **body},
                         version=version)

    def moved(self, uuid, parent, version=None):
        answer = self.put(uuid, version, parent_provider_uuid=parent)
        self.assertEqual(200, answer.status_code, answer.text)
        self.assertEqual(self.get(f"{PATH}/{uuid}", version=version), answer.json)
        return self.place(uuid)

    def test_a_root_gets_a_parent(self):
        tree, root = self.make(), self.make()
        below = self.make_child(root)
        self.refused(400, self.put(root, "1.13", parent_provider_uuid=tree))
        self.assertEqual((tree, tree), self.moved(root, tree, "1.14"))
        self.assertEqual((root, tree), self.place(below))
        # A key that is absent, and the parent that it has, leave it where it is.
        self.assertEqual(200, self.put(root, "1.14").status_code)
        self.assertEqual(200, self.put(root, "1.13", name="other").status_code)
        self.assertEqual((tree, tree), self.moved(root, tree, "1.14"))

    def test_only_from_1_37_on_another_parent_or_none(self):
        first, second = self.make(), self.make()
        child = self.make_child(first)
        below = self.make_child(child)
        for parent, says in (
                (second, "re-parenting a provider is not currently allowed"),
                (None, "un-parenting a provider is not currently allowed")):
            error = self.refused(400, self.put(child, "1.36", parent_provider_uuid=parent))
            self.assertTrue(error["detail"].startswith(
                f"Unable to save resource provider {child}: "), error)
            self.assertIn(says, error["detail"])
            # Before a name that another provider has.
            self.refused(400, self.put(
                child, "1.36", name=self.get(f"{PATH}/{second}")["name"],
                parent_provider_uuid=parent))
        self.assertEqual((first, first), self.place(child))
        self.assertEqual((second, second), self.moved(child, second, "1.37"))
        self.assertEqual((child, second), self.place(below))
        self.assertEqual((None, child), self.moved(child, None, "1.37"))
        self.assertEqual((child, child), self.place(below))

    def test_loops_and_unknown_parents(self):
        root = self.make()
        child = self.make_child(root)
        for parent in (root, child):
            error = self.refused(400, self.put(root, parent_provider_uuid=parent))
            self.assertIn("creating loop in the provider tree is not allowed.", error["detail"])
            # Also with a name that another provider has.
            error = self.refused(400, self.put(
                root, name=self.get(f"{PATH}/{child}")["name"], parent_provider_uuid=parent))
            self.assertIn("creating loop in the provider tree is not allowed.", error["detail"])
        error = self.refused(400, self.put(root, parent_provider_uuid=base.new_uuid()))
        self.assertIn("parent provider UUID does not exist", error["detail"])
        self.assertEqual((None, root), self.place(root))

    def test_the_provider_is_looked_for_before_the_body_is_refused(self):
        uuid = self.make()
        for path, body in (("", {"pony": 1}), ("/inventories", {}), ("/inventories/VCPU", {}),
                           ("/aggregates", {"pony": 1}), ("", "{")):
            for missing in (base.new_uuid(), "pony"):
                error = self.refused(404, self.send("PUT", f"{PATH}/{missing}{path}", body))
                self.assertIn(f"No resource provider with uuid {missing} found", error["detail"])
            self.refused(400, self.send("PUT", f"{PATH}/{uuid}{path}", body))
        self.refused(404, self.send("POST", f"{PATH}/{base.new_uuid()}/inventories", {}))
        # The body of these is refused first, and so is a content type of all.
        self.refused(400, self.send("PUT", f"{PATH}/{base.new_uuid()}/traits", {}))
        self.assertEqual(415, self.send("PUT", f"{PATH}/{base.new_uuid()}", "x",
                                        Content_Type="text/plain").status_code)

    def test_what_is_deleted(self):
        root = self.make()
        child = self.make_child(root)
        error = self.refused(409, self.send("DELETE", f"{PATH}/{root}"))
        self.assertEqual("placement.resource_provider.cannot_delete_parent", error["code"])
        self.assertIn("It has child resource providers.", error["detail"])
        for uuid in (child, root):
            self.assertEqual(204, self.send("DELETE", f"{PATH}/{uuid}").status_code)
        self.refused(404, self.send("DELETE", f"{PATH}/{root}"))


class ListTest(_ProvidersTest):

    def setUp(self):
        super().setUp()
        self.aggregates = [base.new_uuid() for _ in range(3)]
        self.uuids = {
            "root": self.make("root", VCPU={"total": 8, "max_unit": 4}, DISK_GB={"total": 100}),
            "other": self.make("other", VCPU={"total": 2})}
        self.uuids["child"] = self.make_child(self.uuids["root"], "child")
        for name in "AB":
            self.api.create_trait(None, f"CUSTOM_{name}")
        for name, traits, aggregates in (("root", ["A", "B"], [0, 1]), ("child", ["A"], [1]),
                                         ("other", ["B"], [])):
            self.api.set_provider_traits(
                None, self.uuids[name], [f"CUSTOM_{each}" for each in traits])
            self.api.set_aggregates(
                None, self.uuids[name], [self.aggregates[each] for each in aggregates])

    def check(self, expected, query, version=None):
        """``expected`` are the first letters of the providers' names."""
        text = query.format(*self.aggregates, **self.uuids, none=base.new_uuid())
        found = self.get(f"{PATH}?{text}", version=version)["resource_providers"]
        self.assertEqual(sorted(expected), sorted(each["name"][0] for each in found), query)

    def refused_list(self, query, version=None, says=""):
        error = self.refused(400, self.send(
            "GET", f"{PATH}?" + query.format(*self.aggregates, **self.uuids), version=version))
        self.assertIn(says, error["detail"])

    def test_names_and_uuids(self):
        for expected, query in (
                ("roc", ""), ("roc", "name="), ("r", "name=root"), ("", "name=root&name=none"),
                ("o", "name=root&name=other"), ("o", "uuid={other}"), ("", "uuid={none}"),
                ("", "uuid={other}&name=root"), ("o", "uuid={root};uuid={other}")):
            self.check(expected, query, "1.0")

    def test_aggregates(self):
        for expected, query, version in (
                ("r", "member_of={0}", "1.3"), ("rc", "member_of=in:{0},{1}", "1.3"),
                ("", "member_of={none}", "1.3"), ("", "member_of=in:{none},{2}", "1.3"),
                ("r", "member_of={0}&member_of={1}", "1.24"),
                ("oc", "member_of=!{0}", "1.32"), ("o", "member_of=!in:{0},{1}", "1.32"),
                ("c", "member_of={1}&member_of=!{0}", "1.32")):
            self.check(expected, query, version)
        self.refused_list("member_of={0}&member_of={1}", "1.23", "Multiple member_of")
        self.refused_list("member_of=!{0}", "1.31", "Forbidden member_of")

    def test_more_values_than_are_allowed(self):
        self.refused_list("&".join(["member_of={0}"] * 17), "1.39",
                          "member_of has 17 values, and 16 are allowed")

    def test_traits(self):
        for expected, query, version in (
                ("rc", "required=CUSTOM_A", "1.18"), ("r", "required=CUSTOM_A,CUSTOM_B", "1.18"),
                ("c", "required=CUSTOM_A,!CUSTOM_B", "1.22"), ("o", "required=!CUSTOM_A", "1.22"),
                ("", "required=CUSTOM_A,!CUSTOM_A", "1.22"),
                ("ro", "required=CUSTOM_A&required=CUSTOM_B", "1.38"),
                ("r", "required=CUSTOM_A&required=CUSTOM_B", "1.39"),
                ("roc", "required=in:CUSTOM_A,CUSTOM_B", "1.39"),
                ("rc", "required=in:CUSTOM_A,CUSTOM_B&required=CUSTOM_A", "1.39")):
            self.check(expected, query, version)
        for query in ("required=CUSTOM_A,BOGUS", "required=!BOGUS", "required=in:BOGUS,CUSTOM_A"):
            self.refused_list(query, says='Invalid trait(s) in "required" parameter: '
                                          "No such trait(s): BOGUS.")
        self.refused_list("required=bogus", says="No such trait(s): bogus.")
        self.refused_list("required=CUSTOM_A", "1.17", "Additional properties are not allowed")

    def test_trees(self):
        for expected, query in (
                ("rc", "in_tree={root}"), ("rc", "in_tree={child}"), ("o", "in_tree={other}"),
                ("", "in_tree={none}"), ("o", "in_tree={root}&in_tree={other}")):
            self.check(expected, query, "1.14")
        self.refused_list("in_tree={root}", "1.13", "Additional properties are not allowed")

    def test_room(self):
        for expected, query in (
                ("ro", "resources=VCPU:2"), ("r", "resources=VCPU:4"), ("", "resources=VCPU:5"),
                ("r", "resources=VCPU:1,DISK_GB:100"), ("r", "resources=VCPU:1,VCPU:3"),
                ("ro", "resources=VCPU:9&resources=VCPU:1"), ("", "resources=MEMORY_MB:1"),
                ("", f"resources=VCPU:{2 ** 31}"), ("", f"resources=VCPU:{2 ** 63 - 1}"),
                ("ro", "resources=VCPU:%2B1"), ("ro", "resources=VCPU: 1")):
            self.check(expected, query, "1.4")
        self.api.claim_allocations(None, base.claim({self.uuids["other"]: {"VCPU": 1}}))
        self.check("r", "resources=VCPU:2")
        for name in ("NO_SUCH", "vcpu", "VCPU ", ""):
            self.refused_list(
                f"resources={name}:1",
                says="Invalid resource class in resources parameter: No such resource class "
                     f"{name}.")
        # Neither an unknown class nor an unknown trait is hidden by what nobody has.
        self.refused_list(f"resources=NO_SUCH:{2 ** 31}")
        self.refused_list(f"resources=VCPU:{2 ** 31}&required=BOGUS")

    def test_all_together(self):
        query = ("name=root&uuid={root}&in_tree={child}&resources=VCPU:1&required=CUSTOM_A"
                 "&member_of={1}&member_of=!{2}")
        self.check("r", query)
        for other in ("name=child", "uuid={other}", "in_tree={other}", "resources=VCPU:8",
                      "required=!CUSTOM_B", "member_of={2}"):
            self.check("", f"{query}&{other}")

    def test_the_list_has_its_position(self):
        relayed = relay.Relay(
            self.running.conf, self.database, publishers.MemoryPublisher(), "test")
        relayed.start()
        self.addCleanup(relayed.stop)
        last = base.wait_published(self.database)
        self.assertGreater(last, 0)
        for query in ("", "?resources=VCPU:1", f"?in_tree={base.new_uuid()}", "?name=%20"):
            answer = self.send("GET", f"{PATH}{query}")
            self.assertEqual(str(last), answer.headers["placement-position"])


class AggregatesTest(_ProvidersTest):

    def setUp(self):
        super().setUp()
        self.uuid = self.make()
        self.path = f"{PATH}/{self.uuid}/aggregates"
        self.aggregates = sorted(base.new_uuid() for _ in range(2))

    def put(self, generation, aggregates=None, **how):
        return self.send("PUT", self.path, {
            "resource_provider_generation": generation,
            "aggregates": self.aggregates if aggregates is None else aggregates}, **how)

    def test_with_the_generation_from_1_19_on(self):
        self.assertEqual({"aggregates": []}, self.get(self.path, version="1.18"))
        self.assertEqual({"aggregates": [], "resource_provider_generation": 0},
                         self.get(self.path, version="1.19"))
        answer = self.put(0, version="1.19")
        self.assertEqual(
            (200, {"aggregates": self.aggregates, "resource_provider_generation": 1}),
            (answer.status_code, answer.json))
        self.assertEqual(answer.json, self.get(self.path))
        answer = self.send("PUT", self.path, [], version="1.18")
        self.assertEqual((200, {"aggregates": []}), (answer.status_code, answer.json))

    def test_two_spellings_of_a_uuid_are_one_aggregate(self):
        first, second = self.aggregates
        answer = self.put(0, [second.upper(), first, second, first.replace("-", "")])
        self.assertEqual(
            (200, {"aggregates": [second, first], "resource_provider_generation": 1}),
            (answer.status_code, answer.json))
        self.assertEqual([first, second], sorted(self.get(self.path)["aggregates"]))

    def test_what_is_refused(self):
        for generation in (1, -1, 2 ** 70):
            self.assertEqual("placement.concurrent_update",
                             self.refused(409, self.put(generation))["code"])
        for version, body in (("1.18", {"aggregates": [], "resource_provider_generation": 0}),
                              ("1.19", []), ("1.19", {"aggregates": []}),
                              ("1.19", {"resource_provider_generation": 0})):
            self.refused(400, self.send("PUT", self.path, body, version=version))
        self.refused(400, self.put("0"))
        self.assertIn("is not a 'uuid'", self.refused(400, self.put(0, ["pony"]))["detail"])
        self.assertIn("has non-unique elements", self.refused(
            400, self.put(0, self.aggregates[:1] * 2))["detail"])
        self.assertEqual(0, self.get(self.path)["resource_provider_generation"])


class OlderServiceTest(_ProvidersTest):
    """The facade in front of a service of release 2026.2, which knows no trees."""

    options = {"upgrade_levels__placement": "2026.2"}

    def setUp(self):
        super().setUp()
        self.assertIs(releases.named("2026.2"), self.running.manager.release)
        self.one, self.two = self.make("one", VCPU={"total": 8}), self.make("two")
        self.aggregate = base.new_uuid()
        self.api.set_aggregates(None, self.one, [self.aggregate])

    def test_the_filters_that_it_knows(self):
        for expected, query in (
                (["one", "two"], ""), (["one"], "name=one"), (["two"], f"uuid={self.two}"),
                ([], f"uuid={self.two}&name=one"), (["one"], f"member_of={self.aggregate}"),
                ([], f"member_of={self.aggregate}&uuid={self.two}"),
                (["one"], f"member_of={self.aggregate}&uuid={self.one}"),
                (["one"], "resources=VCPU:8"), ([], "resources=VCPU:9"),
                ([], f"resources=VCPU:1&uuid={self.two}"),
                (["one"], f"resources=VCPU:1&member_of={self.aggregate}&name=one"),
                ([], f"uuid={base.new_uuid()}")):
            answer = self.send("GET", f"{PATH}?{query}")
            self.assertEqual(expected, [
                each["name"] for each in answer.json["resource_providers"]], query)
            if "&" not in query and "name" not in query:
                self.assertIn("cache-control", answer.headers)
        self.refused(400, self.send("GET", f"{PATH}?resources=CUSTOM_NONE:1"))

    def test_what_it_does_not_know(self):
        for query in (f"in_tree={self.one}", "required=HW_CPU_X86_VMX",
                      f"member_of=!{self.aggregate}"):
            self.assertEqual("placement.service.too_old", self.refused(
                503, self.send("GET", f"{PATH}?{query}"))["code"])

    def test_each_provider_is_a_root(self):
        self.assertEqual((None, self.one), self.place(self.one))
        self.assertIn("last-modified", self.send("GET", f"{PATH}/{self.one}").headers)
        answer = self.send("PUT", f"{PATH}/{self.one}", {"name": "renamed"})
        self.assertEqual((200, self.one), (
            answer.status_code, answer.json["root_provider_uuid"]))
        answer = self.send("POST", PATH, {"name": "new"})
        self.assertEqual(answer.json["uuid"], answer.json["root_provider_uuid"])

    def test_lists_have_their_position(self):
        consumer = base.new_uuid()
        self.api.claim_allocations(None, base.claim({self.one: {"VCPU": 1}}, consumer))
        for method, path, body in (
                ("GET", PATH, None), ("GET", f"{PATH}?uuid={self.one}", None),
                ("GET", f"/allocations/{consumer}", None),
                ("GET", f"{PATH}/{self.one}/allocations", None),
                ("POST", f"{PATH}?request", {"resources": {"VCPU": 1}}),
                ("POST", f"{PATH}?explain", {"resources": {"VCPU": 1}})):
            answer = self.send(method, path, body)
            self.assertEqual(200, answer.status_code, answer.text)
            self.assertIn("placement-position", answer.headers, path)
