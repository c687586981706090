# SPDX-License-Identifier: Apache-2.0
"""What each role may do: the same as with OpenStack Placement, keystone and policy file."""

import json

import testscenarios

from tests import base, keystone_server
from tests.conformance import keystone_case

_CONSUMER = {"allocations": {"<provider>": {"resources": {"VCPU": 1}}}, "project_id": "<blue>",
             "user_id": "ada", "consumer_generation": None, "consumer_type": "INSTANCE"}
#: Each request to the body that it has.
_REQUESTS = {
    "GET /": None,
    "GET /nothing": None,
    "GET /resource_providers": None,
    "GET /resource_providers?resources=VCPU:pony": None,
    "POST /resource_providers": {"name": "<new>"},
    "GET /resource_providers/<provider>": None,
    "GET /resource_providers/<missing>": None,
    "PUT /resource_providers/<missing>": {"name": "<new>"},
    "DELETE /resource_providers/<missing>": None,
    "GET /resource_providers/<provider>/inventories": None,
    "POST /resource_providers/<missing>/inventories": {"resource_class": "VCPU", "total": 1},
    "PUT /resource_providers/<missing>/inventories": {
        "resource_provider_generation": 0, "inventories": {}},
    "DELETE /resource_providers/<missing>/inventories": None,
    "GET /resource_providers/<provider>/inventories/VCPU": None,
    "PUT /resource_providers/<missing>/inventories/VCPU": {
        "resource_provider_generation": 0, "total": 1},
    "DELETE /resource_providers/<missing>/inventories/VCPU": None,
    "GET /resource_providers/<provider>/usages": None,
    "GET /resource_providers/<provider>/allocations": None,
    "GET /resource_providers/<provider>/aggregates": None,
    "PUT /resource_providers/<missing>/aggregates": {
        "resource_provider_generation": 0, "aggregates": []},
    "GET /resource_providers/<provider>/traits": None,
    "PUT /resource_providers/<missing>/traits": {
        "resource_provider_generation": 0, "traits": []},
    "DELETE /resource_providers/<missing>/traits": None,
    "GET /traits": None,
    "GET /traits/HW_CPU_X86_AVX": None,
    "PUT /traits/CUSTOM_<NEW>": None,
    "DELETE /traits/CUSTOM_MISSING": None,
    "GET /resource_classes": None,
    "POST /resource_classes": {"name": "CUSTOM_<NEW>"},
    "GET /resource_classes/VCPU": None,
    "PUT /resource_classes/CUSTOM_PONY": None,
    "DELETE /resource_classes/CUSTOM_MISSING": None,
    "GET /allocations/<consumer>": None,
    "PUT /allocations/<fresh>": _CONSUMER,
    "DELETE /allocations/<unused>": None,
    "POST /allocations": {"<fresh>": _CONSUMER},
    "POST /reshaper": {"inventories": {}, "allocations": {}},
    "GET /allocation_candidates?resources=VCPU:1": None,
    "GET /usages": None,
    "GET /usages?project_id=<blue>": None,
    "GET /usages?project_id=<red>": None,
    "GET /usages?project_id=<blue>&user_id=ada": None,
}
#: Each caller to the arguments of its token.
_CALLERS = {
    "nova": {"project": "service"}, "old-nova": {"project": "service"},
    "admin": {"project": "admin"}, "operator": {"project": "operator"},
    "operator, as reader": {"project": "blue"}, "manager": {"project": "blue"},
    "member": {"project": "blue"}, "member, of red": {"project": "red"},
    "reader": {"project": "blue"}, "auditor": {"project": "operator"},
    "stranger, unscoped": {}, "admin, unscoped": {}, "admin, of the domain": {
        "domain_id": "default"}, "admin, of the system": {"system_scope": "all"},
}
# As operators write them: with comments, names of their own, both kinds of quotes, a rule of a
# release long ago, and checks of all kinds.
_POLICY = """
# Kept since Train.
"placement": "role:admin"
"auditing": "role:auditor"
"cloud_admin": "role:admin and project_id:{operator}"
'placement:resource_providers:list': 'rule:admin_or_service_api or rule:auditing'
"placement:resource_providers:show": "rule:admin_or_service_api or rule:auditing"
"placement:resource_providers:usages": "rule:admin_or_service_api or rule:auditing"
"placement:resource_classes:delete": "!"
"placement:resource_providers:delete": "rule:cloud_admin"
"placement:resource_providers:inventories:list": "role:reader"
"placement:resource_providers:inventories:show": [["role:reader"], ["rule:auditing"]]
"placement:resource_providers:traits:list": "role:member and not role:manager"
"placement:resource_providers:traits:delete": "user_domain_id:default and role:manager"
"placement:allocation_candidates:list": "(role:member or role:service) and project_id:{blue}"
"placement:traits:list": "@"
"placement:traits:show": ""
"placement:traits:update": "is_admin_project:True and role:admin"
"placement:traits:delete": "role:ADMIN"
"placement:resource_classes:create": "rule:admin_api"
"placement:resource_providers:create": "rule:admin_api"
"placement:resource_classes:list": "not role:reader"
"placement:resource_classes:show": "rule:of_nobody"
"placement:allocations:list": "rule:admin_or_service_api or role:auditor"
"placement:allocations:delete": "system_scope:all or role:service"
"placement:reshaper:reshape": "rule:service_api or role:admin"
"placement:usages": "rule:project_reader_api or role:auditor or role:service"
"""


class RolesTest(testscenarios.WithScenarios, keystone_case.KeystoneTest):
    """Every request by every caller: the answers of both servers have the same status."""

    scenarios = [
        ("defaults", {}),
        ("a policy file", {"policy": _POLICY, "names": (
            keystone_case.OURS, keystone_case.PEER, keystone_case.ON_THE_BUS)}),
        ("old defaults", {"oslo_policy": {"enforce_new_defaults": False}, "share": 6}),
        *([("a policy file and old defaults", {
            "policy": _POLICY, "oslo_policy": {"enforce_new_defaults": False}})]
          if base.FULL else []),
    ]
    policy, oslo_policy, names = None, {}, (keystone_case.OURS, keystone_case.PEER)
    # Of so many requests a caller makes one, unless all tests run in full.
    share = 2
    turn = 0

    def setUp(self):
        super().setUp()
        self.keystone = keystone_server.shared()
        projects = {each.name: each.id for each in self.keystone.client().projects.list()}
        self.texts = {"blue": projects["blue"], "red": projects["red"], "new": "a",
                      "NEW": "A", **{name: base.new_uuid() for name in (
                          "provider", "consumer", "missing", "unused")}}
        self.servers = self.useFixture(keystone_case.Servers(
            self.keystone, self.names,
            self.policy and self.policy.format(**projects), self.oslo_policy))
        self.make_provider()

    def make_provider(self):
        """Make a provider with room on each server."""
        token = self.keystone.token("admin", "admin")
        for request, body in (
                ("POST /resource_providers", {"name": "node", "uuid": "<provider>"}),
                ("PUT /resource_providers/<provider>/inventories", {
                    "resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1000}}})):
            self.check_status(200, self.servers, self.fill(request), token, body=self.fill(body))

    def fill(self, value):
        """Put the names of this test into a text or into a JSON value."""
        text = json.dumps(value)
        for name, its in (*self.texts.items(), ("fresh", base.new_uuid())):
            text = text.replace(f"<{name}>", its)
        return json.loads(text)

    def sample(self):
        """Return the requests of a caller, and their bodies."""
        share = 1 if base.FULL else self.share
        self.turn += 1
        return list(_REQUESTS.items())[self.turn % share::share]

    def test_callers(self):
        found, seen = {}, set()
        for caller, scope in _CALLERS.items():
            token = self.keystone.token(caller.partition(",")[0], **scope)
            for request, body in self.sample():
                got = self.statuses(
                    self.servers, self.fill(request), token, body=self.fill(body))
                seen.update(got.values())
                if len(set(got.values())) > 1:
                    found[caller, request] = got
        self.assertEqual({}, found)
        # None of them only because a token is invalid, or a server at fault.
        self.assertEqual({200, 204, 400, 403, 404}, seen - {201, 409})


class OwnersTest(keystone_case.KeystoneTest):
    """Rules with %(project_id)s, which OpenStack Placement compares with the caller's project.

    Here that is so for what belongs to no project. What belongs to consumers is of their projects:
    otherwise such a rule would let every project read and release everything.
    """

    def setUp(self):
        super().setUp()
        self.keystone = keystone_server.shared()
        self.servers = self.useFixture(keystone_case.Servers(self.keystone, policy="".join(
            f'"placement:{name}": "role:admin or rule:project_reader_api"\n' for name in (
                "resource_providers:list", "resource_providers:show", "traits:list",
                "allocation_candidates:list", "resource_providers:usages",
                "resource_providers:allocations:list", "allocations:list"))))
        self.token = self.keystone.token("reader", "blue")

    def test_what_is_of_no_project(self):
        for request in ("GET /resource_providers", f"GET /resource_providers/{base.new_uuid()}",
                        "GET /traits", "GET /allocation_candidates?resources=VCPU:1",
                        f"GET /resource_providers/{base.new_uuid()}/usages"):
            self.check_status(404 if "-" in request else 200, self.servers, request, self.token)
        self.check_status(403, self.servers, "GET /resource_providers",
                          self.keystone.token("stranger"))

    def test_what_is_of_consumers(self):
        for request, status in ((f"GET /allocations/{base.new_uuid()}", 200), (
                f"GET /resource_providers/{base.new_uuid()}/allocations", 404)):
            self.assertEqual(
                {keystone_case.PEER: status, keystone_case.OURS: 403},
                self.statuses(self.servers, request, self.token))
