# SPDX-License-Identifier: Apache-2.0
"""osc-placement, unchanged, drives the facade as it drives openstack-placement.

Every command at the microversions that osc-placement knows: at all of them in full, otherwise at
the first that has the command, and at some later ones. Not covered: renaming a class, for which it
has no command.
"""

import operator

import testtools

from tests import base
from tests.conformance import commands
from tests.conformance.osc_case import PROJECT, USER, CommandTest, since

_UNLIMITED = 2147483647


def _record(resource_class, total, **values):
    """An inventory as the commands show it, with what is the default."""
    return {"resource_class": resource_class, "allocation_ratio": 1.0, "min_unit": 1,
            "max_unit": _UNLIMITED, "reserved": 0, "step_size": 1, "total": total, **values}


def _by_class(records):
    return sorted(records, key=operator.itemgetter("resource_class"))


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


class ByResource(CommandTest):
    """``resource provider list --resource``"""

    scenarios = since("1.4")

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
        owner = {**({"project_id": PROJECT, "user_id": USER} if self.minor >= 12 else {}),
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
        self.assertEqual([(one, {"VCPU": 2, "MEMORY_MB": 64}, PROJECT)], [
            (row["resource_provider"], row["resources"], row["project_id"]) for row in rows])
        rows = self.show(unset, consumer, "--resource-class", "VCPU")
        self.assertEqual([{"MEMORY_MB": 64}], [row["resources"] for row in rows])
        self.assertEqual([], self.show(unset, consumer))
        self.assertEqual([], self.show("resource provider allocation show", consumer))


class Classes(CommandTest):
    """``resource class create``, ``list``, ``show``, ``delete``"""

    scenarios = since("1.2")

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
