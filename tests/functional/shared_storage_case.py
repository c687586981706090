# SPDX-License-Identifier: Apache-2.0
"""The script for shared storage against a service."""

import contextlib
import functools
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import types

import fixtures
import requests

from placement_rpc.testing import facade
from tests import base

DIRECTORY = pathlib.Path(__file__).parents[2] / "examples" / "shared-storage"
SCRIPT = DIRECTORY / "update_pool.py"
NAME = "/mnt/nfs/row1racks0610/"


@functools.cache
def load_script():
    specification = importlib.util.spec_from_file_location("update_pool", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    return script


class SharedStorageCase(base.TestCase):
    """The script against a service, with a separate share for each test."""

    def setUp(self):
        super().setUp()
        self.script = load_script()
        for variable in [each for each in os.environ if each.startswith("OS_")]:
            self.useFixture(fixtures.EnvironmentVariable(variable))
        self.url = self.useFixture(facade.Facade()).url
        self.share = self.useFixture(fixtures.TempDir()).path
        self.meanwhile = lambda: None

    def mount(self, total, taken):
        """Simulate a share of so many GiB, in blocks of 4096 bytes."""
        self.useFixture(fixtures.MockPatch("os.path.ismount", return_value=True))
        blocks = self.script.GIB // 4096
        size = types.SimpleNamespace(f_frsize=4096, f_blocks=int(total * blocks),
                                     f_bavail=int((total - taken) * blocks))

        def statvfs(path):
            self.meanwhile()
            return size
        self.useFixture(fixtures.MockPatch("os.statvfs", side_effect=statvfs))

    def run_script(self, *arguments, code=0):
        """Run the script; return the JSON of its standard output, and its standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                ended = self.script.main([self.share, "--endpoint", self.url, "--os-token",
                                          "admin", *arguments])
            except SystemExit as ending:
                ended = ending.code
        self.assertEqual(code, ended, out.getvalue() + err.getvalue())
        return json.loads(out.getvalue() or "null"), err.getvalue()

    def run_process(self, *arguments, **how):
        """In an interpreter that has nothing but the standard library."""
        return subprocess.run(
            [sys.executable, "-I", "-S", SCRIPT, self.share, *arguments], check=False, text=True,
            env={"OS_ENDPOINT": self.url, "OS_TOKEN": "admin"},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how})

    def ask(self, method, path, body=None):
        answer = requests.request(method, self.url + path, json=body, timeout=30, headers={
            "X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.4"})
        self.assertLess(answer.status_code, 300, answer.text)
        return answer.json() if answer.content else None

    def create(self, total, taken, *arguments):
        """A pool for a share of such a size; :returns: str, its uuid"""
        self.mount(total, taken)
        return self.run_script("--name", NAME, "--create", *arguments)[0]["uuid"]

    def inventories(self, provider):
        return self.ask("GET", f"/resource_providers/{provider}/inventories")

    def inventory(self, provider):
        return self.inventories(provider)["inventories"]["DISK_GB"]

    def generation(self, provider):
        return self.inventories(provider)["resource_provider_generation"]

    def providers(self):
        return self.ask("GET", "/resource_providers")["resource_providers"]

    def claim(self, provider, amount):
        self.ask("PUT", f"/allocations/{base.new_uuid()}", {"allocations": [
            {"resource_provider": {"uuid": provider}, "resources": {"DISK_GB": amount}}]})
