# SPDX-License-Identifier: Apache-2.0
"""Requests of a log asked of two services, which are scripted here."""

import json
import os
import pathlib

import fixtures

from placement_rpc.cmd import manage
from tests import base, programs
from tests.scripted_service import ScriptedService

ROOT = pathlib.Path(__file__).parents[2]
UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(4)]


def same(received):
    return 200, {"traits": [received.target, str(received.microversion)]}


def candidates(*uuids, used=0):
    return {"allocation_requests": [
        {"allocations": {uuid: {"resources": {"VCPU": 1}}}, "mappings": {"": [uuid]}}
        for uuid in uuids],
        "provider_summaries": {uuid: {"resources": {"VCPU": {"capacity": 8, "used": used}}}
                               for uuid in uuids}}


class ShadowCase(base.TestCase):

    def setUp(self):
        super().setUp()
        for name in [name for name in os.environ if name.startswith("OS_")]:
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE", "none"))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        # Without clouds.yaml of the user who runs the tests.
        self.useFixture(fixtures.EnvironmentVariable("HOME", str(self.directory)))
        self.old, self.new = (self.useFixture(ScriptedService(same)) for _ in range(2))

    def log_file(self, *lines, name="access.log"):
        path = self.directory / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    def arguments(self, *more, lines=("GET /traits",)):
        return ["placement", "shadow", "--url", self.old.url, "--against", self.new.url,
                "--requests", self.log_file(*lines), "--rate", "0", *more]

    def shadow(self, *more, lines=("GET /traits",)):
        """Run the program; return its exit code, what it found, and its error output."""
        done = programs.run(manage, *self.arguments(*more, lines=lines))
        return done.code, json.loads(done.stdout) if done.stdout.startswith("{") else (
            done.stdout), done.stderr

    def difference(self, *more, **values):
        """Run the program for one request whose answers differ; return the difference."""
        code, found, err = self.shadow(*more, **values)
        self.assertEqual(1, code, err)
        difference, = found["differences"]
        return difference

    def differing(self, old, new):
        """Let the services answer all requests with these statuses and bodies."""
        self.old.answer, self.new.answer = (
            lambda received, each=each: each for each in (old, new))
