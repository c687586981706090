# SPDX-License-Identifier: Apache-2.0
"""Bodies and answers of allocations at each microversion, and POST /allocations."""

import json

from placement_rpc.db.queries import events
from tests import base
from tests.functional import test_http_allocations


class _Shapes(test_http_allocations.AllocationsTest):
    """Makes bodies of every microversion."""

    def setUp(self):
        super().setUp()
        self.other = self.make(VCPU={"total": 8}, DISK_GB={"total": 100})

    def body(self, version, allocations=None, **values):
        """Return the body of a PUT, with all that its microversion requires."""
        wanted = {self.node: {"VCPU": 1}} if allocations is None else allocations
        minor = int(version.partition(".")[2])
        found = {"allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": resources}
            for uuid, resources in wanted.items()] if minor < 12 else {
                uuid: {"resources": resources} for uuid, resources in wanted.items()}}
        if minor >= 8:
            found |= {"project_id": "ada", "user_id": "anna"}
        if minor >= 28:
            found["consumer_generation"] = None
        if minor >= 38:
            found["consumer_type"] = "INSTANCE"
        return {**found, **values}

    def write(self, version, body, status=204, method="PUT", path=None, **headers):
        answer = self.send(method, path or self.path, body, version=version, **headers)
        self.assertEqual(status, answer.status_code, answer.text)
        return answer

    def shown(self, version, path=None):
        return self.get(path or self.path, version=version)

    def conflict(self, version, body, says, **how):
        error = self.refused(409, self.write(version, body, 409, **how))
        self.assertEqual("placement.concurrent_update", error["code"])
        self.assertIn(says, error["detail"])


class ShapeTest(_Shapes):
    """What each microversion sends and gets."""

    def test_each_version_takes_its_own_shape_only(self):
        versions = ("1.0", "1.8", "1.12", "1.28", "1.34", "1.38")
        for version in versions:
            body = self.body(version)
            for other in versions:
                same = set(body) == set(self.body(other)) and (
                    (version in ("1.0", "1.8")) == (other in ("1.0", "1.8")))
                self.write(other, body, 204 if same else 400)
                self.delete()

    def test_what_a_consumer_shows(self):
        self.write("1.38", self.body("1.38", {self.node: {"VCPU": 2}, self.other: {"DISK_GB": 5}}))
        allocations = {self.node: {"generation": 2, "resources": {"VCPU": 2}},
                       self.other: {"generation": 2, "resources": {"DISK_GB": 5}}}
        owner = {"project_id": "ada", "user_id": "anna"}
        for version, more in (
                ("1.0", {}), ("1.11", {}), ("1.12", owner), ("1.27", owner),
                ("1.28", {**owner, "consumer_generation": 1}),
                ("1.37", {**owner, "consumer_generation": 1}),
                ("1.38", {**owner, "consumer_generation": 1, "consumer_type": "INSTANCE"})):
            self.assertEqual({"allocations": allocations, **more}, self.shown(version))
        for path in (f"/allocations/{base.new_uuid()}", "/allocations/pony"):
            self.assertEqual({"allocations": {}}, self.shown("1.38", path))

    def test_what_a_provider_shows(self):
        self.write("1.28", self.body("1.28"))
        path = f"/resource_providers/{self.node}/allocations"
        for version, more in (("1.27", {}), ("1.28", {"consumer_generation": 1})):
            self.assertEqual(
                {"allocations": {self.consumer: {"resources": {"VCPU": 1}, **more}},
                 "resource_provider_generation": 2}, self.shown(version, path))

    def test_the_last_entry_of_a_provider_counts_in_a_list(self):
        body = self.body("1.11")
        body["allocations"].append({
            "resource_provider": {"uuid": self.node.upper()}, "resources": {"VCPU": 3}})
        self.write("1.11", body)
        self.assertEqual({self.node: {"VCPU": 3}}, self.held())

    def test_uuids_in_any_spelling(self):
        body = self.body("1.12", {self.node.upper(): {"VCPU": 2}})
        self.write("1.12", body, path=f"/allocations/{self.consumer.replace('-', '').upper()}")
        self.assertEqual({self.node: {"VCPU": 2}}, self.held())
        self.write("1.13", {self.consumer.upper(): body}, method="POST", path="/allocations")
        for twice in ({self.node: {"VCPU": 1}, self.node.upper(): {"VCPU": 1}},
                      {"-" * 36: {"VCPU": 1}}, {"pony": {"VCPU": 1}}):
            self.write("1.12", self.body("1.12", twice), 400)
        body = self.body("1.13")
        for keys in ((self.consumer, self.consumer.upper()), ("-" * 36,), ("pony",), ()):
            self.write("1.13", dict.fromkeys(keys, body), 400, "POST", "/allocations")

    def test_the_generation_of_a_provider_in_the_body_is_ignored(self):
        body = self.body("1.12")
        body["allocations"][self.node]["generation"] = -5
        self.write("1.12", body)

    def test_generations_of_a_consumer(self):
        for given, got in ((1, 1), (0, 0), (-3, -3), (2 ** 70, 2 ** 70)):
            self.conflict("1.28", self.body("1.28", consumer_generation=given),
                          f"consumer generation conflict - expected null but got {got}")
        self.write("1.28", self.body("1.28"))
        for given, got in ((None, None), (0, 0), (2, 2), (2 ** 70, 2 ** 70)):
            self.conflict("1.28", self.body("1.28", consumer_generation=given),
                          f"consumer generation conflict - expected 1 but got {got}")
        # Each write counts, whether it changes anything or not, as does one that names none.
        self.write("1.28", self.body("1.28", consumer_generation=1))
        self.write("1.27", self.body("1.27"))
        self.assertEqual(3, self.shown("1.28")["consumer_generation"])
        self.assertEqual(2, self.api.get_provider(None, self.node).generation)
        self.write("1.28", self.body("1.28", {}, consumer_generation=3))
        self.write("1.28", self.body("1.28"))
        self.assertEqual(1, self.shown("1.28")["consumer_generation"])

    def test_a_repeated_refusal_names_the_generation_that_was_refused(self):
        def refusal(given, key):
            answer = self.send("PUT", f"/allocations/{self.consumer}", self.body(
                "1.28", consumer_generation=given), version="1.28", Idempotency_Key=key)
            self.refused(409, answer)
            return answer.json["errors"][0]["detail"]

        self.assertEqual(refusal(3, "one"), refusal(4, "one"))
        self.assertEqual(refusal(3, "one"), refusal(None, "one"))
        self.write("1.28", self.body("1.28"))
        self.assertIn("expected null but got 3", refusal(1, "one"))
        self.assertIn("expected 1 but got None", refusal(None, "two"))
        self.assertIn("expected 1 but got None", refusal(5, "two"))

    def test_a_generation_and_an_etag(self):
        self.write("1.28", self.body("1.28"))
        etag = self.etag()
        self.write("1.28", self.body("1.28", consumer_generation=1), If_Match=etag)
        self.write("1.28", self.body("1.28", consumer_generation=2), 412, If_Match=etag)
        self.write("1.28", self.body("1.28", consumer_generation=1), 409, If_Match=self.etag())
        self.write("1.28", self.body("1.28"), 412, If_None_Match="*")
        self.write("1.28", self.body("1.28", consumer_generation=2), 412, If_None_Match="*")
        self.delete()
        self.write("1.28", self.body("1.28", consumer_generation=2), 412, If_None_Match="*")
        self.write("1.28", self.body("1.28"), If_None_Match="*")

    def test_a_put_of_nothing_releases(self):
        for version in ("1.12", "1.27"):
            self.write(version, self.body(version, {}), 400)
        self.write("1.28", self.body("1.28"))
        self.write("1.28", self.body("1.28", {}, consumer_generation=1))
        self.assertEqual({}, self.held())
        self.assertEqual(3, self.api.get_provider(None, self.node).generation)
        # Nothing is left behind by a consumer that never had anything, or whose PUT was refused.
        self.write("1.28", self.body("1.28", {}))
        self.write("1.28", self.body("1.28", {base.new_uuid(): {"VCPU": 1}}), 400)
        self.write("1.28", self.body("1.28"))

    def test_types(self):
        self.write("1.37", self.body("1.37"))
        self.assertEqual("unknown", self.shown("1.38")["consumer_type"])
        for generation, consumer_type in ((1, "INSTANCE"), (3, "MIGRATION"), (5, "UNKNOWN")):
            self.write("1.38", self.body(
                "1.38", consumer_type=consumer_type, consumer_generation=generation))
            # Older requests keep it.
            self.write("1.0", self.body("1.0"))
            self.assertEqual(consumer_type, self.shown("1.38")["consumer_type"])
        self.delete()
        self.write("1.28", self.body("1.28"))
        self.assertEqual("unknown", self.shown("1.38")["consumer_type"])
        for wrong in ("unknown", "instance", "", "A B", "A" * 256, 5, None):
            self.write("1.38", self.body("1.38", consumer_type=wrong), 400)

    def test_a_class_that_does_not_exist_comes_before_one_that_the_provider_lacks(self):
        error = self.refused(400, self.write("1.34", self.body("1.34", {
            self.node: {"DISK_GB": 1, "CUSTOM_NOPE": 1}}), 400))
        self.assertIn("CUSTOM_NOPE", error["detail"])

    def test_mappings_are_kept_with_the_event(self):
        mappings = {"": [self.node], "_net": [self.node, self.other.upper()]}
        self.write("1.34", self.body("1.34", mappings={**mappings, "!": 5}))
        with self.database.reader() as tx:
            created, = [json.loads(row.payload) for row in events.waiting(tx)
                        if row.event_type == "allocation.create"]
        self.assertEqual({**mappings, "_net": [self.node, self.other]},
                         created["placement_object.data"]["mappings"])
        for wrong in ({}, {"_net": []}, {"_net": ["pony"]}, {"_net": self.node}, [], "text",
                      {"a b": "text"}):
            self.write("1.34", self.body("1.34", consumer_generation=1, mappings=wrong), 400)
        # OpenStack Placement does not look at those without a suffix.
        for generation, wrong in enumerate(([], ["pony"], self.node, {"a": 1}), 1):
            self.write("1.34", self.body("1.34", {self.node: {"VCPU": generation + 1}},
                                         consumer_generation=generation, mappings={
                                             "": wrong, "_net": [self.node]}))
        with self.database.reader() as tx:
            self.assertEqual([{"_net": [self.node]}] * 4, [
                json.loads(row.payload)["placement_object.data"]["mappings"]
                for row in events.waiting(tx) if row.event_type == "allocation.update"])
        self.write("1.33", self.body("1.33", mappings=mappings), 400)

    def test_refusals_begin_with_the_words_that_clients_know(self):
        missing = base.new_uuid()
        for allocations, status, says in (
                ({missing: {"VCPU": 1}}, 400,
                 f"Allocation for resource provider '{missing}' that does not exist"),
                ({self.node: {"CUSTOM_PONY": 1}}, 400, "No such resource class CUSTOM_PONY"),
                ({self.node: {"DISK_GB": 1}}, 409, "Unable to allocate inventory: Inventory for "
                 f"'DISK_GB' on resource provider '{self.node}' invalid"),
                ({self.node: {"VCPU": 9}}, 409, "Unable to allocate inventory: Unable to create "
                 f"allocation for 'VCPU' on resource provider '{self.node}'. The requested amount "
                 "would"),
                ({self.node: {"VCPU": 2 ** 80}}, 409, "violate inventory constraints")):
            for method, path, body in (
                    ("PUT", self.path, self.body("1.28", allocations)),
                    ("POST", "/allocations", {self.consumer: self.body("1.28", allocations)})):
                error = self.refused(status, self.write("1.28", body, status, method, path))
                self.assertIn(says, error["detail"])
                self.assertEqual("placement.undefined_code", error["code"])
        error = self.refused(404, self.send("DELETE", "/allocations/pony", version="1.28"))
        self.assertIn("No allocations for consumer 'pony'", error["detail"])


class PostTest(_Shapes):
    """POST /allocations: many consumers, all of them or none."""

    def post(self, version, by_consumer, status=204, **headers):
        return self.write(version, by_consumer, status, "POST", "/allocations", **headers)

    def test_consumers_swap_full_providers(self):
        left, right = base.new_uuid(), base.new_uuid()
        full, swapped = (self.node, self.other), (self.other, self.node)
        for generation, nodes in ((None, full), (1, swapped)):
            self.post("1.38", {consumer: self.body(
                "1.38", {node: {"VCPU": 8}}, consumer_generation=generation)
                for consumer, node in zip((left, right), nodes, strict=True)})
            for consumer, node in zip((left, right), nodes, strict=True):
                self.assertEqual({node: {"VCPU": 8}},
                                 self.api.get_allocations(None, consumer).by_provider())
        self.assertEqual(3, self.api.get_provider(None, self.node).generation)

    def test_all_or_none(self):
        fits, not_ = base.new_uuid(), base.new_uuid()
        self.post("1.13", {fits: self.body("1.13"),
                           not_: self.body("1.13", {self.node: {"VCPU": 8}})}, 409)
        self.conflict("1.28", {fits: self.body("1.28"),
                               not_: self.body("1.28", consumer_generation=4)},
                      "expected null but got 4", method="POST", path="/allocations")
        self.assertEqual({}, self.api.get_allocations(None, fits).by_provider())
        self.assertEqual(1, self.api.get_provider(None, self.node).generation)
        # None of the refused is left behind, so that it must not exist still holds.
        self.post("1.28", {fits: self.body("1.28"), not_: self.body("1.28")})

    def test_some_release_what_others_take(self):
        source, target = base.new_uuid(), base.new_uuid()
        self.post("1.13", {source: self.body("1.13", {self.node: {"VCPU": 8}})})
        self.post("1.13", {source: self.body("1.13", {}),
                           target: self.body("1.13", {self.node: {"VCPU": 8}})})
        self.assertEqual({}, self.api.get_allocations(None, source).by_provider())
        self.assertEqual(3, self.api.get_provider(None, self.node).generation)

    def test_a_repeated_post_is_answered_as_before(self):
        by_consumer = {base.new_uuid(): self.body("1.28") for _ in range(3)}
        for _ in range(2):
            self.post("1.28", by_consumer, Idempotency_Key="one")
        self.assertEqual(2, self.api.get_provider(None, self.node).generation)
        reverse = dict(reversed(by_consumer.items()))
        self.post("1.28", reverse, Idempotency_Key="one")
        self.post("1.28", {base.new_uuid(): self.body("1.28")}, 409, Idempotency_Key="one")
        self.post("1.28", by_consumer, 409)

    def test_since_1_13_and_without_etags(self):
        self.post("1.12", {self.consumer: self.body("1.12")}, 404)
        self.post("1.13", {self.consumer: self.body("1.13")}, 412, If_Match='"tag"')
        self.post("1.13", {self.consumer: self.body("1.13")}, If_Match="*")
        for version in ("1.13", "1.28", "1.34", "1.38"):
            self.post(version, {self.consumer: {"allocations": {}}}, 400)
            self.post(version, [], 400)

    def test_a_post_is_one_call(self):
        calls, call = [], self.api.sender.call

        def counted(context, method, arguments, timeout):
            calls.append(method)
            return call(context, method, arguments, timeout)

        self.api.sender.call = counted
        self.post("1.28", {base.new_uuid(): self.body("1.28") for _ in range(4)})
        self.write("1.28", self.body("1.28"))
        self.write("1.28", self.body("1.28", {}, consumer_generation=1))
        self.shown("1.38")
        self.assertEqual(
            ["set_allocations", "claim_allocations", "set_allocations", "get_allocations"], calls)

    def test_too_many(self):
        self.running.conf.set_override("max_batch", 2, "claims")
        self.addCleanup(self.running.conf.clear_override, "max_batch", "claims")
        self.post("1.13", {base.new_uuid(): self.body("1.13") for _ in range(3)}, 413)
