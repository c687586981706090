# SPDX-License-Identifier: Apache-2.0
"""Rules of OpenStack Placement: their names and defaults, and an operator's file of them."""

import json
import os
import re
import time

import fixtures
import yaml
from oslo_config import cfg
from oslo_policy import generator, opts, policy
from placement import policies as placement_policies

from placement_rpc import exception, policies
from placement_rpc import policy as authorization
from placement_rpc.context import RequestContext
from placement_rpc.http import microversion, routes
from placement_rpc.http.facade import Facade
from tests import base, http

# Rules that OpenStack Placement does not have.
OURS = {"placement:events:list", "placement:resource_providers:explain",
        "placement:resource_providers:headroom", "placement:consumers:list",
        "placement:provider_summaries:list"}


def caller(*roles, project_id="blue", **values):
    return RequestContext(user_id="ada", project_id=project_id, roles=list(roles), **values)


class DefaultsTest(base.TestCase):
    """Our rules beside those of the installed openstack-placement."""

    def setUp(self):
        super().setUp()
        self.theirs = {each.name: each for each in placement_policies.list_rules()}
        self.ours = {each.name: each for each in policies.list_rules()}

    def test_names(self):
        self.assertEqual(set(self.theirs) | OURS, set(self.ours))

    def test_defaults(self):
        for name, rule in self.theirs.items():
            self.assertEqual(str(rule.check), str(self.ours[name].check), name)
            self.assertEqual(["project"], self.ours[name].scope_types, name)
            for part in ("name", "check_str"):
                self.assertEqual(getattr(rule.deprecated_rule, part, None),
                                 getattr(self.ours[name].deprecated_rule, part, None), name)

    def test_every_rule_is_a_routes(self):
        missing = {name for name, rule in self.ours.items() if hasattr(rule, "operations")} - {
            route.rule for route in routes.ROUTES}
        self.assertEqual(set(), missing)

    def test_decisions_are_theirs(self):
        """Every role, in the own project and in another, with new and with old defaults."""
        for is_new in (True, False):
            conf = cfg.ConfigOpts()
            opts.set_defaults(conf)
            conf([], project="placement-rpc", default_config_files=[])
            conf.set_override("enforce_new_defaults", is_new, group="oslo_policy")
            # The registration of a deprecated default changes the rule.
            theirs = policy.Enforcer(conf)
            theirs.suppress_deprecation_warnings = True
            theirs.register_defaults(placement_policies.list_rules())
            ours = authorization.Enforcer(conf)
            for name in self.theirs:
                for roles in (["admin"], ["service"], ["reader"], ["member"], []):
                    for project in ("blue", "red"):
                        context = caller(*roles)
                        self.assertEqual(
                            theirs.authorize(name, {"project_id": project},
                                             context.to_policy_values(), do_raise=False),
                            self.allows(ours, context, name, project), (name, roles, project))

    def allows(self, enforcer, context, name, project):
        owner = RequestContext(project_id=project, user_id="ada")
        try:
            enforcer.authorize(context, name, authorization.Target(lambda: owner))
        except exception.Forbidden as error:
            self.assertEqual(f"Policy does not allow {name} to be performed.", error.text)
            return False
        return True


class OperatorsFileTest(http.HTTPTest):
    """A policy file that was written for OpenStack Placement."""

    version = "1.39"

    def setUp(self):
        self.path = self.useFixture(fixtures.TempDir()).join("policy.yaml")
        self.options = {"oslo_policy__policy_file": self.path}
        self.write(self.sample())
        super().setUp()

    def write(self, text):
        with open(self.path, "w") as file:
            file.write(text)

    def sample(self):
        """Return the sample that Placement's own generator writes, with all its rules active."""
        path = self.useFixture(fixtures.TempDir()).join("sample.yaml")
        generator.generate_sample(
            ["--namespace", "placement", "--output-file", path], conf=cfg.ConfigOpts())
        with open(path) as file:
            return re.sub(r'^#("[a-z])', r"\1", file.read(), flags=re.MULTILINE)

    def restart(self):
        """Serve with the file as it is now."""
        self.facade = Facade(self.running.conf, self.api)
        self.addCleanup(self.facade.close)

    def test_the_sample_of_placement(self):
        rules = yaml.safe_load(self.sample())
        self.assertLess(30, len(rules))
        self.assertEqual({each.name for each in placement_policies.list_rules()}, set(rules))
        for token, roles, status in (("admin", None, 200), ("ada", "service", 200),
                                     ("ada", "reader", 403)):
            self.assertEqual(status, self.send(
                "GET", "/resource_providers", token=token, X_Roles=roles).status_code)
        self.assertEqual(200, self.send(
            "GET", "/usages?project_id=blue", token="ada:blue", X_Roles="reader").status_code)

    def test_each_of_its_rules_decides_about_its_routes(self):
        """The file gives each rule a role of its own."""
        theirs = {each.name for each in placement_policies.list_rules()}
        self.write(json.dumps({name: f"role:of-{name.replace(':', '-')}" for name in theirs}))
        self.restart()
        values = {"uuid": base.new_uuid(), "consumer_uuid": base.new_uuid(), "name": "CUSTOM_A",
                  "resource_class": "VCPU"}
        asked = 0
        for route in routes.ROUTES:
            if route.rule not in theirs:
                continue
            query = f"?{route.variant}" if route.variant else ""
            for role, allowed in ((f"of-{route.rule.replace(':', '-')}", True), ("admin", False)):
                answer = self.send(
                    route.method, route.path.format(**values) + query, token="ada", X_Roles=role,
                    version=microversion.text(route.since))
                self.assertEqual(not allowed, answer.status_code == 403, (route, answer.text))
            asked += 1
        self.assertLess(40, asked)

    def test_old_defaults(self):
        conf = self.running.conf
        conf.set_override("enforce_new_defaults", False, group="oslo_policy")
        self.write("{}")
        self.restart()
        self.assertEqual(200, self.send("GET", "/resource_providers").status_code)
        self.assertEqual(200, self.send("GET", "/usages?project_id=red").status_code)
        self.refused(403, self.send("GET", "/resource_providers", token="ada"))

    def test_a_file_that_cannot_be_used_is_refused_at_the_start(self):
        for text, words in (('"a": [', "line 1"), ("- a", "has to map"), ("a", "has to map"),
                            ("a: 5", "has to map"), ("a: \x00", "not allowed")):
            self.write(text)
            error = self.assertRaises(exception.InvalidInput, self.restart)
            self.assertIn(self.path, error.text)
            self.assertIn(words, error.text)
            self.assertNotIn("\n", error.text)

    def test_rules_that_refer_to_themselves_are_refused(self):
        listing = "placement:resource_providers:list"
        for rules, names in (
                ({listing: f"rule:{listing}"}, listing),
                ({listing: "role:a or (role:b and not rule:x)", "x": "rule:y", "y": "rule:x"},
                 "x, y"),
                ({listing: "rule:gone", "default": "rule:gone_too"}, "default")):
            self.write(json.dumps(rules))
            error = self.assertRaises(exception.InvalidInput, self.restart)
            self.assertIn(f"these rules refer to themselves: {names}", error.text)
        for rules in ({listing: "rule:x and rule:y", "x": "rule:y", "y": "role:a"},
                      {listing: "rule:gone"}):
            self.write(json.dumps(rules))
            self.restart()

    def test_a_directory_in_its_place_is_refused_and_a_file_of_a_directory_is_named(self):
        os.unlink(self.path)
        os.mkdir(self.path)
        self.assertIn("no file", self.assertRaises(exception.InvalidInput, self.restart).text)
        os.rmdir(self.path)
        self.write('"placement:resource_providers:list": "role:chief"')
        directory = self.useFixture(fixtures.TempDir())
        self.running.conf.set_override("policy_dirs", [directory.path], group="oslo_policy")
        with open(directory.join("more.yaml"), "w") as file:
            file.write("- a")
        self.assertIn(directory.join("more.yaml"), self.assertRaises(
            exception.InvalidInput, self.restart).text)

    def test_a_conductor_that_cannot_use_its_file(self):
        """The caller is not told that its input is wrong, nor the path."""
        self.write("- a")
        error = self.assertRaises(
            exception.ServiceUnavailable, self.running.manager.check_policy,
            RequestContext(rule="placement:resource_providers:list"), "list_providers", {})
        self.assertNotIn(self.path, error.text)
        self.write("{}")
        self.running.manager.check_policy(
            caller("admin", rule="placement:resource_providers:list"), "list_providers", {})

    def test_rules_stay_in_force_when_their_file_becomes_unusable(self):
        self.write('"placement:resource_providers:list": "role:chief"')
        self.restart()
        log = self.useFixture(fixtures.FakeLogger())
        self.patch(authorization, "_CACHE_TIME", -1)
        for change in (lambda: self.write('"placement:resource_providers:list": "role:other'),
                       lambda: self.write("- a"), lambda: self.write("a: rule:a"),
                       lambda: os.unlink(self.path),
                       lambda: os.mkdir(self.path)):
            change()
            if os.path.exists(self.path):
                later = time.time() + 10
                os.utime(self.path, (later, later))
            for _ in range(2):
                self.assertEqual(200, self.send(
                    "GET", "/resource_providers", token="ada", X_Roles="chief").status_code)
                self.refused(403, self.send(
                    "GET", "/resource_providers", token="ada", X_Roles="other"))
        # A directory is no file either.
        self.assertEqual(4, log.output.count("stay in force"))
        os.rmdir(self.path)
        self.write('"placement:resource_providers:list": "role:other"')
        os.utime(self.path, (later + 10, later + 10))
        self.assertEqual(200, self.send(
            "GET", "/resource_providers", token="ada", X_Roles="other").status_code)

    def test_what_a_rule_can_ask_about_a_caller(self):
        self.write(json.dumps({
            "placement:resource_providers:list": "service_roles:service and is_admin_project:True",
            "placement:resource_classes:list": "user_domain_id:cloud"}))
        for remote in (False, True):
            enforcer = authorization.Enforcer(self.running.conf)
            for rule, values, allowed in (
                    ("resource_providers", {"service_roles": ["service"]}, True),
                    ("resource_providers", {"service_roles": ["service"],
                                            "is_admin_project": False}, False),
                    ("resource_providers", {"roles": ["service"]}, False),
                    ("resource_classes", {"user_domain_id": "cloud"}, True),
                    ("resource_classes", {"user_domain_id": "home"}, False)):
                context = RequestContext(user_id="ada", project_id="blue", **values)
                if remote:
                    context = RequestContext.from_dict(context.to_dict())
                check = enforcer.authorize, context, f"placement:{rule}:list"
                if allowed:
                    check[0](*check[1:])
                else:
                    self.assertRaises(exception.Forbidden, *check)


class OrderTest(http.HTTPTest):
    """What is checked first."""

    def test_the_version_before_the_rule(self):
        self.refused(404, self.send("GET", "/traits", token="ada", version="1.5"))
        self.refused(403, self.send("GET", "/traits", token="ada", version="1.6"))
        self.refused(404, self.send("GET", "/usages", token="ada", version="1.8"))

    def test_the_rule_of_usages_before_the_query(self):
        self.refused(403, self.send("GET", "/usages?pony=1", token="ada", version="1.9"))
        self.refused(403, self.send("GET", "/usages", token="ada", version="1.9",
                                    X_Roles="reader"))
        self.refused(400, self.send("GET", "/usages?pony=1&project_id=blue", token="ada:blue",
                                    version="1.9", X_Roles="reader"))
        self.refused(400, self.send("GET", "/usages", version="1.9"))

    def test_the_text(self):
        error = self.refused(403, self.send("GET", "/traits", token="ada", version="1.23"))
        self.assertEqual("Policy does not allow placement:traits:list to be performed.",
                         error["detail"])
