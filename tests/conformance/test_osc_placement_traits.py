# SPDX-License-Identifier: Apache-2.0
"""osc-placement, unchanged: aggregates, traits, trees and usages."""

from tests import base
from tests.conformance.osc_case import USER, CommandTest, since


class Aggregates(CommandTest):
    """``resource provider aggregate set`` and ``list``"""

    scenarios = since("1.1")

    def set(self, uuid, *aggregates):
        return self.show("resource provider aggregate set", uuid, *(
            part for each in aggregates for part in ("--aggregate", each)), *self.at(uuid))

    def at(self, uuid):
        """Return the option that is required from 1.19 on."""
        return ["--generation", str(self.generation(uuid))] if self.minor >= 19 else []

    def test_set_and_list(self):
        uuid, aggregates = self.provider(), sorted(base.new_uuid() for _ in range(2))
        shown = self.set(uuid, *aggregates)
        self.assertEqual(aggregates, sorted(row["uuid"] for row in shown))
        shown = self.show("resource provider aggregate list", uuid)
        self.assertEqual(aggregates, sorted(row["uuid"] for row in shown))
        self.assertEqual([], self.set(uuid))
        self.assertEqual([], self.show("resource provider aggregate list", uuid))
        if self.minor >= 19:
            self.assertEqual(2, self.generation(uuid))
            self.refused(r"\(HTTP 409\)", "resource provider aggregate set", uuid,
                         "--aggregate", aggregates[0], "--generation", "0")
            self.refused("generation must be", "resource provider aggregate set", uuid)

    def test_missing(self):
        self.refused(r"\(HTTP 404\)", "resource provider aggregate list", base.new_uuid())
        uuid = self.provider()
        self.refused(r"\(HTTP 400\)", "resource provider aggregate set", uuid,
                     "--aggregate", "pony", *self.at(uuid))


class ByAggregate(Aggregates):
    """``resource provider list --member-of`` and ``inventory set --aggregate``"""

    scenarios = since("1.3")

    test_set_and_list = test_missing = None

    def test_list_by_aggregate(self):
        uuid, aggregate = self.provider(), base.new_uuid()
        self.set(uuid, aggregate)
        for option in ("--member-of", "--aggregate-uuid"):
            rows = self.show("resource provider list", option, aggregate)
            self.assertEqual([uuid], [row["uuid"] for row in rows])
            self.assertEqual([], self.show("resource provider list", option, base.new_uuid()))

    def test_of_an_aggregate(self):
        aggregate, uuids = base.new_uuid(), [self.provider(), self.provider()]
        for uuid in uuids:
            self.set(uuid, aggregate)
        rows = self.show("resource provider inventory set", aggregate, "--aggregate",
                         "--resource", "VCPU=8")
        self.assertEqual(sorted(uuids), sorted(row["resource_provider"] for row in rows))


class Traits(CommandTest):
    """``trait`` and ``resource provider trait``"""

    scenarios = since("1.6")

    def names(self, command, *arguments):
        return [row["name"] for row in self.show(command, *arguments)]

    def test_create_show_list_delete(self):
        name = self.trait()
        # The command shows the letters of the name: it gives its only value as all values.
        self.run_command("trait show", name)
        self.run_command("trait create", name)
        self.assertEqual([name], self.names("trait list", "--name", f"in:{name},CUSTOM_NO"))
        self.assertEqual([name], self.names("trait list", "--name", f"startswith:{name[:-3]}"))
        self.assertLess(200, len(self.names("trait list")))
        self.assertNotIn(name, self.names("trait list", "--associated"))
        self.assertEqual("", self.run_command("trait delete", name))
        for command in ("show", "delete"):
            self.refused(r"\(HTTP 404\)", f"trait {command}", name)

    def test_refused(self):
        self.refused(r"\(HTTP 400\)", "trait create", "PONY")
        self.refused(r"\(HTTP 400\)", "trait delete", "HW_CPU_X86_AVX2")
        self.refused(r"\(HTTP 400\)", "trait list", "--name", "pony")
        name, uuid = self.trait(), self.provider()
        self.set_traits(uuid, name)
        self.refused(r"\(HTTP 409\)", "trait delete", name)

    def test_of_a_provider(self):
        uuid, name = self.provider(), self.trait()
        self.assertEqual([], self.names("resource provider trait list", uuid))
        expected = sorted([name, "HW_CPU_X86_AVX2"])
        self.assertEqual(expected, sorted(self.set_traits(uuid, *expected)))
        self.assertEqual(expected, sorted(self.names("resource provider trait list", uuid)))
        self.assertIn(name, self.names("trait list", "--associated"))
        self.assertEqual(1, self.generation(uuid))
        self.assertEqual("", self.run_command("resource provider trait delete", uuid))
        self.assertEqual([], self.names("resource provider trait list", uuid))
        self.refused(r"\(HTTP 400\)", "resource provider trait set", uuid, "--trait", "CUSTOM_NO")
        for command in ("list", "delete"):
            self.refused(r"\(HTTP 404\)", f"resource provider trait {command}", base.new_uuid())


class Trees(CommandTest):
    """``--parent-provider`` and ``--in-tree``"""

    scenarios = since("1.14")

    def test_a_child(self):
        root, name = self.provider(), f"provider {base.new_uuid()}"
        uuid = base.new_uuid()
        expected = self.row(uuid, name, root=root, parent=root)
        self.assertEqual(expected, self.show(
            "resource provider create", name, "--uuid", uuid, "--parent-provider", root))
        self.assertEqual(expected, self.show("resource provider show", uuid))
        for each in (root, uuid):
            self.assertEqual({root, uuid}, {row["uuid"] for row in self.show(
                "resource provider list", "--in-tree", each)})
        self.refused(r"\(HTTP 409\)", "resource provider delete", root)
        self.refused(r"\(HTTP 400\)", "resource provider create", f"{name} too",
                     "--parent-provider", base.new_uuid())

    def test_a_parent_is_set(self):
        root, other, uuid = (self.provider() for _ in range(3))
        name = self.show("resource provider show", uuid)["name"]
        of = ("resource provider set", uuid, "--name", name, "--parent-provider")
        self.assertEqual(root, self.show(*of, root)["root_provider_uuid"])
        if self.minor >= 37:
            self.assertEqual(other, self.show(*of, other)["root_provider_uuid"])
        else:
            self.refused(r"re-parenting a provider.*\(HTTP 400\)", *of, other)


class ByTrait(CommandTest):
    """``resource provider list --required`` and ``--forbidden``"""

    scenarios = since("1.18")

    def test_list_by_trait(self):
        both, one = self.provider(), self.provider()
        first, second = self.trait(), self.trait()
        self.set_traits(both, first, second)
        self.set_traits(one, first)

        def found(*options):
            return {row["uuid"] for row in self.show("resource provider list", *options)}

        self.assertEqual({both, one}, found("--required", first))
        self.assertEqual({both}, found("--required", first, "--required", second))
        if self.minor >= 22:
            self.assertEqual({one}, found("--required", first, "--forbidden", second))
        if self.minor >= 39:
            self.assertEqual({both, one}, found("--required", f"{first},{second}"))
        self.refused(r"\(HTTP 400\)", "resource provider list", "--required", "CUSTOM_NO")


class ByAggregates(Aggregates):
    """``--member-of`` given twice"""

    scenarios = since("1.24")
    test_set_and_list = test_missing = None

    def test_all_of_several(self):
        both, one = self.provider(), self.provider()
        first, second = base.new_uuid(), base.new_uuid()
        self.set(both, first, second)
        self.set(one, first)

        def found(*options):
            return {row["uuid"] for row in self.show("resource provider list", *options)}

        self.assertEqual({both, one}, found("--member-of", f"{first},{second}"))
        self.assertEqual({both}, found("--member-of", first, "--member-of", second))


class Usages(CommandTest):
    """``resource usage show``"""

    scenarios = since("1.9")

    def test_of_a_project(self):
        uuid, project = self.provider(VCPU=8, DISK_GB=100), base.new_uuid()
        self.take(base.new_uuid(), f"rp={uuid},VCPU=2,DISK_GB=10", project=project)
        self.take(base.new_uuid(), f"rp={uuid},VCPU=1", project=project)
        for options, found in (((), {"VCPU": 3, "DISK_GB": 10}),
                               (("--user-id", USER), {"VCPU": 3, "DISK_GB": 10}),
                               (("--user-id", "bob"), {})):
            rows = {row["resource_class"]: row["usage"] for row in self.show(
                "resource usage show", project, *options)}
            # From 1.38 on the command shows what is under the type, for the class.
            self.assertEqual(found if self.minor < 38 or not found else {
                "INSTANCE": {**found, "consumer_count": 2}}, rows)
        self.assertEqual([], self.show("resource usage show", base.new_uuid()))
