# SPDX-License-Identifier: Apache-2.0
"""A cloud that is audited by the program."""

import json
import os
import pathlib

import fixtures

from placement_rpc.cmd import manage
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, programs
from tests.audit_model import Model


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
        document = json.loads(done.stdout)
        left = document["summary"]["wrong"] - document["summary"]["corrected"]
        self.assertEqual(int(left > 0), done.code)
        return document

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
