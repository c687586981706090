# SPDX-License-Identifier: Apache-2.0
"""Access control over HTTP, and the headers that every answer has."""

import json
import os
import re
import time

import fixtures

from placement_rpc import api, exception, policies
from placement_rpc.context import RequestContext
from placement_rpc.http import microversion, routes
from placement_rpc.http.facade import Facade
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base, http

REQUEST_ID = re.compile(r"req-[0-9a-f-]{36}")


class DevelopmentTest(http.HTTPTest):

    def test_without_a_token(self):
        for path in ("/resource_providers", "/nothing", "/resource_providers/"):
            answer = self.send("GET", path, token=None)
            self.refused(401, answer)
            self.assertTrue(answer.headers["www-authenticate"])
        # Before the version is looked at.
        self.refused(401, self.send("GET", "/events", token=None, version="0.5"))

    def test_what_needs_no_token(self):
        for path in ("/", "/openapi.json"):
            self.assertEqual(200, self.send("GET", path, token=None).status_code)
        self.assertEqual(200, http.request(
            self.facade.application, "GET", "/healthcheck").status_code)

    def test_only_one_address_is_the_health_check(self):
        for path in ("/healthcheck/", "/healthcheckx", "/healthcheck/../resource_providers"):
            self.refused(401, self.send("GET", path, token=None))

    def test_roles(self):
        for token, headers, status in (
                ("admin", {}, 200), ("admin:blue", {}, 200), ("ada", {}, 403), ("", {}, 403),
                ("ada", {"X_Roles": "service"}, 200), ("ada", {"X_Roles": "reader,admin"}, 200),
                ("admin", {"X_Roles": "reader"}, 403),
                ("admin", {"OpenStack_System_Scope": "all"}, 403)):
            answer = self.send("GET", "/resource_providers", token=token, **headers)
            self.assertEqual(status, answer.status_code, (token, headers))

    def test_every_route_is_protected(self):
        values = {"uuid": base.new_uuid(), "consumer_uuid": base.new_uuid(), "name": "VCPU",
                  "resource_class": "VCPU"}
        for route in routes.ROUTES:
            if route.rule is None:
                continue
            query = f"?{route.variant}" if route.variant else ""
            error = self.refused(403, self.send(
                route.method, route.path.format(**values) + query, token="ada",
                version=microversion.text(route.since)))
            self.assertIn(route.rule, error["detail"])

    def test_every_rule_names_its_routes(self):
        used = {route.rule for route in routes.ROUTES} - {None}
        self.assertEqual(set(), used - {rule.name for rule in policies.list_rules()})
        documented = {(operation["method"], operation["path"].partition("?")[0])
                      for rule in policies.list_rules() if rule.name in used
                      for operation in rule.operations}
        self.assertEqual({(route.method, route.path) for route in routes.ROUTES if route.rule},
                         documented)

    def test_what_every_answer_says(self):
        for path, version in (("/", "1.0"), ("/resource_providers", "1.3"), ("/nothing", "1.4")):
            headers = self.send("GET", path, version=version).headers
            self.assertEqual(f"placement {version}", headers["openstack-api-version"])
            self.assertEqual("openstack-api-version", headers["vary"])
            self.assertTrue(REQUEST_ID.fullmatch(headers["x-openstack-request-id"]))
            self.assertNotIn("last-modified", headers)
        self.assertEqual("placement 1.39", self.send(
            "GET", "/resource_providers", version="latest").headers["openstack-api-version"])
        for given, version in ((None, "1.0"), ("compute 2.5, placement 1.2", "1.2"),
                               ("compute 2.5", "1.0")):
            self.assertEqual(f"placement {version}", self.send(
                "GET", "/", OpenStack_API_Version=given).headers["openstack-api-version"])

    def test_what_is_newer_than_the_version_is_not_there(self):
        uuid = self.make()
        for version, path in (("1.0", f"/resource_providers/{uuid}/aggregates"),
                              ("1.1", "/resource_classes"), ("1.1", "/resource_classes/VCPU")):
            self.refused(404, self.send("GET", path, version=version))
        names = {version: [each["rel"] for each in self.get(
            f"/resource_providers/{uuid}", version=version)["links"]] for version in (
                "1.0", "1.1")}
        self.assertEqual(["self", "inventories", "usages"], names["1.0"])
        self.assertEqual(["self", "inventories", "usages", "aggregates"], names["1.1"])

    def test_a_change_under_a_key_is_made_once(self):
        for _ in range(2):
            answer = self.send("POST", "/resource_providers", {"name": "a"},
                               Idempotency_Key="once")
            self.assertEqual(201, answer.status_code)
        self.assertEqual("placement.request.id_reused", self.refused(409, self.send(
            "POST", "/resource_providers", {"name": "b"}, Idempotency_Key="once"))["code"])
        for key in ("a b", '"', '""', '"a', '""a""'):
            self.refused(400, self.send("POST", "/resource_providers", {"name": "b"},
                                        Idempotency_Key=key))
        # With the quotation marks of a structured field.
        self.assertEqual(201, self.send("POST", "/resource_providers", {"name": "a"},
                                        Idempotency_Key='"once"').status_code)


class OwnerRuleTest(http.HTTPTest):
    """A rule with %(project_id)s is about the project of the consumer, not of the caller."""

    RULES = {f"placement:{name}": "role:admin or project_id:%(project_id)s" for name in (
        "allocations:list", "allocations:update", "allocations:delete", "events:list",
        "resource_providers:allocations:list", "resource_providers:usages")}

    def setUp(self):
        path = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        self.options = {"oslo_policy__policy_file": path}
        with open(path, "w") as file:
            json.dump(self.RULES, file)
        super().setUp()
        self.node = self.make(VCPU={"total": 8})
        self.consumer = base.new_uuid()
        self.path = f"/allocations/{self.consumer}"
        self.api.claim_allocations(None, base.claim(
            {self.node: {"VCPU": 1}}, self.consumer, project_id="blue", user_id="ada"))
        self.body = {"allocations": [
            {"resource_provider": {"uuid": self.node}, "resources": {"VCPU": 2}}]}

    def test_the_owner_may(self):
        self.assertEqual(200, self.send("GET", self.path, token="ada:blue").status_code)
        self.assertEqual(204, self.send(
            "PUT", self.path, self.body, token="ada:blue").status_code)
        self.assertEqual(204, self.send("DELETE", self.path, token="bob:blue").status_code)

    def test_another_project_may_not(self):
        for _ in range(2):
            # The decision about the owner is not that about another.
            self.assertEqual(200, self.send("GET", self.path, token="ada:blue").status_code)
            for method, body in (("GET", None), ("PUT", self.body), ("DELETE", None)):
                self.refused(403, self.send(method, self.path, body, token="ada:red"))
        other = f"/allocations/{base.new_uuid()}"
        for method, body in (("GET", None), ("PUT", self.body), ("DELETE", None)):
            # What nobody has is of no project, and a new consumer is of the configured one.
            self.refused(403, self.send(method, other, body, token="ada:blue"))
        self.assertEqual(204, self.send(
            "PUT", other, self.body,
            token=f"ada:{self.running.conf.placement.incomplete_consumer_project_id}").status_code)
        self.refused(403, self.send("GET", "/allocations/pony", token="ada:blue"))

    def test_the_body_names_the_owner_of_a_new_consumer(self):
        def claim(project, token, body=None, version="1.28"):
            return self.send("PUT", f"/allocations/{base.new_uuid()}", body or {
                "allocations": {self.node: {"resources": {"VCPU": 1}}}, "project_id": project,
                "user_id": "ada", "consumer_generation": None}, version=version, token=token)

        self.assertEqual(204, claim("blue", "ada:blue").status_code)
        self.refused(403, claim("red", "ada:blue"))
        # A body that is not valid has no owner, and is refused as one if the rule admits it.
        for body in ("{", '{"project_id": 1}', '["blue"]', b"\xff"):
            self.refused(403, claim(None, "ada:blue", body))
            self.refused(400, claim(None, "admin", body))
        self.refused(400, claim(None, "ada:blue", {"project_id": "blue"}))

    def test_who_gives_allocations_away_has_to_be_admitted_for_both_owners(self):
        def give(project, token):
            return self.send("PUT", self.path, {
                "allocations": {self.node: {"resources": {"VCPU": 1}}}, "project_id": project,
                "user_id": "ada", "consumer_generation": 1}, version="1.28", token=token)

        self.refused(403, give("red", "ada:blue"))
        self.refused(403, give("red", "ada:red"))
        self.assertEqual(204, give("blue", "ada:blue").status_code)

    def test_what_is_of_all_projects_is_of_none(self):
        for path in ("/events", f"/resource_providers/{self.node}/allocations"):
            self.refused(403, self.send("GET", path, token="ada:blue"))
            self.assertEqual(200, self.send("GET", path).status_code)

    def test_what_is_of_no_project_is_of_all(self):
        for token in ("ada:blue", "admin"):
            self.assertEqual(200, self.send(
                "GET", f"/resource_providers/{self.node}/usages", token=token).status_code)


class RemoteOwnerRuleTest(OwnerRuleTest):
    """The same, checked by the service again, and by the service alone."""

    def setUp(self):
        super().setUp()
        self.facade = Facade(self.running.conf, self.api, is_remote=True)
        self.addCleanup(self.facade.close)

    def test_the_service_does_not_rely_on_the_facade(self):
        for project, refused in (("blue", False), ("red", True)):
            caller = RequestContext(
                user_id="ada", project_id=project, rule="placement:allocations:list")
            if refused:
                self.assertRaises(
                    exception.Forbidden, self.api.get_allocations, caller, self.consumer)
            else:
                self.assertTrue(self.api.get_allocations(caller, self.consumer).objects)
            caller.rule = "placement:events:list"
            self.assertRaises(exception.Forbidden, self.api.list_events, caller)
            caller.rule = "placement:allocations:update"
            claim = base.claim({self.node: {"VCPU": 2}}, self.consumer, project_id=project)
            if refused:
                self.assertRaises(exception.Forbidden, self.api.claim_allocations, caller, claim)
            else:
                self.api.claim_allocations(caller, claim)


class PolicyFileTest(http.HTTPTest):

    def setUp(self):
        self.path = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        self.options = {"oslo_policy__policy_file": self.path}
        self.write({"placement:resource_providers:list": "role:reader",
                    "placement:resource_providers:create": "!"})
        super().setUp()

    def write(self, rules):
        with open(self.path, "w") as file:
            json.dump(rules, file)

    def test_the_operators_policy_file_overrides_the_defaults(self):
        self.assertEqual(200, self.send(
            "GET", "/resource_providers", token="ada", X_Roles="reader").status_code)
        self.refused(403, self.send("GET", "/resource_providers"))
        self.refused(403, self.send("POST", "/resource_providers", {"name": "a"}))

    def test_a_change_of_it_is_seen(self):
        self.refused(403, self.send("GET", "/resource_providers"))
        self.write({})
        os.utime(self.path, (time.time() + 60,) * 2)
        base.wait_until(
            lambda: self.send("GET", "/resource_providers").status_code == 200)


class RemoteTest(base.TestCase):
    """With the transport rpc the service checks the policy once more."""

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService(
            api__auth_strategy="noauth2"))
        self.facade = Facade(self.running.conf, self.running.api, is_remote=True)
        self.addCleanup(self.facade.close)

    def context(self, *roles, rule):
        return RequestContext(user_id="ada", project_id="blue", roles=list(roles), rule=rule)

    def test_a_call_of_the_facade_carries_its_rule(self):
        caller = self.context("admin", rule=None)
        self.facade.authorize(caller, "placement:resource_providers:list")
        self.assertEqual([], self.running.api.list_providers(caller).objects)
        self.assertRaises(exception.Forbidden, self.running.api.create_provider, caller, "a")

    def test_the_service_knows_of_the_caller_what_the_facade_does(self):
        path = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        names = ("user_domain_id", "project_domain_id", "service_user_id",
                 "service_user_domain_id", "service_project_id", "service_project_domain_id")
        with open(path, "w") as file:
            json.dump({"placement:resource_providers:list": " and ".join((
                "is_admin_project:False", "service_roles:nova",
                *(f"{name}:its_{name}" for name in names)))}, file)
        self.running.conf.set_override("policy_file", path, group="oslo_policy")
        values = {name: f"its_{name}" for name in names} | {
            "service_roles": ["nova"], "is_admin_project": False,
            "rule": "placement:resource_providers:list"}
        self.assertEqual([], self.running.api.list_providers(RequestContext(**values)).objects)
        for wrong in (*({name: None} for name in names), {"service_roles": []},
                      {"is_admin_project": True}, {"domain_id": "home"}, {"system_scope": "all"}):
            self.assertRaises(exception.Forbidden, self.running.api.list_providers,
                              RequestContext(**{**values, **wrong}))

    def test_a_facade_that_was_talked_into_it_gets_nowhere(self):
        for roles, rule in (([], "placement:resource_providers:list"),
                            (["admin"], "placement:usages"), (["admin"], "admin_or_service_api"),
                            (["admin"], "\n" * 500)):
            error = self.assertRaises(
                exception.Forbidden, self.running.api.list_providers,
                self.context(*roles, rule=rule))
            self.assertLess(len(error.text), 200)

    def test_every_rule_of_the_table_of_calls_is_a_policy_rule(self):
        known = {rule.name for rule in policies.list_rules()}
        named = {rule for call in contract.CALLS.values() for rule in call.rules}
        self.assertEqual(set(), named - known)
        self.assertGreater(len(named), 20)

    def test_every_call_of_the_table_has_a_method_of_the_client(self):
        self.assertEqual([], [method for method in contract.CALLS
                              if not callable(getattr(api.PlacementAPI, method, None))])

    def test_every_route_gets_through(self):
        """No resource makes a call that its rule does not cover."""
        uuid = self.running.api.create_provider(None, "node").uuid
        self.running.api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        self.running.api.resource_class_create(None, "CUSTOM_A")
        bodies = {
            "created": {"name": "CUSTOM_B"}, "requested": {"resources": {"VCPU": 1}},
            "explained": {"resources": {"VCPU": 1}}, "headroom": {"resources": {"VCPU": 1}},
            "renamed": {"name": "CUSTOM_C"},
            "added": {"resource_class": "DISK_GB", "total": 5},
            "updated": {"total": 9, "resource_provider_generation": 0},
            "reshaped": {"allocations": {}, "inventories": {uuid: {
                "resource_provider_generation": 0, "inventories": {}}}},
            "claimed": {"allocations": [
                {"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 1}}]}}
        values = {"uuid": uuid, "consumer_uuid": base.new_uuid(), "name": "CUSTOM_A",
                  "resource_class": "VCPU"}
        for route in sorted(routes.ROUTES, key=lambda each: each.method == "DELETE"):
            body = bodies.get(route.handler.__name__)
            if route.handler.__name__ == "replaced":
                body = [] if "aggregates" in route.path else {
                    "resource_provider_generation": 0, **(
                        {"traits": []} if "traits" in route.path else {"inventories": {}})}
            version = max(route.since, (1, 4))
            # Several tags make the resource look at the provider.
            answer = http.request(
                self.facade.application, route.method, route.path.format(**values),
                route.variant or "", body=json.dumps(body) if body is not None else "",
                headers={
                    "Content-Type": "application/json", "X-Auth-Token": "admin",
                    "X-Roles": "admin,service",
                    "OpenStack-API-Version": "placement {}.{}".format(*version),
                    **({"If-Match": f'"{uuid}-90", "{uuid}-91"'} if route.method in (
                        "PUT", "DELETE") and "{uuid}" in route.path else {})})
            self.assertNotIn(answer.status_code, (401, 403, 500), f"{route.method} {route.path}")
