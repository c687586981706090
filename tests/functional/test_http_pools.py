# SPDX-License-Identifier: Apache-2.0
"""Resource pools: the examples of generic-resource-pools-draft, and its ETags."""

from tests import base, http
from tests.functional.test_http_specification import ADDRESSES, DISK, NFS, links


class PoolsTest(http.HTTPTest):
    # The draft is older than microversions.
    version = "1.0"

    def setUp(self):
        super().setUp()
        self.path = f"/resource_pools/{NFS}"
        self.send("POST", "/resource_pools", {"name": "Global NFS share", "uuid": NFS})

    def put(self, path, body, **headers):
        """PUT at the state that is current; returns the answer."""
        etag = self.send("GET", self.path).headers["etag"]
        return self.send("PUT", self.path + path, body, **{"If_Match": etag, **headers})

    def test_create_list_show(self):
        other = base.new_uuid()
        answer = self.send("POST", "/resource_pools", {"name": "RBD", "uuid": other})
        self.assertEqual((201, ""), (answer.status_code, answer.text))
        self.assertTrue(answer.headers["location"].endswith(f"/resource_pools/{other}"))
        self.refused(409, self.send("POST", "/resource_pools", {"name": "RBD"}))
        expected = {"uuid": NFS, "name": "Global NFS share"}
        for found in (self.get("/resource_pools")["resource_pools"][0], self.get(self.path)):
            its = {each["rel"]: each["href"] for each in found.pop("links")}
            self.assertEqual((expected, links(NFS, "resource_pools")), (found, its))
        self.get(f"/resource_pools/{base.new_uuid()}", 404)

    def test_rename(self):
        answer = self.put("", {"name": "Shared by all"})
        self.assertEqual((204, ""), (answer.status_code, answer.text))
        self.assertEqual(self.send("GET", self.path).headers["etag"], answer.headers["etag"])
        self.assertEqual("Shared by all", self.get(self.path)["name"])

    def test_inventories(self):
        path = f"{self.path}/inventories"
        answer = self.send("POST", path, {"resource_class": "DISK_GB", **DISK})
        self.assertEqual((201, ""), (answer.status_code, answer.text))
        self.assertTrue(answer.headers["location"].endswith(f"{path}/DISK_GB"))
        self.send("POST", path, {"resource_class": "IPV4_ADDRESS", **ADDRESSES})
        self.assertEqual({"inventories": {"DISK_GB": DISK, "IPV4_ADDRESS": ADDRESSES}},
                         self.get(path))
        self.assertEqual({"resource_class": "DISK_GB", **DISK}, self.get(f"{path}/DISK_GB"))
        answer = self.put("/inventories/DISK_GB", {**DISK, "total": 1024})
        self.assertEqual((204, ""), (answer.status_code, answer.text))
        self.assertEqual(1024, self.get(f"{path}/DISK_GB")["total"])
        self.assertEqual(204, self.send("DELETE", f"{path}/IPV4_ADDRESS").status_code)
        self.refused(404, self.send("DELETE", f"{path}/IPV4_ADDRESS"))

    def test_capacity_below_what_is_used(self):
        self.send("POST", f"{self.path}/inventories", {"resource_class": "VCPU", "total": 8})
        self.api.claim_allocations(None, base.claim({NFS: {"VCPU": 8}}))
        etag = self.send("GET", self.path).headers["etag"]
        for version in ("1.0", "1.5", "1.39"):
            self.refused(409, self.send(
                "PUT", f"{self.path}/inventories/VCPU", {"total": 7}, version, If_Match=etag))

    def test_aggregates_and_usages(self):
        wanted = sorted([base.new_uuid(), base.new_uuid()])
        self.assertEqual({"aggregates": []}, self.get(f"{self.path}/aggregates"))
        self.assertEqual(204, self.put("/aggregates", wanted).status_code)
        self.assertEqual({"aggregates": wanted}, self.get(f"{self.path}/aggregates"))
        self.assertEqual({"usages": {}}, self.get(f"{self.path}/usages"))

    def test_delete(self):
        self.assertEqual(204, self.send("DELETE", self.path).status_code)
        self.refused(404, self.send("DELETE", self.path))


class ETagTest(PoolsTest):

    def test_every_get_has_the_same_strong_tag(self):
        self.api.set_inventory(None, NFS, [base.inventory("VCPU", 4)])
        tags = {self.send("GET", f"/{collection}/{NFS}{path}", version="1.4").headers["etag"]
                for collection in ("resource_pools", "resource_providers")
                for path in ("", "/inventories", "/inventories/VCPU", "/aggregates", "/usages")}
        tags.add(self.send("GET", f"/resource_providers/{NFS}/allocations").headers["etag"])
        self.assertEqual({f'"{NFS}-1"'}, tags)
        for change in (lambda: self.api.update_provider(None, NFS, "new"),
                       lambda: self.api.set_aggregates(None, NFS, [base.new_uuid()]),
                       lambda: self.api.claim_allocations(
                           None, base.claim({NFS: {"VCPU": 1}}))):
            before = self.send("GET", self.path).headers["etag"]
            change()
            self.assertNotEqual(before, self.send("GET", self.path).headers["etag"])

    def test_a_put_of_a_pool_needs_one(self):
        for path, body in (("", {"name": "x"}), ("/aggregates", []),
                           ("/inventories/VCPU", {"total": 4})):
            error = self.refused(428, self.send("PUT", self.path + path, body))
            self.assertEqual("placement.precondition.required", error["code"])

    def test_a_stale_one_is_refused_everywhere(self):
        self.api.set_inventory(None, NFS, [base.inventory("VCPU", 4)])
        stale = f'"{NFS}-0"'
        for collection in ("resource_pools", "resource_providers"):
            for method, path, body in (
                    ("PUT", "", {"name": "x"}), ("PUT", "/aggregates", []),
                    ("PUT", "/inventories/VCPU", {
                        "total": 4, **({"resource_provider_generation": 1}
                                       if collection == "resource_providers" else {})}),
                    ("POST", "/inventories", {"resource_class": "DISK_GB", "total": 4}),
                    ("DELETE", "/inventories/VCPU", None), ("DELETE", "", None),
                    ("GET", "", None), ("GET", "/usages", None)):
                answer = self.send(method, f"/{collection}/{NFS}{path}", body, version="1.4",
                                   If_Match=stale)
                self.assertEqual("placement.precondition.failed",
                                 self.refused(412, answer)["code"], f"{method} {path}")
        self.assertEqual(1, self.api.get_provider(None, NFS).generation)

    def test_which_tags_match(self):
        current, other = f'"{NFS}-{{}}"', f'"{base.new_uuid()}-0"'
        for given, status in (
                ("*", 204), ("{}, " + other, 204), (other + " ,  {}", 204),
                ("W/{}", 412), (other, 412), ('"', 412), ("pony", 412), ("", 412)):
            generation = self.api.get_provider(None, NFS).generation
            answer = self.send("PUT", self.path, {"name": f"at {generation}"},
                               If_Match=given.format(current.format(generation)))
            self.assertEqual(status, answer.status_code, given)

    def test_the_tag_and_the_generation_of_a_body(self):
        self.api.set_inventory(None, NFS, [base.inventory("VCPU", 4)])
        path = f"/resource_providers/{NFS}/inventories"
        for tag, generation, status in ((0, 1, 412), (1, 0, 409), (0, 0, 412), (1, 1, 200)):
            answer = self.send(
                "PUT", path, {"resource_provider_generation": generation, "inventories": {
                    "VCPU": {"total": 5}}}, If_Match=f'"{NFS}-{tag}"')
            self.assertEqual(status, answer.status_code, (tag, generation))

    def test_what_a_client_has_already_is_not_sent_again(self):
        etag = self.send("GET", self.path).headers["etag"]
        for given in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            answer = self.send("GET", self.path, If_None_Match=given)
            self.assertEqual((304, "", etag), (
                answer.status_code, answer.text, answer.headers["etag"]))
        self.assertEqual(200, self.send("GET", self.path, If_None_Match='"x"').status_code)

    def test_of_a_consumer(self):
        self.api.set_inventory(None, NFS, [base.inventory("VCPU", 4)])
        path = f"/allocations/{base.new_uuid()}"
        body = {"allocations": [
            {"resource_provider": {"uuid": NFS}, "resources": {"VCPU": 1}}]}
        self.send("PUT", path, body)
        etag = self.send("GET", path).headers["etag"]
        body["allocations"][0]["resources"]["VCPU"] = 2
        self.assertEqual(204, self.send("PUT", path, body, If_Match=etag).status_code)
        self.refused(412, self.send("PUT", path, body, If_Match=etag))
        self.refused(412, self.send("DELETE", path, If_Match=etag))
        self.assertEqual(204, self.send("DELETE", path, If_Match="*").status_code)

    def test_of_a_consumer_that_holds_nothing(self):
        self.api.set_inventory(None, NFS, [base.inventory("VCPU", 4)])
        path = f"/allocations/{base.new_uuid()}"
        body = {"allocations": [
            {"resource_provider": {"uuid": NFS}, "resources": {"VCPU": 1}}]}
        for given in ("*", '"x"'):
            for method in ("GET", "PUT", "DELETE"):
                self.refused(412, self.send(
                    method, path, body if method == "PUT" else None, If_Match=given))
        # Only if no other client was faster.
        self.assertEqual(204, self.send("PUT", path, body, If_None_Match="*").status_code)
        self.refused(412, self.send("PUT", path, body, If_None_Match="*"))

    def test_an_absurd_generation_is_no_current_one(self):
        for number in (2 ** 63, 10 ** 18):
            self.refused(412, self.send("PUT", self.path, {"name": "x"},
                                        If_Match=f'"{NFS}-{number}"'))

    def test_what_others_change_is_sent_again(self):
        """An inventory names classes, which are renamed, and allocations the providers' states."""
        self.api.set_inventory(None, NFS, [base.inventory("VCPU", 4)])
        consumer = base.new_uuid()
        self.api.claim_allocations(None, base.claim({NFS: {"VCPU": 1}}, consumer))
        for path in (f"/resource_providers/{NFS}/inventories",
                     f"/resource_providers/{NFS}/allocations", f"/allocations/{consumer}"):
            etag = self.send("GET", path).headers["etag"]
            self.assertEqual(200, self.send("GET", path, If_None_Match=etag).status_code)

    def test_of_what_has_none(self):
        for method, path, body in (
                ("GET", "/resource_pools", None), ("POST", "/resource_pools", {"name": "x"}),
                ("POST", "/resource_classes", {"name": "CUSTOM_A"})):
            self.refused(412, self.send(method, path, body, version="1.4", If_Match='"x"'))
