# SPDX-License-Identifier: Apache-2.0
"""The examples for nova's developers, as processes on RabbitMQ."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import fixtures
import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.api import CandidateGroup, CandidatesRequest, Claim, PlacementAPI
from placement_rpc.service.conductor import Conductor
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
_GPU, _NIC = "pci_0000_3b_00_0", "pci_0000_5e_00_0"
_LONG_AGO = "2020-01-01"


def _module(name):
    spec = importlib.util.spec_from_file_location(name, _EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Released:
    """A client by which a consumer's allocations are found released when they are asked for."""

    def __init__(self, api):
        self._api = api

    def __getattr__(self, name):
        return getattr(self._api, name)

    def get_allocations(self, context, consumer):
        self._api.release_allocations(context, consumer)
        return self._api.get_allocations(context, consumer)


class TrackerRaceTest(base.TestCase):

    def test_a_consumer_is_released_while_a_device_is_corrected(self):
        resource_tracker = _module("resource_tracker")
        host = resource_tracker.Host({**resource_tracker.make_up("cmp1"), "servers": {}})
        api = self.useFixture(placement_fixtures.RunningService("local")).api
        tracker = resource_tracker.ResourceTracker(_Released(api), lambda: host)
        tracker.cycle()
        api.claim_allocations(None, Claim(
            consumer_uuid=base.new_uuid(), project_id="p", user_id="u",
            allocations={host.provider_of(_GPU): {"VGPU": 1}}))
        done = [each for _ in range(3) for each in tracker.cycle()]
        self.assertEqual(["device allocations"], [each["what"] for each in done], done)
        self.assertIn("holds {'VGPU': 1} in place of none", done[0]["detail"])


class ExampleCase(base.TestCase):
    """A service on RabbitMQ, and the programs that call it."""

    # Of a machine that runs much else, on which a program takes seconds to start.
    time_limit = 300

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.service = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, topic="placement"))
        self.api = self.service.api
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_example(self, name, *arguments, code=0):
        """Run a program; return its standard output and its errors."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(_EXAMPLES / name), *arguments], check=False,
            capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.directory,
            env={"PYTHONPATH": str(_EXAMPLES.parent), "PATH": os.environ["PATH"]})
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def made_up(self, name="cmp1", **changes):
        """Write the description of a host; return it."""
        out, _ = self.run_example("resource_tracker.py", "--make-up", name)
        host = {**json.loads(out), **changes}
        self.write(host)
        return host

    def write(self, host):
        (self.directory / f"{host['name']}.json").write_text(json.dumps(host))

    def track(self, *arguments, name="cmp1", code=0):
        return self.run_example("resource_tracker.py", f"{name}.json", "--transport-url",
                                self.broker.url, *arguments, code=code)

    def cycles(self, number, name="cmp1"):
        """Run cycles of a tracker; return what each did: list of lists of dicts."""
        out, _ = self.track("--cycles", str(number), "--interval", "0", name=name)
        return [json.loads(line) for line in out.splitlines()]

    def tree(self, name="cmp1"):
        """Return the providers of a host: dict of name, without the host's, to uuid."""
        root, = self.api.list_providers(None, name=name).objects
        return {each.name.removeprefix(f"{name}_"): each.uuid
                for each in self.api.list_providers(None, in_tree=root.uuid).objects}

    def totals(self, provider):
        return {each.resource_class: each.total
                for each in self.api.get_inventory(None, provider).objects}

    def held(self, consumer):
        return self.api.get_allocations(None, consumer).by_provider()

    def age(self):
        """Make all that happened happen long ago: a tracker leaves alone what is young."""
        with self.service.database.writer() as tx:
            for table, column in (("consumers", "updated_at"), ("events", "occurred_at")):
                tx.execute(sa.text(f"UPDATE {table} SET {column} = :then"), {"then": _LONG_AGO})

    def claim(self, allocations):
        consumer = base.new_uuid()
        self.api.claim_allocations(None, Claim(
            consumer_uuid=consumer, project_id="project", user_id="user",
            allocations=allocations))
        return consumer


class TrackerTest(ExampleCase):

    def test_a_new_host(self):
        host = self.made_up()
        server, = host["servers"]
        done = self.cycles(4)
        self.assertEqual([[], []], done[2:], done)
        tree = self.tree()
        self.assertEqual({"cmp1", _GPU, _NIC}, set(tree))
        self.assertEqual({"VCPU": 64, "MEMORY_MB": 262144, "DISK_GB": 1920},
                         self.totals(tree["cmp1"]))
        self.assertEqual({"VGPU": 8}, self.totals(tree[_GPU]))
        for name, traits in (("cmp1", host["traits"]), (_GPU, ["CUSTOM_A100"]),
                             (_NIC, ["CUSTOM_PHYSNET_1", "HW_NIC_SRIOV"])):
            self.assertEqual(sorted(traits), sorted(
                self.api.get_provider_traits(None, tree[name]).traits))
        self.assertEqual({tree["cmp1"]: {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40},
                          tree[_GPU]: {"VGPU": 1}}, self.held(server))
        # Another process of the tracker finds everything as it is.
        generations = self.generations()
        self.assertEqual([[], []], self.cycles(2))
        self.assertEqual(generations, self.generations())

    def generations(self):
        return {each.uuid: each.generation for each in self.api.list_providers(None).objects}

    def test_what_is_lost_is_written_again(self):
        host = self.made_up()
        server, = host["servers"]
        self.cycles(2)
        tree, held = self.tree(), self.held(server)
        self.api.release_allocations(None, server)
        self.api.delete_inventory(None, tree["cmp1"], "VCPU")
        self.api.delete_inventory(None, tree[_NIC], "SRIOV_NET_VF")
        self.api.create_trait(None, "CUSTOM_RACK_7")
        self.api.set_provider_traits(None, tree["cmp1"], ["CUSTOM_RACK_7"])
        self.api.delete_provider(None, tree[_GPU])
        # A server that nobody knows holds something.
        orphan = self.claim({tree["cmp1"]: {"MEMORY_MB": 512}})
        self.age()
        young = self.claim({tree["cmp1"]: {"MEMORY_MB": 1024}})
        done = self.cycles(4)
        self.assertEqual([], done[-1], done)
        self.assertEqual(tree, self.tree())
        self.assertEqual(64, self.totals(tree["cmp1"])["VCPU"])
        self.assertEqual({"SRIOV_NET_VF": 16}, self.totals(tree[_NIC]))
        # What an operator has set stays.
        self.assertEqual(sorted([*host["traits"], "CUSTOM_RACK_7"]), sorted(
            self.api.get_provider_traits(None, tree["cmp1"]).traits))
        self.assertEqual(held, self.held(server))
        self.assertEqual({}, self.held(orphan))
        self.assertEqual({tree["cmp1"]: {"MEMORY_MB": 1024}}, self.held(young))

    def test_allocations_of_devices(self):
        host = self.made_up()
        self.cycles(2)
        gpu, root = self.tree()[_GPU], self.tree()["cmp1"]
        orphan = self.claim({gpu: {"VGPU": 2}})
        both = self.claim({gpu: {"VGPU": 1}, root: {"VCPU": 1}})
        # A difference that one cycle sees may be on its way, and is left.
        self.cycles(1)
        self.assertEqual({gpu: {"VGPU": 2}}, self.held(orphan))
        host["servers"][both] = {"project_id": "project", "user_id": "user",
                                 "resources": {"VCPU": 1}, "devices": {_GPU: {"VGPU": 3}}}
        self.write(host)
        self.cycles(2)
        self.assertEqual({}, self.held(orphan))
        self.assertEqual({gpu: {"VGPU": 3}, root: {"VCPU": 1}}, self.held(both))

    def test_a_device_that_is_gone(self):
        host = self.made_up()
        server, = host["servers"]
        self.cycles(2)
        host["devices"] = host["devices"][1:]
        self.write(host)
        done, = self.cycles(1)
        self.assertIn("still have allocations", json.dumps(done))
        host["servers"] = {}
        self.write(host)
        self.api.release_allocations(None, server)
        self.cycles(1)
        self.assertEqual({"cmp1", _NIC}, set(self.tree()))

    def test_a_host_that_shrinks_is_renamed_and_loses_a_device(self):
        host = self.made_up(servers={}, cpu_ratio=1.0)
        self.cycles(2)
        tree = self.tree()
        consumer = self.claim({tree["cmp1"]: {"VCPU": 40}, tree[_GPU]: {"VGPU": 1}})
        host.update(vcpus=32, servers={consumer: {
            "project_id": "project", "user_id": "user", "resources": {"VCPU": 40},
            "devices": {_GPU: {"VGPU": 1}}}})
        # Somebody has moved a device elsewhere.
        self.api.update_provider(None, tree[_GPU], "elsewhere", parent_provider_uuid=None)
        # An inventory in use cannot be removed; the rest is done nevertheless.
        host["devices"][0]["amounts"] = {"PGPU": 1}
        host["devices"][1]["amounts"] = {"SRIOV_NET_VF": 4}
        self.write(host)
        done = self.cycles(3)
        self.assertIn({"what": "node", "detail": "running_vms, VCPU"}, done[0])
        self.assertEqual(tree, self.tree())
        self.assertEqual((32, {"VGPU": 8}, {"SRIOV_NET_VF": 4}), (
            self.totals(tree["cmp1"])["VCPU"], self.totals(tree[_GPU]), self.totals(tree[_NIC])))
        self.assertIn("cannot be corrected", json.dumps(done[2]))
        self.assertRaises(exception.CapacityExceeded, self.claim, {tree["cmp1"]: {"VCPU": 1}})
        # Its name is another now, and its uuid the same.
        host["devices"][0]["amounts"] = {"VGPU": 8}
        self.write({**host, "name": "cmp2", "uuid": tree["cmp1"]})
        self.assertEqual([], self.cycles(2, "cmp2")[-1])
        self.assertEqual(tree[_GPU], self.tree("cmp2")[_GPU])

    def test_shared_storage(self):
        aggregate = base.new_uuid()
        pool = self.api.create_provider(None, "/mnt/nfs").uuid
        self.api.set_inventory(None, pool, [base.inventory("DISK_GB", 100)])
        self.api.set_aggregates(None, pool, [aggregate])
        self.api.set_provider_traits(None, pool, ["MISC_SHARES_VIA_AGGREGATE"])
        host = self.made_up(shares_disk=True, aggregates=[aggregate])
        server, = host["servers"]
        self.cycles(2)
        root = self.tree()["cmp1"]
        self.assertNotIn("DISK_GB", self.totals(root))
        self.assertEqual({"DISK_GB": 40}, self.held(server)[pool])
        self.assertEqual({"VCPU": 4, "MEMORY_MB": 8192}, self.held(server)[root])
        # A claim of the tracker itself, and its release by a cast.
        new = base.new_uuid()
        host["servers"][new] = {"project_id": "project", "user_id": "user",
                                "resources": {"VCPU": 1, "DISK_GB": 60}}
        self.write(host)
        self.track("--claim", new)
        self.assertEqual({root: {"VCPU": 1}, pool: {"DISK_GB": 60}}, self.held(new))
        _, error = self.track("--claim", new, code=1)
        self.assertIn("generation", error)
        more = base.new_uuid()
        host["servers"][more] = host["servers"][new]
        self.write(host)
        _, error = self.track("--claim", more, code=1)
        self.assertIn("DISK_GB", error)
        out, _ = self.track("--release", new)
        base.wait_until(lambda: not self.held(new))
        self.assertEqual(new, self.api.get_request_result(None, out.strip()).result(
            ).consumer_uuid)

    def test_errors(self):
        out, _ = self.run_example("resource_tracker.py", "--help")
        self.assertIn("sync_compute_node", out)
        self.run_example("resource_tracker.py", code=2)
        for text, words in (("{}", "describes no host"), ("[]", "describes no host"), ("x", "")):
            (self.directory / "cmp1.json").write_text(text)
            _, error = self.track("--cycles", "1", code=1)
            self.assertIn(words, error)
            self.assertEqual(1, len(error.splitlines()), error)


class SchedulerTest(ExampleCase):

    def schedule(self, command, *arguments, code=0):
        out, error = self.run_example(
            "scheduler.py", "--transport-url", self.broker.url, command, *arguments, code=code)
        return [json.loads(line) for line in out.splitlines()], error

    def test_servers_with_gpus(self):
        for name in ("cmp1", "cmp2"):
            self.made_up(name, servers={})
            self.cycles(2, name)
        placed, error = self.schedule(
            "place", "--device", "VGPU=1:CUSTOM_A100", "--required", "HW_CPU_X86_AVX2",
            "--count", "18", "--at-once", "6", code=1)
        found = [each["allocations"] for each in placed if "error" not in each]
        self.assertEqual(16, len(found), placed)
        self.assertIn("2 of 18 servers found no room", error)
        self.assertIn("0 hosts are left by capacity VGPU", error)
        for each in placed:
            self.assertEqual(each.get("allocations", {}), self.held(each["server"]))
        for name in ("cmp1", "cmp2"):
            used = self.api.get_usages(None, self.tree(name)[_GPU]).objects
            self.assertEqual([8], [each.used for each in used])
        # The tracker learns what is there, and nothing is taken away.
        self.schedule("delete", placed[0]["server"], placed[1]["server"])
        base.wait_until(lambda: not self.held(placed[1]["server"]))
        self.assertEqual({}, self.held(placed[0]["server"]))

    def test_weights(self):
        for name in ("cmp1", "cmp2"):
            self.made_up(name, servers={}, devices=[])
            self.cycles(2, name)
        for how, hosts in (("pack", 1), ("spread", 2)):
            found, _ = self.schedule("weigh", "--by", how, "--count", "4", "--at-once", "1")
            self.assertEqual(hosts, len({
                host for each in found for host in each["allocations"]}), found)
            for each in found:
                self.assertEqual(each["allocations"], self.held(each["server"]))
                self.api.release_allocations(None, each["server"])
        # Schedulers that weigh at the same time want the same host, until it is full.
        found, _ = self.schedule("weigh", "--resources", "VCPU=64", "--count", "8",
                                 "--at-once", "8")
        self.assertEqual({4}, {sum(uuid in each["allocations"] for each in found)
                               for uuid in (self.tree("cmp1")["cmp1"],
                                            self.tree("cmp2")["cmp2"])})

    def test_the_service_is_away(self):
        self.made_up(servers={})
        self.cycles(1)
        placed, _ = self.schedule("place")
        self.service.conductor.stop()
        self.schedule("delete", placed[0]["server"])
        another = Conductor(self.service.conf)
        self.addCleanup(another.stop)
        another.start()
        base.wait_until(lambda: not self.held(placed[0]["server"]))

    def faulty(self, faults):
        """Return a client whose attempts have faults, and the fixture that makes them."""
        client = PlacementAPI(conf=self.service.conf, topic="placement", deadline=0.5)
        self.addCleanup(client.close)
        return client, self.useFixture(placement_fixtures.FaultyCaller(client, faults))

    def test_a_call_without_an_answer_is_repeated_under_its_id(self):
        scheduler = _module("scheduler")
        self.made_up(servers={})
        self.cycles(1)
        client, faulty = self.faulty(["unanswered"] * 20)
        server = {"uuid": base.new_uuid(), "project_id": "project", "user_id": "user"}
        wanted = CandidatesRequest(groups=[CandidateGroup(resources={"VCPU": 2})])
        found = scheduler.Scheduler(client).place(server, wanted)
        self.assertEqual({self.tree()["cmp1"]: {"VCPU": 2}}, found)
        self.assertEqual(found, self.held(server["uuid"]))
        attempts = [each for each in faulty.attempts if each is not None]
        self.assertEqual(1, len(set(attempts)), attempts)
        self.assertGreater(len(faulty.attempts), 20)
        client, _ = self.faulty(["lost"] * 1000)
        server["uuid"] = base.new_uuid()
        self.assertRaises((exception.DeadlineExceeded, exception.ServiceUnavailable),
                          scheduler.Scheduler(client, patience=1).place, server, wanted)
        self.assertEqual({}, self.held(server["uuid"]))

    def test_errors(self):
        out, _ = self.run_example("scheduler.py", "--help")
        self.assertIn("find", out)
        for arguments in (("--resources", "VCPU"), ("--device", "VGPU=x"),
                          ("--resources", "VCPU=2,")):
            _, error = self.schedule("place", *arguments, code=2)
            self.assertIn("is not a class and an amount", error)
        _, error = self.schedule("place", "--required", "HW_NOPE", code=1)
        self.assertIn("HW_NOPE", error)
        self.assertEqual(1, len(error.splitlines()))
