# SPDX-License-Identifier: Apache-2.0
"""osc-placement, unchanged, drives the facade as it drives openstack-placement.

Every command at the microversions that osc-placement knows: at all of them in full, otherwise at
the first that has the command, and at some later ones. Not covered: ``allocation candidate list``,
and renaming a class, for which it has no command.
"""

import operator

import testscenarios
import testtools
from osc_placement import version as known

from tests import base
from tests.conformance import commands, web

_BORDERS = ("1.0", "1.4", "1.8", "1.14", "1.19", "1.28", "1.39")
_UNLIMITED = 2147483647
_PROJECT, _USER = "blue", "ada"


def _record(resource_class, total, **values):
    """An inventory as the commands show it, with what is the default."""
    return {"resource_class": resource_class, "allocation_ratio": 1.0, "min_unit": 1,
            "max_unit": _UNLIMITED, "reserved": 0, "step_size": 1, "total": total, **values}


def _by_class(records):
    return sorted(records, key=operator.itemgetter("resource_class"))


def _since(first):
    """Return scenarios of every server at every version from ``first`` on."""
    return testscenarios.multiply_scenarios(
        [(name, {"server": name}) for name in web.SERVERS],
        # The test runner would take a dot for the end of a class name.
        [(version.replace(".", "_"), {"version": version})
         for version in known.SUPPORTED_MICROVERSIONS if _minor(version) >= _minor(first)
         and (base.FULL or version == first or version in _BORDERS)])


def _minor(version):
    return int(version.partition(".")[2])


class CommandTest(testscenarios.WithScenarios, base.TestCase):
    """Commands at each version that has them, against each server."""

    scenarios = _since("1.0")

    def setUp(self):
        super().setUp()
        openstack = self.useFixture(
            commands.OpenStack(web.SERVERS[self.server](), self.version))
        self.run_command, self.show = openstack.run, openstack.show
        self.minor = _minor(self.version)

    @property
    def is_ours(self):
        return self.server == "placement_rpc"

    def row(self, uuid, name, generation=0, root=None, parent=None):
        """Return a provider as the commands show it."""
        return {"uuid": uuid, "name": name, "generation": generation, **(
            {"root_provider_uuid": root or uuid, "parent_provider_uuid": parent}
            if self.minor >= 14 else {})}

    def generation(self, uuid):
        return self.show("resource provider show", uuid)["generation"]

    def trait(self):
        """Return the name of a new trait."""
        name = f"CUSTOM_{base.new_uuid().upper().replace('-', '_')}"
        self.run_command("trait create", name)
        return name

    def set_traits(self, uuid, *names):
        return [row["name"] for row in self.show("resource provider trait set", uuid, *(
            part for each in names for part in ("--trait", each)))]

    def take(self, consumer, *allocations, project=_PROJECT, kind="INSTANCE"):
        """Set the allocations of a consumer; return the rows."""
        options = [part for each in allocations for part in ("--allocation", each)]
        if self.minor >= 8:
            options += ["--project-id", project, "--user-id", _USER]
        if self.minor >= 38:
            options += ["--consumer-type", kind]
        return self.show("resource provider allocation set", consumer, *options)

    def refused(self, words, command, *arguments):
        """Check that a command ends with an error of these words."""
        with testtools.ExpectedException(commands.CommandFailed, f"(?s).*{words}"):
            self.run_command(command, *arguments)

    def provider(self, **totals):
        """Return the uuid of a new provider with these inventories."""
        name = f"provider {base.new_uuid()}"
        uuid = self.show("resource provider create", name)["uuid"]
        if totals:
            self.inventories(uuid, *(f"{name}={total}" for name, total in totals.items()))
        return uuid

    def inventories(self, uuid, *resources):
        return self.show("resource provider inventory set", uuid, *(
            part for each in resources for part in ("--resource", each)))


class Providers(CommandTest):
    """``resource provider create``, ``show``, ``list``, ``set``, ``delete``"""

    def test_create_and_show(self):
        uuid, name = base.new_uuid(), f"provider {base.new_uuid()}"
        expected = self.row(uuid, name)
        self.assertEqual(expected, self.show("resource provider create", name, "--uuid", uuid))
        self.assertEqual(expected, self.show("resource provider show", uuid))
        self.assertEqual({**expected, "allocations": {}}, self.show(
            "resource provider show", uuid, "--allocations"))

    def test_create_twice(self):
        uuid, name = base.new_uuid(), f"provider {base.new_uuid()}"
        self.run_command("resource provider create", name, "--uuid", uuid)
        self.refused(f"{name}.* (HTTP 409)".replace("(", r"\(").replace(")", r"\)"),
                     "resource provider create", name)
        self.refused(r"\(HTTP 409\)", "resource provider create", f"{name} too", "--uuid", uuid)

    def test_missing(self):
        uuid = base.new_uuid()
        for command in ("show", "delete", "inventory list", "usage show"):
            self.refused(rf"{uuid} .*\(HTTP 404\)" if command in ("show", "delete")
                         else r"\(HTTP 404\)", f"resource provider {command}", uuid)
        self.refused(r"\(HTTP 404\)", "resource provider set", uuid, "--name", "x")

    def test_list(self):
        uuid, name = base.new_uuid(), f"provider {base.new_uuid()}"
        row = self.show("resource provider create", name, "--uuid", uuid)
        self.assertIn(row, self.show("resource provider list"))
        self.assertEqual([row], self.show("resource provider list", "--name", name))
        self.assertEqual([row], self.show("resource provider list", "--uuid", uuid))
        self.assertEqual([], self.show("resource provider list", "--name", f"{name} too"))

    def test_rename(self):
        uuid, name = self.provider(), f"provider {base.new_uuid()}"
        # Here every change of a provider raises its generation.
        self.assertEqual(self.row(uuid, name, 1 if self.is_ours else 0), self.show(
            "resource provider set", uuid, "--name", name))

    def test_delete(self):
        uuid = self.provider(VCPU=1)
        self.assertEqual("", self.run_command("resource provider delete", uuid))
        self.assertEqual([], self.show("resource provider list", "--uuid", uuid))


class Inventories(CommandTest):
    """``resource provider inventory`` and ``usage show``"""

    def test_set_and_list(self):
        uuid = self.provider()
        expected = [_record("MEMORY_MB", 512), _record("VCPU", 8, max_unit=4, reserved=2)]
        self.assertEqual(expected, _by_class(self.inventories(
            uuid, "VCPU=8", "VCPU:max_unit=4", "VCPU:reserved=2", "MEMORY_MB=512")))
        self.assertEqual([{**each, "used": 0} for each in expected], _by_class(
            self.show("resource provider inventory list", uuid)))
        self.assertEqual(1, self.show("resource provider show", uuid)["generation"])

    def test_amend(self):
        uuid = self.provider(VCPU=8)
        self.assertEqual([_record("MEMORY_MB", 512), _record("VCPU", 8)], _by_class(self.show(
            "resource provider inventory set", uuid, "--resource", "MEMORY_MB=512", "--amend")))
        self.assertEqual([_record("DISK_GB", 5)], self.inventories(uuid, "DISK_GB=5"))

    def test_bad(self):
        uuid = self.provider()
        self.refused(r"\(HTTP 400\)", "resource provider inventory set", uuid, "--resource",
                     "PONY=1")
        self.refused(r"\(HTTP 400\)", "resource provider inventory set", uuid, "--resource",
                     "VCPU=0")
        self.refused(r"\(HTTP 400\)", "resource provider inventory class set", uuid, "VCPU",
                     "--total", "8")

    def test_class_set_and_show(self):
        uuid = self.provider(VCPU=8)
        expected = _record("VCPU", 16, allocation_ratio=2.5, step_size=2)
        del expected["resource_class"]
        self.assertEqual(expected, self.show(
            "resource provider inventory class set", uuid, "VCPU", "--total", "16",
            "--allocation_ratio", "2.5", "--step_size", "2"))
        self.assertEqual({**expected, "used": 0}, self.show(
            "resource provider inventory show", uuid, "VCPU"))

    def test_delete(self):
        uuid = self.provider(VCPU=8, MEMORY_MB=512)
        delete = ("resource provider inventory delete", uuid, "--resource-class", "VCPU")
        self.run_command(*delete)
        self.assertEqual([{**_record("MEMORY_MB", 512), "used": 0}], self.show(
            "resource provider inventory list", uuid))
        self.refused(r"\(HTTP 404\)", *delete)

    def test_delete_all(self):
        uuid = self.provider(VCPU=8, MEMORY_MB=512)
        if self.minor < 5:
            self.refused("--resource-class", "resource provider inventory delete", uuid)
            return
        self.run_command("resource provider inventory delete", uuid)
        self.assertEqual([], self.show("resource provider inventory list", uuid))


class Aggregates(CommandTest):
    """``resource provider aggregate set`` and ``list``"""

    scenarios = _since("1.1")

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

    scenarios = _since("1.3")

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


class ByResource(CommandTest):
    """``resource provider list --resource``"""

    scenarios = _since("1.4")

    def test_list_by_resource(self):
        uuid = self.provider(VCPU=4)
        for amount, found in (("4", [uuid]), ("5", [])):
            rows = self.show("resource provider list", "--uuid", uuid,
                             "--resource", f"VCPU={amount}")
            self.assertEqual(found, [row["uuid"] for row in rows])
        self.refused(r"PONY.*\(HTTP 400\)", "resource provider list", "--resource", "PONY=1")


class Allocations(CommandTest):
    """``resource provider allocation set``, ``show``, ``delete``"""

    def test_set_and_show(self):
        uuids, consumer = [self.provider(VCPU=8), self.provider(DISK_GB=100)], base.new_uuid()
        owner = {**({"project_id": _PROJECT, "user_id": _USER} if self.minor >= 12 else {}),
                 **({"consumer_type": "INSTANCE"} if self.minor >= 38 else {})}
        expected = sorted([
            {"resource_provider": uuids[0], "generation": 2, "resources": {"VCPU": 2}, **owner},
            {"resource_provider": uuids[1], "generation": 2, "resources": {"DISK_GB": 10},
             **owner}],
            key=operator.itemgetter("resource_provider"))
        for rows in (self.take(consumer, f"rp={uuids[0]},VCPU=2", f"rp={uuids[1]},DISK_GB=10"),
                     self.show("resource provider allocation show", consumer)):
            self.assertEqual(
                expected, sorted(rows, key=operator.itemgetter("resource_provider")))
        self.assertEqual([{"resource_class": "VCPU", "usage": 2}], self.show(
            "resource provider usage show", uuids[0]))
        self.assertEqual({consumer: {"resources": {"VCPU": 2}, **(
            {"consumer_generation": 1} if self.minor >= 28 else {})}}, self.show(
                "resource provider show", uuids[0], "--allocations")["allocations"])
        self.assertEqual(2, self.show(
            "resource provider inventory show", uuids[0], "VCPU")["used"])

    def test_replace_and_delete(self):
        uuid, consumer = self.provider(VCPU=8, MEMORY_MB=512), base.new_uuid()
        self.take(consumer, f"rp={uuid},VCPU=2,MEMORY_MB=64")
        rows = self.take(consumer, f"rp={uuid},VCPU=8")
        self.assertEqual([{"VCPU": 8}], [row["resources"] for row in rows])
        self.assertEqual("", self.run_command("resource provider allocation delete", consumer))
        self.assertEqual([], self.show("resource provider allocation show", consumer))
        self.refused(r"\(HTTP 404\)", "resource provider allocation delete", consumer)

    def test_refused(self):
        uuid = self.provider(VCPU=8)
        for status, provider, resources in (
                (409, uuid, "VCPU=9"), (400, uuid, "VCPU=0"), (400, uuid, "PONY=1"),
                (409, uuid, "MEMORY_MB=1"), (400, base.new_uuid(), "VCPU=1")):
            with testtools.ExpectedException(commands.CommandFailed, rf"(?s).*\(HTTP {status}\)"):
                self.take(base.new_uuid(), f"rp={provider},{resources}")

    def test_what_is_used_stays(self):
        uuid, consumer = self.provider(VCPU=8), base.new_uuid()
        self.take(consumer, f"rp={uuid},VCPU=2")
        self.refused(r"\(HTTP 409\)", "resource provider delete", uuid)
        self.refused(r"\(HTTP 409\)", "resource provider inventory delete", uuid,
                     "--resource-class", "VCPU")

    def test_unset(self):
        one, two = self.provider(VCPU=8, MEMORY_MB=512), self.provider(VCPU=8)
        consumer, unset = base.new_uuid(), "resource provider allocation unset"
        self.take(consumer, f"rp={one},VCPU=2,MEMORY_MB=64", f"rp={two},VCPU=1")
        if self.minor < 12:
            self.refused("1.12", unset, consumer)
            return
        rows = self.show(unset, consumer, "--provider", two)
        self.assertEqual([(one, {"VCPU": 2, "MEMORY_MB": 64}, _PROJECT)], [
            (row["resource_provider"], row["resources"], row["project_id"]) for row in rows])
        rows = self.show(unset, consumer, "--resource-class", "VCPU")
        self.assertEqual([{"MEMORY_MB": 64}], [row["resources"] for row in rows])
        self.assertEqual([], self.show(unset, consumer))
        self.assertEqual([], self.show("resource provider allocation show", consumer))


class Classes(CommandTest):
    """``resource class create``, ``list``, ``show``, ``delete``"""

    scenarios = _since("1.2")

    def setUp(self):
        super().setUp()
        self.name = f"CUSTOM_{base.new_uuid().upper().replace('-', '_')}"

    def test_set(self):
        if self.minor < 7:
            self.refused("1.7", "resource class set", self.name)
            return
        for _ in range(2):
            self.assertEqual("", self.run_command("resource class set", self.name))
        self.assertEqual({"name": self.name}, self.show("resource class show", self.name))
        self.refused(r"\(HTTP 400\)", "resource class set", "PONY")

    def test_create_show_list_delete(self):
        self.assertEqual("", self.run_command("resource class create", self.name))
        self.assertEqual({"name": self.name}, self.show("resource class show", self.name))
        names = [row["name"] for row in self.show("resource class list")]
        self.assertIn("VCPU", names)
        self.assertIn(self.name, names)
        self.assertEqual("", self.run_command("resource class delete", self.name))
        self.refused(r"\(HTTP 404\)", "resource class show", self.name)
        self.refused(r"\(HTTP 404\)", "resource class delete", self.name)

    def test_refused(self):
        self.run_command("resource class create", self.name)
        self.refused(r"\(HTTP 409\)", "resource class create", self.name)
        self.refused(r"\(HTTP 400\)", "resource class create", "PONY")
        self.refused(r"\(HTTP 400\)", "resource class delete", "VCPU")

    def test_used(self):
        self.run_command("resource class create", self.name)
        uuid = self.provider(**{self.name: 4})
        self.refused(r"\(HTTP 409\)", "resource class delete", self.name)
        self.run_command("resource provider delete", uuid)
        self.run_command("resource class delete", self.name)


class Traits(CommandTest):
    """``trait`` and ``resource provider trait``"""

    scenarios = _since("1.6")

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

    scenarios = _since("1.14")

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

    scenarios = _since("1.18")

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

    scenarios = _since("1.24")
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

    scenarios = _since("1.9")

    def test_of_a_project(self):
        uuid, project = self.provider(VCPU=8, DISK_GB=100), base.new_uuid()
        self.take(base.new_uuid(), f"rp={uuid},VCPU=2,DISK_GB=10", project=project)
        self.take(base.new_uuid(), f"rp={uuid},VCPU=1", project=project)
        for options, found in (((), {"VCPU": 3, "DISK_GB": 10}),
                               (("--user-id", _USER), {"VCPU": 3, "DISK_GB": 10}),
                               (("--user-id", "bob"), {})):
            rows = {row["resource_class"]: row["usage"] for row in self.show(
                "resource usage show", project, *options)}
            # From 1.38 on the command shows what is under the type, for the class.
            self.assertEqual(found if self.minor < 38 or not found else {
                "INSTANCE": {**found, "consumer_count": 2}}, rows)
        self.assertEqual([], self.show("resource usage show", base.new_uuid()))
