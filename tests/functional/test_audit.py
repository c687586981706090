# SPDX-License-Identifier: Apache-2.0
"""Audits of random clouds by the program, compared with a plain model of the rules."""

import json
import os
import pathlib
import random

import fixtures

from placement_rpc.cmd import manage
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, programs
from tests.audit_model import Model

_STATUS = ("ACTIVE", "ACTIVE", "ACTIVE", "SHUTOFF", "ERROR", "VERIFY_RESIZE", "MIGRATING",
           "SHELVED_OFFLOADED")
_OVER_OR_NOT = ("finished", "running", "confirmed", "completed", "error")


class AuditCase(base.TestCase):
    """A store, and the program on it."""

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=self.database_url()))
        self.api, self.database = self.store.api, self.store.database
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.providers, self.consumers, self.servers = {}, {}, {}
        self.migrations = self.services = None

    def database_url(self):
        return None

    def provider(self, name, *traits, parent=None, **inventories):
        uuid = base.new_uuid()
        self.api.create_provider(None, name, uuid, parent_provider_uuid=parent)
        if inventories:
            self.api.set_inventory(None, uuid, [
                base.inventory(each, total) for each, total in inventories.items()])
        if traits:
            self.api.set_provider_traits(None, uuid, list(traits), 1 if inventories else 0)
        self.providers[uuid] = {"name": name, "parent": parent, "traits": set(traits),
                                "inventories": set(inventories)}
        return uuid

    def consumer(self, allocations, uuid=None, kind=None, project="p", user="u"):
        uuid = uuid or base.new_uuid()
        self.api.claim_allocations(None, base.claim(
            allocations, uuid, project_id=project, user_id=user, consumer_type=kind))
        self.consumers[uuid] = {"project": project, "user": user, "type": kind,
                                "allocations": allocations}
        return uuid

    def server(self, host=None, status="ACTIVE", task="", project="p", uuid=None):
        uuid = uuid or base.new_uuid()
        self.servers[uuid] = {"host": host, "status": status, "task": task, "project": project}
        return uuid

    def write(self, name, value):
        path = self.directory / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)

    def lists(self):
        """Write the lists; return the arguments that name them."""
        arguments = ["--servers", self.write("servers.json", [
            {key: value for key, value in (
                ("ID", uuid), ("Host", each["host"]), ("Status", each["status"]),
                ("Task State", each["task"]), ("Project ID", each["project"]))
             if value is not None} for uuid, each in self.servers.items()])]
        if self.migrations is not None:
            arguments += ["--migrations", self.write("migrations.json", [
                {"UUID": uuid, "Server UUID": server, "Status": status}
                for uuid, (server, status) in self.migrations.items()])]
        if self.services is not None:
            arguments += ["--services", self.write(
                "services.json", [{"Host": name} for name in self.services])]
        return arguments

    def run_program(self, *arguments, margin=None):
        """Run an audit after everything was written; return what :func:`programs.run` does."""
        lists = self.lists()
        # As if they were taken later, so that all is old enough.
        for path in self.directory.iterdir():
            os.utime(path, (path.stat().st_mtime + 3600,) * 2)
        return programs.run(
            manage, "--database", str(self.store.conf.database.connection), "audit", *lists,
            "--margin", str(0 if margin is None else margin), *arguments)

    def audit(self, *arguments, code=None, **how):
        """Return the document that the program prints."""
        done = self.run_program("--format", "json", *arguments, **how)
        self.assertIn(done.code, (0, 1) if code is None else (code,), done.stderr)
        return json.loads(done.stdout)

    def model(self):
        return Model(self.providers, self.consumers, self.servers, self.migrations,
                     self.services)

    @staticmethod
    def found(document):
        return {(each["kind"], each["uuid"], each["correction"], each["is_under_way"])
                for each in document["findings"]}

    def held(self):
        """Return what the store has of every consumer."""
        return {each.uuid: each.allocations for each in self.api.all_consumers(None)}


class RandomCloudTest(AuditCase):
    """Clouds in which everything is wrong somewhere."""

    seeds = range(60 if base.FULL else 12)

    def build(self, seed):
        self.random = random.Random(seed)
        self.providers, self.consumers, self.servers = {}, {}, {}
        self.migrations = self.services = None
        names = [f"cmp{number}.{seed}" + self.random.choice(("", ".example.org"))
                 for number in range(self.random.randint(2, 4))]
        nodes = [self.node(name) for name in names]
        self.pools = [self.provider(
            f"pool {seed}", "MISC_SHARES_VIA_AGGREGATE", DISK_GB=100_000)]
        self.provider(f"other {seed}", FPGA=10)
        hosts = [*names, f"unknown{seed}", "", *(name.upper() for name in names[:1]),
                 *(name.partition(".example")[0] for name in names)]
        with_hosts, with_status = self.random.random() < 0.8, self.random.random() < 0.7
        for _ in range(self.random.randint(3, 12)):
            self.some_server(nodes, hosts, with_hosts, with_status)
        for _ in range(self.random.randint(2, 6)):
            self.consumer(self.some_allocations(nodes), **self.some_owner())
        if self.random.random() < 0.5:
            self.migrations = {}
            for uuid in [each for each in self.consumers if each not in self.servers]:
                if self.random.random() < 0.6:
                    self.migrations[uuid] = (
                        self.random.choice([*self.servers, base.new_uuid()]),
                        self.random.choice(_OVER_OR_NOT))
        if self.random.random() < 0.6:
            self.services = self.random.sample(hosts[:len(names)], len(names) - 1)

    def node(self, name):
        """Return the providers of a compute node, the root first."""
        classes = {"VCPU": 1000, "MEMORY_MB": 100_000}
        if self.random.random() < 0.7:
            classes["DISK_GB"] = 1000
        root = self.provider(name, **classes)
        return [root, *(self.provider(f"{name}_{number}", parent=root, VGPU=100)
                        for number in range(self.random.randint(0, 2)))]

    def some_server(self, nodes, hosts, with_hosts, with_status):
        uuid = self.server(
            self.random.choice(hosts) if with_hosts else None,
            self.random.choice(_STATUS) if with_status else None,
            self.random.choice(("", "", "", "rebuilding")) if with_status else None,
            self.random.choice(("p", "p", None)))
        if self.random.random() < 0.8:
            self.consumer(self.some_allocations(nodes), uuid, **self.some_owner())

    def some_owner(self):
        return {"kind": self.random.choice((None, None, "INSTANCE", "MIGRATION", "OTHER")),
                "project": self.random.choice(("p", "q")),
                "user": self.random.choice(("u", "v"))}

    def some_allocations(self, nodes):
        found = {}
        for node in self.random.sample(nodes, self.random.choice((1, 1, 1, 2))):
            found[node[0]] = {"VCPU": self.random.randint(1, 2), "MEMORY_MB": 512}
            if node[1:] and self.random.random() < 0.3:
                found[self.random.choice(node[1:])] = {"VGPU": 1}
        if self.random.random() < 0.3:
            found[self.pools[0]] = {"DISK_GB": 5}
        return found

    def empty(self):
        """Remove the cloud, so that the next one is alone."""
        for uuid in self.consumers:
            if uuid in self.held():
                self.api.release_allocations(None, uuid)
        for each in sorted(self.api.all_provider_summaries(None),
                           key=lambda each: each.parent_provider_uuid is None):
            self.api.delete_provider(None, each.uuid)

    def test_what_is_found_is_what_the_rules_say(self):
        kinds = set()
        for seed in self.seeds:
            self.build(seed)
            document = self.audit()
            expected = self.model().findings()
            self.assertEqual(expected, self.found(document), seed)
            self.assertEqual(any(not each[3] for each in expected),
                             document["summary"]["wrong"] > 0)
            kinds |= {each[::2] for each in expected}
            self.empty()
        # Each kind, with and without each of its corrections, is among them.
        wanted = {("orphaned", "release"), ("orphaned", None), ("missing", None),
                  ("doubled", "release"), ("doubled", "keep"), ("doubled", None),
                  ("misplaced", None), ("unserved", None)}
        self.assertEqual(set(), wanted - kinds)

    def test_what_is_corrected_is_what_the_rules_say(self):
        for seed in self.seeds:
            self.build(seed)
            model = self.model()
            to_delete = {each[1] for each in model.findings() if each[2] == "delete"}
            wrong = any(not each[3] and each[2] is None for each in model.findings())
            document = self.audit("--fix", "--yes", "--most", "100", code=int(wrong))
            model.correct()
            self.assertEqual(
                {uuid: each["allocations"] for uuid, each in model.consumers.items()},
                self.held(), seed)
            left = {each.uuid for each in self.api.all_provider_summaries(None)}
            self.assertEqual(to_delete, {
                uuid for uuid in self.providers
                if self.providers[uuid]["parent"] is None} - left)
            self.assertEqual({None, "corrected"} if document["summary"]["corrected"] else {None},
                             {each["outcome"] for each in document["findings"]} | {None})
            self.empty()
