# SPDX-License-Identifier: Apache-2.0
"""``placement shadow`` with a real openstack-placement and a real facade.

Both hold the same, made through their APIs. Then their answers are the same, in whatever order and
whatever a limit leaves out; and each difference that is made on purpose is found.
"""

import json
import pathlib
import urllib.parse

import fixtures
import sqlalchemy as sa

from placement_rpc.cmd import manage, shadow_credentials
from placement_rpc.db import models
from placement_rpc.testing.facade import Facade
from tests import base, keystone_server, programs
from tests.conformance import candidate_cases, web, wire

_OLD_STYLE = '192.0.2.1 - - [23/Nov/2026:05:30:28 +0000] "GET {} HTTP/1.1" 200 9 "-" "nova"'
_REQUEST_LOG = (
    'INFO placement.requestlog [-] 192.0.2.1 "GET {}" status: 200 len: 9 microversion: {}')


class Both:
    """The services of this process, and what both hold."""

    def __init__(self, test):
        self._facade = test.useFixture(Facade())
        self.addresses = (
            test.useFixture(web.Upstream(durable=False)).url.rstrip("/"), self._facade.url)
        self.world, self.cloud = wire.World(), candidate_cases.Cloud()
        for address in self.addresses:
            for names in (self.world, self.cloud):
                names.make(address)
        self._copy_generations()

    def _copy_generations(self):
        """Give the providers those that they have in Placement, as an import does."""
        providers = json.loads(self.ask("/resource_providers").body)["resource_providers"]
        with self._facade.database.engine.begin() as connection:
            for each in providers:
                connection.execute(sa.update(models.resource_providers).where(
                    models.resource_providers.c.uuid == each["uuid"]).values(
                        generation=each["generation"]))

    def ask(self, path, method="GET", body=None, new=False):
        """Send a request to one of the services."""
        return wire.send(self.addresses[new], method, path, {
            "x-auth-token": "admin", "content-type": "application/json",
            "openstack-api-version": "placement 1.39"},
            None if body is None else json.dumps(body).encode())

    def reads(self):
        """Yield read requests of all sorts: targets and microversions."""
        for minor, queries in candidate_cases._QUERIES.items():
            for query in queries:
                yield self._candidates(query), f"1.{minor}"
        for query in candidate_cases.LIMITED:
            for limit in (1, 2, 50):
                yield self._candidates(f"{query}&limit={limit}"), "1.36"
        # Which candidate each service keeps depends on uuids: all the same for none of these
        # amounts is all but impossible.
        for amount in range(1, 17):
            yield self._candidates(f"resources=<cpu>:{amount}&limit=1"), "1.36"
        world = self.world
        for uuid in (world.full, world.child, world.missing):
            for part in ("", "/inventories", "/usages", "/traits", "/aggregates", "/allocations"):
                yield f"/resource_providers/{uuid}{part}", "1.28"
        yield from ((f"/allocations/{uuid}", "1.38") for uuid in (world.owned, world.missing))
        yield f"/resource_providers?in_tree={world.full}", "1.14"
        yield f"/resource_providers?member_of={world.aggregate}", "1.20"
        yield f"/usages?project_id={world.project}", "1.38"
        yield f"/traits/{world.trait}", "1.6"
        yield "/traits", "1.6"
        yield "/resource_classes", "1.2"

    def _candidates(self, query):
        return "/allocation_candidates?" + urllib.parse.quote(
            self.cloud.fill(query), safe="=&:,!%")


class ShadowTest(base.TestCase):

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE", "none"))
        self.both = Both(self)

    def shadow(self, *lines):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "access.log")
        path.write_text("\n".join(lines))
        done = programs.run(
            manage, "placement", "shadow", "--url", self.both.addresses[0], "--against",
            self.both.addresses[1], "--requests", str(path), "--rate", "0")
        return done.code, json.loads(done.stdout)

    def test_the_same_stores_answer_the_same(self):
        reads = list(self.both.reads())
        code, found = self.shadow(
            *(_REQUEST_LOG.format(target, version) for target, version in reads),
            *(_OLD_STYLE.format(target) for target, _ in reads[::10]))
        self.assertEqual([], found["differences"])
        self.assertEqual((0, found["planned"]), (code, found["verdicts"]["same"]))
        self.assertGreater(found["planned"], 220)
        self.assertGreaterEqual(found["cut_by_limit"], 1)
        by_kind = {row["kind"]: row for row in found["kinds"]}
        self.assertEqual(14, len(by_kind), sorted(by_kind))
        for row in by_kind.values():
            for name in ("old_p50", "old_p99", "new_p50", "new_p99"):
                self.assertGreater(row[name], 0)

    def test_differences_made_on_purpose(self):
        world, cloud = self.both.world, self.both.cloud
        provider = f"/resource_providers/{world.full}"
        candidates = f"/allocation_candidates?resources={cloud.cpu}:1"
        for made, read, where in (
                (("PUT", f"/traits/CUSTOM_NEW_{world.mark}", None), "/traits", "body.traits"),
                (("PUT", provider, {"name": "another name"}), provider, "body.name"),
                (("POST", "/resource_providers", {"name": "more"}),
                 "/resource_providers?name=more", "body.resource_providers"),
                (("PUT", f"/resource_providers/{world.child}/traits", {
                    "traits": [], "resource_provider_generation": 1}),
                 f"/resource_providers/{world.child}/traits", "body.traits"),
                (("DELETE", f"/allocations/{world.owned}", None),
                 f"/allocations/{world.owned}", "body.allocations"),
                (("DELETE", f"/allocations/{world.typed}", None),
                 f"/usages?project_id={world.project}", "body.usages"),
                (("DELETE", f"/allocations/{cloud.consumer}", None),
                 f"{candidates},{cloud.gpu}:1", "body."),
                (("DELETE", f"/resource_providers/{cloud.flat}", None), candidates, "body."),
                (("DELETE", f"/resource_providers/{cloud.flat}", None),
                 f"/resource_providers/{cloud.flat}", "status")):
            code, before = self.shadow(f"GET {read}")
            if not before["differences"]:
                self.assertEqual(0, code)
                self.assertLess(self.both.ask(*reversed(made[:2]), made[2], new=True).status, 300)
            code, found = self.shadow(f"GET {read}")
            self.assertEqual(1, code, made)
            difference, = found["differences"]
            self.assertEqual("data", difference["verdict"], difference)
            self.assertTrue(difference["where"].startswith(where), difference)
            self.assertTrue(difference["cause"], difference)


class CredentialsTest(base.TestCase):
    """Tokens of a real keystone."""

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.keystone = keystone_server.shared()
        for name, value in self.keystone.environment("operator", "operator").items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        self.useFixture(fixtures.EnvironmentVariable(
            "HOME", self.useFixture(fixtures.TempDir()).path))

    def test_a_token_that_was_revoked_is_replaced(self):
        credentials = shadow_credentials.of_cloud(None)
        first = credentials.headers()["X-Auth-Token"]
        self.assertEqual(first, credentials.headers()["X-Auth-Token"])
        credentials.renew()
        second = credentials.headers()["X-Auth-Token"]
        self.assertNotEqual(first, second)
        self.assertTrue(self.keystone.client().tokens.validate(second))

    def test_a_wrong_password(self):
        self.useFixture(fixtures.EnvironmentVariable("OS_PASSWORD", "secret words"))
        error = self.assertRaises(ConnectionError, shadow_credentials.of_cloud(None).headers)
        self.assertIn("keystone gives no token", str(error))
        self.assertNotIn("secret", str(error))
