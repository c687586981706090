# SPDX-License-Identifier: Apache-2.0
"""osc-placement, unchanged, drives the facade as it drives openstack-placement.

Not covered: commands that osc-placement itself refuses below 1.5, such as ``resource class set``,
and renaming a class, for which it has no command (the facade answers 204 as its specification
says).
"""

import operator

import testscenarios
import testtools

from tests import base
from tests.conformance import commands, web

_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
_UNLIMITED = 2147483647


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
         for version in _VERSIONS[_VERSIONS.index(first):]])


class CommandTest(testscenarios.WithScenarios, base.TestCase):
    """Commands at each version that has them, against each server."""

    scenarios = _since("1.0")

    def setUp(self):
        super().setUp()
        openstack = self.useFixture(
            commands.OpenStack(web.SERVERS[self.server](), self.version))
        self.run_command, self.show = openstack.run, openstack.show

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
        expected = {"uuid": uuid, "name": name, "generation": 0}
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
        self.assertEqual({"uuid": uuid, "name": name,
                          "generation": 1 if self.server == "placement_rpc" else 0}, self.show(
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
        # The specification finds no inventory of the class.
        status = 404 if self.server == "placement_rpc" else 400
        self.refused(rf"\(HTTP {status}\)", "resource provider inventory class set", uuid, "VCPU",
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


class Aggregates(CommandTest):
    """``resource provider aggregate set`` and ``list``"""

    scenarios = _since("1.1")

    def test_set_and_list(self):
        uuid, aggregates = self.provider(), sorted(base.new_uuid() for _ in range(2))
        options = [part for each in aggregates for part in ("--aggregate", each)]
        shown = self.show("resource provider aggregate set", uuid, *options)
        self.assertEqual(aggregates, sorted(row["uuid"] for row in shown))
        shown = self.show("resource provider aggregate list", uuid)
        self.assertEqual(aggregates, sorted(row["uuid"] for row in shown))
        self.assertEqual([], self.show("resource provider aggregate set", uuid))
        self.assertEqual([], self.show("resource provider aggregate list", uuid))

    def test_missing(self):
        self.refused(r"\(HTTP 404\)", "resource provider aggregate list", base.new_uuid())
        self.refused(r"\(HTTP 400\)", "resource provider aggregate set", self.provider(),
                     "--aggregate", "pony")


class ByAggregate(CommandTest):
    """``resource provider list --member-of`` and ``inventory set --aggregate``"""

    scenarios = _since("1.3")

    def test_list_by_aggregate(self):
        uuid, aggregate = self.provider(), base.new_uuid()
        self.run_command("resource provider aggregate set", uuid, "--aggregate", aggregate)
        for option in ("--member-of", "--aggregate-uuid"):
            rows = self.show("resource provider list", option, aggregate)
            self.assertEqual([uuid], [row["uuid"] for row in rows])
            self.assertEqual([], self.show("resource provider list", option, base.new_uuid()))

    def test_of_an_aggregate(self):
        aggregate, uuids = base.new_uuid(), [self.provider(), self.provider()]
        for uuid in uuids:
            self.run_command("resource provider aggregate set", uuid, "--aggregate", aggregate)
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

    def take(self, consumer, *allocations):
        return self.show("resource provider allocation set", consumer, *(
            part for each in allocations for part in ("--allocation", each)))

    def test_set_and_show(self):
        uuids, consumer = [self.provider(VCPU=8), self.provider(DISK_GB=100)], base.new_uuid()
        expected = sorted([
            {"resource_provider": uuids[0], "generation": 2, "resources": {"VCPU": 2}},
            {"resource_provider": uuids[1], "generation": 2, "resources": {"DISK_GB": 10}}],
            key=operator.itemgetter("resource_provider"))
        for rows in (self.take(consumer, f"rp={uuids[0]},VCPU=2", f"rp={uuids[1]},DISK_GB=10"),
                     self.show("resource provider allocation show", consumer)):
            self.assertEqual(
                expected, sorted(rows, key=operator.itemgetter("resource_provider")))
        self.assertEqual([{"resource_class": "VCPU", "usage": 2}], self.show(
            "resource provider usage show", uuids[0]))
        self.assertEqual({consumer: {"resources": {"VCPU": 2}}}, self.show(
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
        uuid, take = self.provider(VCPU=8), "resource provider allocation set"
        for status, provider, resources in (
                (409, uuid, "VCPU=9"), (400, uuid, "VCPU=0"), (400, uuid, "PONY=1"),
                (409, uuid, "MEMORY_MB=1"), (400, base.new_uuid(), "VCPU=1")):
            self.refused(rf"\(HTTP {status}\)", take, base.new_uuid(), "--allocation",
                         f"rp={provider},{resources}")

    def test_what_is_used_stays(self):
        uuid, consumer = self.provider(VCPU=8), base.new_uuid()
        self.take(consumer, f"rp={uuid},VCPU=2")
        self.refused(r"\(HTTP 409\)", "resource provider delete", uuid)
        self.refused(r"\(HTTP 409\)", "resource provider inventory delete", uuid,
                     "--resource-class", "VCPU")


class Classes(CommandTest):
    """``resource class create``, ``list``, ``show``, ``delete``"""

    scenarios = _since("1.2")

    def setUp(self):
        super().setUp()
        self.name = f"CUSTOM_{base.new_uuid().upper().replace('-', '_')}"

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
