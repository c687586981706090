# SPDX-License-Identifier: Apache-2.0
"""Import and verification of a Placement database with oddities, and while both are in use."""

import json
import threading

import testscenarios

from tests import (
    base,
    moving_stores,
    placement_cloud,
    placement_contents,
    placement_oddities,
    servers,
)
from tests.functional.test_placement_oddities import EXPECTED
from tests.placement_contents import Writer, inventory


class _Case(base.TestCase):

    time_limit = 300

    def filled(self, source, target):
        self.cloud = self.useFixture(placement_cloud.PlacementCloud(source))
        placement_contents.fill(self.cloud)
        self.store = self.useFixture(moving_stores.MovedTo(target))

    def document(self, command, *arguments, code=0):
        done = self.store.run(command, "--from", self.cloud.url, "--format", "json", *arguments)
        self.assertEqual(code, done.code, done.stdout + done.stderr)
        return json.loads(done.stdout)


class OdditiesTest(testscenarios.WithScenarios, _Case):
    """A database with an oddity of each sort is brought over, and verified."""

    scenarios = [(f"{source} to {target}", {"source": source, "target": target})
                 for source, target in zip(
                     servers.DATABASES, servers.DATABASES[1:] + servers.DATABASES[:1],
                     strict=True)]

    def test_every_oddity_is_said_and_the_store_verified(self):
        self.filled(self.source, self.target)
        placement_oddities.spoil(self.cloud)
        planned = self.document("import", "--dry-run")["findings"]
        imported = self.document("import")["findings"]
        verified = self.document("verify")
        self.assertEqual([], verified["differences"])
        self.assertEqual((planned, imported), (imported, verified["findings"]))
        # There are no two such names in MariaDB.
        self.assertEqual(
            {each for name, found in EXPECTED.items() for each in found
             if self.source != "mariadb" or name != "names_that_differ_in_blanks"},
            {f"{each['kind']} {each['what']}" for each in imported} - {
                f"{kind} unused" for kind in ("aggregates", "projects", "users")})
        # A second import has nothing to do.
        again = self.document("import")
        self.assertEqual(set(), {each["kind"] for each in again["kinds"]
                                 if each["created"] or each["changed"] or each["deleted"]})
        self.assertEqual(imported, again["findings"])


class InUseTest(testscenarios.WithScenarios, _Case):
    """Both stores are written to while they are compared."""

    scenarios = [(f"{source} to {target}", {"source": source, "target": target})
                 for source, target in (("mariadb", "postgresql"), ("postgresql", "mariadb"))]

    def test_nothing_but_what_changes_differs(self):
        self.filled(self.source, self.target)
        self.document("import", "--finish")
        service = self.useFixture(moving_stores.Serving(self.store.url))
        writing, enough = [threading.Event(), threading.Event()], threading.Event()
        threads = [threading.Thread(target=_write, args=(Writer(each), name, begun, enough))
                   for each, name, begun in (
                       (self.cloud, "there", writing[0]), (service, "here", writing[1]))]
        for thread in threads:
            thread.start()
        try:
            for begun in writing:
                self.assertTrue(begun.wait(60))
            found = [self.document("verify", "--wait", "0.2", code=1) for _ in range(3)]
        finally:
            enough.set()
            for thread in threads:
                thread.join()
        for document in found:
            self.assertEqual([], [each for each in document["differences"]
                                  if each["younger"] is None])
            self.assertEqual({"0"}, {str(each["different"]) for each in document["kinds"]})
        self.document("verify", "--allow-younger")


class SinglePrecisionTest(_Case):
    """MariaDB's Placement holds fewer digits of a ratio than this service's store."""

    def test_an_export_is_verified_as_placement_can_hold_it(self):
        self.cloud = self.useFixture(placement_cloud.PlacementCloud("mariadb"))
        self.store = self.useFixture(moving_stores.MovedTo())
        writer = Writer(self.useFixture(moving_stores.Serving(self.store.url)))
        writer.provider("exact")
        writer.inventories("exact", VCPU=inventory(8, allocation_ratio=1.23456789))
        self.store.done("export", "--to", self.cloud.url)
        found = self.document("verify")
        self.assertEqual([], found["differences"])
        self.assertEqual(["allocation_ratio 1.23457 instead of 1.23456789"], [
            each["done"] for each in found["findings"] if each["what"] == "values_changed"])
        # What the digits of MariaDB can tell apart is a difference.
        writer.inventories("exact", VCPU=inventory(8, allocation_ratio=1.2346))
        differences = self.document("verify", code=1)["differences"]
        self.assertEqual({"providers", "inventories"}, {each["kind"] for each in differences})
        self.assertIn(1.2346, [each["store"].get("allocation_ratio") for each in differences])


def _write(writer, name, begun, enough):
    """Create a provider, and claim and release of it until it is enough."""
    writer.provider(name)
    writer.inventories(name, VCPU=inventory(100))
    number = 0
    while not enough.is_set():
        number += 1
        writer.claim(f"{name} {number}", {name: {"VCPU": 1}})
        if number % 2:
            writer.send("DELETE", f"/allocations/{placement_contents.uuid_of(f'{name} {number}')}")
        begun.set()
