# SPDX-License-Identifier: Apache-2.0
"""The commands of ``openstack`` on a running facade."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys

import fixtures
import yaml
from keystoneauth1 import adapter, noauth, session

from placement_rpc.osc import client, membership, resource_types
from placement_rpc.testing.facade import Facade
from tests import base
from tests.functional.test_osc_program import Openstack, Terminal


class FacadeTest(base.TestCase):

    # A whole ``openstack`` takes its time to start on a busy machine.
    time_limit = 180

    def setUp(self):
        super().setUp()
        self.facade = self.useFixture(Facade())
        self.openstack = self.useFixture(Openstack(self.facade.url))

    def run_json(self, *arguments, **how):
        code, out, err = self.openstack(*arguments, "-f", "json", **how)
        self.assertEqual(0, code, err)
        return json.loads(out)

    def done(self, *arguments):
        """Run a command that makes a change and prints nothing."""
        self.assertEqual((0, "", ""), self.openstack(*arguments))

    def refused(self, *arguments):
        code, out, err = self.openstack(*arguments)
        self.assertEqual((1, ""), (code, out), err)
        self.assertEqual(1, len(err.splitlines()), err)
        return err


class SpecifiedCommandsTest(FacadeTest):
    """generic-resource-pools, and its draft: other end user impact."""

    def test_a_providers_life(self):
        self._life("resource-provider", {"generation": 0})

    def test_a_pools_life(self):
        self._life("resource-pool", {})

    def _life(self, word, generation):
        uuid, aggregate, other = base.new_uuid(), base.new_uuid(), base.new_uuid()
        made = self.run_json(word, "create", "Global NFS share", f"--aggregate-uuid={aggregate}",
                             f"--uuid={uuid}")
        expected = {"uuid": uuid, "name": "Global NFS share", "aggregates": [aggregate]}
        self.assertEqual(expected, {key: made[key] for key in expected})
        self.assertEqual(set(generation), set(made) - set(expected))
        self.assertEqual(made, self.run_json(word, "show", uuid))

        renamed = self.run_json(word, "update", uuid, "--name=New name")
        self.assertEqual("New name", renamed["name"])
        for filters in ([], ["--name", "New name"], ["--uuid", uuid],
                        ["--member-of", f"{other},{aggregate}"]):
            listed = self.run_json(word, "list", *filters)
            self.assertEqual([uuid], [each["uuid"] for each in listed], filters)
        self.assertEqual([], self.run_json(word, "list", "--name", "Global NFS share"))

        added = self.run_json(word, "add", "aggregate", uuid, other, aggregate)
        self.assertEqual({aggregate, other}, set(added["aggregates"]))
        self.done(word, "delete", "aggregate", uuid, aggregate)
        self.assertEqual([other], self.run_json(word, "show", uuid)["aggregates"])
        self._inventory_of(word, uuid)
        self.done(word, "delete", uuid)
        self.assertIn(uuid, self.refused(word, "show", uuid))

    def _inventory_of(self, word, uuid):
        of_disk = (word, "set", "inventory", uuid, "--resource-class=DISK_GB")
        values = {"resource_class": "DISK_GB", "total": 1024, "reserved": 450, "min_unit": 1,
                  "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
        made = self.run_json(*of_disk, "--total=1024", "--reserved=450", "--min-unit=1",
                             "--max-unit=1", "--step-size=1", "--allocation-ratio=1.0")
        self.assertEqual(values, made)
        changed = self.run_json(*of_disk, "--max-unit=100", "--allocation-ratio=2.5")
        values.update(max_unit=100, allocation_ratio=2.5)
        self.assertEqual(values, changed)
        self.assertEqual([values], self.run_json(word, "list", "inventory", uuid))
        self.assertIn("NO_SUCH_CLASS", self.refused(
            word, "set", "inventory", uuid, "--resource-class=NO_SUCH_CLASS", "--total=1"))
        self.done(word, "delete", "inventory", uuid, "--resource-class=DISK_GB")
        self.assertEqual([], self.run_json(word, "list", "inventory", uuid))

    def test_a_name_in_use_is_an_error(self):
        uuids = [self.run_json("resource-provider", "create", name)["uuid"]
                 for name in ("one", "two")]
        for word in ("resource-provider", "resource-pool"):
            self.assertIn("one", self.refused(word, "update", uuids[1], "--name=one"))
            self.assertIn("one", self.refused(word, "create", "one"))


class AllocationTest(FacadeTest):

    def setUp(self):
        super().setUp()
        self.small, self.large = (
            self.run_json("resource-provider", "create", name)["uuid"]
            for name in ("small", "large"))
        for uuid, total in ((self.small, 4), (self.large, 16)):
            self.run_json("resource-provider", "set", "inventory", uuid,
                          "--resource-class=VCPU", f"--total={total}")

    def test_a_consumers_life(self):
        consumer = base.new_uuid()
        held = self.run_json("allocation", "set", consumer, "--allocation",
                             f"rp={self.small},VCPU=2", "--allocation", f"rp={self.large},VCPU=4")
        self.assertEqual({self.small: {"VCPU": 2}, self.large: {"VCPU": 4}},
                         {each["resource_provider"]: each["resources"] for each in held})
        self.assertEqual(held, self.run_json("allocation", "show", consumer))
        self.assertEqual(
            [{"resource_class": "VCPU", "used": 2, "capacity": 4, "percent": 50.0}],
            self.run_json("resource-provider", "usage", self.small))
        self.assertIn("VCPU", self.refused(
            "allocation", "set", base.new_uuid(), "--allocation", f"rp={self.small},VCPU=3"))
        self.assertIn("cannot shrink", self.refused(
            "resource-provider", "set", "inventory", self.small, "--resource-class=VCPU",
            "--total=1"))
        self.done("allocation", "delete", consumer)
        self.assertEqual([], self.run_json("allocation", "show", consumer))
        self.refused("allocation", "delete", consumer)

    def test_a_separator_alone_is_no_name(self):
        code, _, err = self.openstack("resource-provider", "explain", "--required", ",")
        self.assertEqual(2, code)
        self.assertIn("',' names nothing", err)

    def test_yaml_is_what_json_is(self):
        consumer = base.new_uuid()
        wanted = ("--resource", "VCPU=1")
        for arguments in (
                ("allocation", "set", consumer, "--allocation", f"rp={self.small},VCPU=2"),
                ("allocation", "show", consumer), ("resource-consumer", "list"),
                ("resource-provider", "headroom", *wanted),
                ("resource-provider", "headroom", *wanted, "--by", "trait"),
                ("resource-provider", "headroom", *wanted, "--by", "class-limit"),
                ("resource-provider", "explain", *wanted),
                ("resource-provider", "tree", "--long"), ("event", "list")):
            code, out, err = self.openstack(*arguments, "-f", "yaml")
            self.assertEqual(0, code, err)
            self.assertEqual(self.run_json(*arguments), yaml.safe_load(out), arguments)

    def test_a_consumer_keeps_the_owner_that_it_was_given(self):
        consumer = base.new_uuid()
        for owner in (["--project", "crew", "--user", "alice"], []):
            self.run_json("allocation", "set", consumer, "--allocation",
                          f"rp={self.small},VCPU=2", *owner)
            found, = self.run_json("resource-consumer", "list", "--project", "crew")
            self.assertEqual((consumer, "alice"), (found["uuid"], found["user_id"]))

    def test_who_has_room_and_why_others_have_not(self):
        found = self.run_json("resource-provider", "list", "--resource", "VCPU=8")
        self.assertEqual([self.large], [each["uuid"] for each in found])
        self.run_json("allocation", "set", base.new_uuid(), "--allocation",
                      f"rp={self.large},VCPU=10")
        lines = self.run_json("resource-provider", "explain", "--resource", "VCPU=6",
                              "--resource", "DISK_GB=1")
        broken = {(each["name"], each["rule"], each["resource_class"]):
                  (each["requested"], each["allowed"], each["by"]) for each in lines}
        self.assertEqual((6, 4, 2), broken["small", "capacity", "VCPU"])
        self.assertEqual((1, 0, 1), broken["small", "inventory", "DISK_GB"])
        self.assertNotIn(("large", "capacity", "VCPU"), broken)
        fitting = self.run_json("resource-provider", "explain", "--resource", "VCPU=6")
        self.assertEqual({"large"}, {each["name"] for each in fitting if each["fits"]})
        self.assertEqual(1, len(self.run_json(
            "resource-provider", "explain", "--resource", "VCPU=1", "--limit", "1")))
        steps = self.run_json("resource-provider", "explain", "--resource", "VCPU=6", "--funnel")
        self.assertEqual(1, steps[-1]["providers"])
        lines = self.run_json("resource-provider", "explain", "--group", "_A", "--resource",
                              "VCPU=6")
        self.assertEqual({"small": "_A"}, {
            each["name"]: each["group"] for each in lines if not each["fits"]})
        line, = self.run_json("resource-provider", "headroom", "--resource", "VCPU=2")
        self.assertEqual((5, 5, {"VCPU": 2}), (line["count"], line["at_most"], line["trees"]))


class ResourceClassTest(FacadeTest):

    def test_a_classs_life(self):
        self.assertEqual({"name": "CUSTOM_GOLD", "custom": True},
                         self.run_json("resource-class", "create", "CUSTOM_GOLD"))
        self.run_json("resource-class", "rename", "CUSTOM_GOLD", "CUSTOM_SILVER")
        listed = {each["name"]: each["custom"] for each in self.run_json("resource-class", "list")}
        self.assertEqual((True, False), (listed["CUSTOM_SILVER"], listed["VCPU"]))
        self.assertNotIn("CUSTOM_GOLD", listed)
        self.assertIn("CUSTOM_GOLD", self.refused("resource-class", "show", "CUSTOM_GOLD"))
        self.done("resource-class", "delete", "CUSTOM_SILVER")
        self.assertIn("standard", self.refused("resource-class", "delete", "VCPU"))


class AccessTest(FacadeTest):

    def test_with_a_token(self):
        token = ("--os-auth-type", "admin_token", "--os-token")
        self.assertEqual([], self.run_json("resource-provider", "list", auth=(*token, "admin")))
        code, _, err = self.openstack("resource-provider", "list", auth=(*token, "somebody"))
        self.assertEqual(1, code)
        self.assertNotIn("Traceback", err)

    def test_osc_placement_needs_a_token(self):
        code, _, err = self.openstack("resource", "provider", "list")
        self.assertEqual(1, code)
        self.assertIn("403", err)
        self.assertEqual([], self.run_json("resource", "provider", "list", auth=(
            "--os-auth-type", "admin_token", "--os-token", "admin")))

    def test_at_the_oldest_version(self):
        old = ("--os-placement-rpc-api-version", "1.0")
        made = self.run_json(*old, "resource-provider", "create", "old")
        self.assertEqual({"uuid", "name", "generation"}, set(made))
        self.assertIn("1.1", self.refused(
            *old, "resource-provider", "add", "aggregate", made["uuid"], base.new_uuid()))


class ConcurrencyTest(FacadeTest):

    def test_no_association_is_lost(self):
        for kind in (resource_types.PROVIDER, resource_types.POOL):
            uuid = self.run_json("resource-provider", "create", kind.name)["uuid"]
            aggregates = [base.new_uuid() for _ in range(6)]
            service = client.Client(adapter.Adapter(
                session.Session(noauth.NoAuth(endpoint=self.facade.url)),
                additional_headers={"X-Roles": "admin"}, service_type="placement",
                default_microversion="1.4", raise_exc=False))
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                list(pool.map(lambda each, kind=kind, uuid=uuid, service=service:
                              membership.associate(service, kind, uuid, [each]), aggregates))
            document, _ = service.read(kind.path(uuid, "aggregates"))
            self.assertEqual(set(aggregates), set(document["aggregates"]))


class EventTest(FacadeTest):

    def setUp(self):
        super().setUp()
        self.uuid = self.run_json("resource-provider", "create", "one")["uuid"]
        self.run_json("resource-provider", "update", self.uuid, "--name", "two")
        self.run_json("resource-class", "create", "CUSTOM_GOLD")

    def watch(self, *arguments, **how):
        code, out, err = self.openstack("event", "watch", "--after", "0", *arguments, **how)
        self.assertEqual((0, ""), (code, err))
        return out.splitlines()

    def test_list_and_watch_tell_the_same(self):
        watched = [json.loads(line) for line in self.watch("--count", "3")]
        self.assertEqual(
            ["resource_provider.create", "resource_provider.update", "resource_class.create"],
            [each["event_type"] for each in watched])
        listed = self.run_json("event", "list")
        self.assertEqual([(each["position"], each["payload"]) for each in watched],
                         [(each["position"], each["payload"]) for each in listed])
        after = str(listed[0]["position"])
        self.assertEqual(listed[1:], self.run_json("event", "list", "--after", after))
        self.assertEqual(listed[:2], self.run_json("event", "list", "--provider", self.uuid))
        self.assertEqual([], self.run_json("event", "list", "--after", "now"))

    def test_on_a_terminal(self):
        line, = self.watch("--count", "1", "--event-type", "*.update", stdout=Terminal())
        self.assertIn("one -> two", line)


class ProgramTest(FacadeTest):
    """The program as an operator starts it."""

    def start(self, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("OS_")}
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "openstackclient.shell", *arguments],
            env={**environment, "OS_AUTH_TYPE": "none", "OS_ENDPOINT": self.facade.url},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_watch_follows_until_it_is_interrupted(self):
        self.run_json("resource-provider", "create", "before")
        process = self.start("event", "watch", "--after", "0")
        names = [json.loads(process.stdout.readline())["payload"]["name"]]
        self.run_json("resource-provider", "create", "meanwhile")
        names.append(json.loads(process.stdout.readline())["payload"]["name"])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=90)
        self.assertEqual((["before", "meanwhile"], 0, "", ""),
                         (names, process.returncode, out, err))

    def test_a_mistake_is_one_line(self):
        process = self.start("resource-pool", "show", base.new_uuid())
        out, err = process.communicate(timeout=90)
        self.assertEqual((1, "", 1), (process.returncode, out, len(err.splitlines())))


class ListsTest(FacadeTest):
    """Lists of the whole store, which the service answers in pages."""

    def setUp(self):
        super().setUp()
        self.nodes = [self.run_json("resource-provider", "create", f"node {number}")["uuid"]
                      for number in range(2)]
        for node in self.nodes:
            self.run_json("resource-provider", "set", "inventory", node, "--resource-class=VCPU",
                          "--total=8")
        self.consumers = sorted(base.new_uuid() for _ in range(3))
        for number, consumer in enumerate(self.consumers):
            wanted = [f"--allocation=rp={node},VCPU={number + 1}"
                      for node in self.nodes[:1 + number % 2]]
            self.run_json("allocation", "set", consumer, *wanted)

    def test_usages_of_all_providers(self):
        found = self.run_json("resource-provider", "list", "usage")
        self.assertEqual({(self.nodes[0], "node 0", "VCPU", 6, 8, 75.0),
                          (self.nodes[1], "node 1", "VCPU", 2, 8, 25.0)},
                         {tuple(each.values()) for each in found})
        self.assertEqual([], self.run_json(
            "resource-provider", "list", "usage", "--resource-class", "DISK_GB"))

    def test_consumers(self):
        def listed(*arguments):
            return [(each["uuid"], each["resource_provider"], each["resources"]["VCPU"])
                    for each in self.run_json("resource-consumer", "list", *arguments)]

        first, second = self.nodes
        one, two, three = self.consumers
        everything = [(one, first, 1), *((two, node, 2) for node in sorted(self.nodes)),
                      (three, first, 3)]
        self.assertEqual(everything, listed())
        self.assertEqual(everything[1:3], listed("--resource-provider", second))
        self.assertEqual(everything[:1], listed("--limit", "1"))
        self.assertEqual([], listed("--project", "none"))
        with fixtures.MonkeyPatch("placement_rpc.osc.summaries._PAGE", 1):
            self.assertEqual(everything, listed())
            self.assertEqual(everything[:3], listed("--limit", "2"))
        self.assertIn(one, self.openstack("resource-consumer", "list")[1])
