# SPDX-License-Identifier: Apache-2.0
"""Audits of random clouds by the program, compared with a plain model of the rules."""

import random

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from tests import base
from tests.audit_case import AuditCase

_STATUS = ("ACTIVE", "ACTIVE", "ACTIVE", "SHUTOFF", "ERROR", "VERIFY_RESIZE", "MIGRATING",
           "SHELVED_OFFLOADED")
_OVER_OR_NOT = ("finished", "running", "confirmed", "completed", "error")


class RandomCloudTest(AuditCase):
    """Clouds in which everything is wrong somewhere."""

    seeds = range(150 if base.FULL else 12)
    every_kind = True

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
        if self.every_kind:
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


class RulesTest(AuditCase):
    """Cases that random clouds have too seldom; the model judges these too."""

    def setUp(self):
        super().setUp()
        self.node = self.provider("cmp1.example.org", VCPU=100, MEMORY_MB=1000)
        self.other = self.provider("cmp2.example.org", VCPU=100, MEMORY_MB=1000)

    def judged(self):
        """Return what is found, once the model agrees."""
        found = self.found(self.audit("--margin", "0"))
        self.assertEqual(self.model().findings(), found)
        return found

    def test_the_migration_of_a_server_that_holds_nothing_now(self):
        self.server("cmp1.example.org", "RESIZE", project="p")
        left = self.consumer({self.node: {"VCPU": 1}}, project="p")
        orphan = self.consumer({self.node: {"VCPU": 1}}, project="q")
        self.assertLessEqual({
            ("doubled", left, None, True), ("orphaned", orphan, "release", False)}, self.judged())
        # Of a server whose project is not known it may be any.
        self.server("cmp1.example.org", "RESIZE", project=None)
        self.assertIn(("doubled", orphan, None, True), self.judged())

    def test_a_pool_is_no_compute_node(self):
        pool = self.provider("pool", "MISC_SHARES_VIA_AGGREGATE", VCPU=100, DISK_GB=100)
        self.services = ["cmp1.example.org", "cmp2.example.org"]
        uuid = self.server("cmp1.example.org")
        self.consumer({self.node: {"VCPU": 1}, pool: {"VCPU": 1, "DISK_GB": 5}}, uuid)
        self.assertEqual(set(), self.judged())

    def test_a_short_name_of_several(self):
        self.provider("cmp1.example.com", VCPU=100)
        short, whole = self.server("cmp1"), self.server("CMP2")
        for uuid, node in ((short, self.node), (whole, self.other)):
            self.consumer({node: {"VCPU": 1}}, uuid)
        self.assertEqual({("misplaced", short, None, False)}, self.judged())

    def test_what_is_left_by_a_move_that_nova_calls_over(self):
        uuid = self.server("cmp2.example.org")
        self.consumer({self.other: {"VCPU": 1}}, uuid)
        migration = self.consumer({self.node: {"VCPU": 1}})
        self.assertEqual({("orphaned", migration, "release", False)}, self.judged())
        for status, correction, is_under_way in (
                ("running", None, True), ("finished", None, True), ("confirmed", "release", False),
                ("failed", "release", False)):
            self.migrations = {migration: (uuid, status)}
            self.assertEqual({("doubled", migration, correction, is_under_way)}, self.judged())
            document = self.audit()
            self.assertEqual(uuid, document["findings"][0]["server"])
        self.audit("--fix", "--yes", code=0)
        self.assertEqual([uuid], list(self.held()))

    def test_a_migration_by_its_type(self):
        uuid = self.server("cmp2.example.org")
        self.consumer({self.other: {"VCPU": 7}}, uuid)
        migration = self.consumer({self.node: {"VCPU": 7}}, kind="MIGRATION")
        self.assertEqual({("doubled", migration, "release", False)}, self.judged())
        self.assertEqual(uuid, self.audit()["findings"][0]["server"])

    def test_an_evacuated_server_holds_on_both(self):
        uuid = self.server("cmp2.example.org")
        self.consumer({self.node: {"VCPU": 1}, self.other: {"VCPU": 1}}, uuid)
        self.servers[uuid]["task"] = "rebuilding"
        self.assertEqual({("doubled", uuid, None, True)}, self.judged())
        self.servers[uuid]["task"] = ""
        self.assertEqual({("doubled", uuid, "keep", False)}, self.judged())
        self.audit("--fix", "--yes", code=0)
        self.assertEqual({uuid: {self.other: {"VCPU": 1}}}, self.held())

    def test_a_host_that_has_no_room(self):
        full = self.provider("cmp3.example.org", VCPU=1)
        uuid = self.server("cmp3.example.org")
        self.consumer({self.node: {"VCPU": 2}}, uuid)
        document = self.audit("--fix", "--yes", code=1)
        self.assertIn("not possible", document["findings"][0]["outcome"])
        self.assertIn(full, document["findings"][0]["outcome"])
        self.assertEqual({uuid: {self.node: {"VCPU": 2}}}, self.held())

    def test_the_hosts_of_the_stored_compute_nodes(self):
        """Bare metal: one service has many nodes, whose names are others."""
        rows = [{"uuid": self.node, "host": "ironic", "hypervisor_hostname": "a"},
                {"uuid": None, "host": "Ironic", "hypervisor_hostname": "cmp2.example.org"}]
        at = bulk.now()
        self.database.write(lambda tx: tx.execute(sa.insert(models.compute_nodes), [
            {**row, "created_at": at, "updated_at": at} for row in rows]))
        good, bad = self.server("ironic"), self.server("other")
        self.consumer({self.other: {"VCPU": 1}}, good)
        self.consumer({self.other: {"VCPU": 1}}, bad)
        self.services = ["ironic"]
        self.assertEqual({("misplaced", bad, None, False)}, self.found(self.audit()))
        self.services = ["other"]
        self.assertEqual({self.node, self.other}, {
            each[1] for each in self.found(self.audit()) if each[0] == "unserved"})
