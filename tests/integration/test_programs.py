# SPDX-License-Identifier: Apache-2.0
"""The programs on a real bus, and the demo on both."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import urllib.parse

import fixtures
import psutil

from tests import base
from tests.functional import test_programs

_ROOT = pathlib.Path(__file__).parents[2]


class StandaloneOnRabbitTest(base.TestCase):

    time_limit = 120

    def start(self, state_dir):
        """Start it; return the process, and what it says until it is ready."""
        process = subprocess.Popen(
            [sys.executable, "-m", "placement_rpc.cmd.main", "--state-dir", state_dir,
             "standalone", "--bus", "rabbit", "--http-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        said = ""
        while "usages" not in said:
            line = process.stdout.readline()
            self.assertTrue(line, process.stderr.read() if not line else "")
            said += line
        return process, said

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual((0, ""), (process.returncode, err))

    def test_other_processes_reach_it_as_any_client_would(self):
        state_dir = self.useFixture(fixtures.TempDir()).join("state")
        process, said = self.start(state_dir)
        here = ("--state-dir", state_dir)
        self.assert_password_is_in_the_state_file_only(process, state_dir, said)
        ping = json.loads(test_programs.run(*here, "ping").stdout)
        self.assertEqual(process.pid, ping[0]["pid"])
        demo = self.demo("--transport-url", json.loads(
            pathlib.Path(state_dir, "service.json").read_text())["transport_url"])
        self.assertEqual(0, demo.returncode, demo.stderr)
        providers = json.loads(test_programs.run(*here, "providers").stdout)
        # 120 compute nodes, their pool of storage, and two GPUs in every fifth node.
        self.assertEqual(120 + 1 + 48, len(providers))
        usages = json.loads(test_programs.run(*here, "usages", "--limit", "3").stdout)
        self.assertEqual({"provider", "uuid", "resource_class", "used", "capacity", "percent"},
                         set(usages[0]))
        services = json.loads(test_programs.run(*here, "services").stdout)
        self.assertEqual([True], [each["alive"] for each in services])
        listen = (*here, "listen", "--from", "1", "--count", "20", "--idle", "60")
        events = test_programs.run(*listen).stdout
        self.assertEqual([*range(1, 21)], [
            json.loads(line)["position"] for line in events.splitlines()])
        self.stop(process)
        # The next broker, which is empty, gets the events again.
        process, _ = self.start(state_dir)
        self.assertEqual(events, test_programs.run(*listen).stdout)
        self.stop(process)

    def assert_password_is_in_the_state_file_only(self, process, state_dir, said):
        state_file = pathlib.Path(state_dir, "service.json")
        url = urllib.parse.urlsplit(json.loads(state_file.read_text())["transport_url"])
        self.assertGreater(len(url.password), 20)
        self.assertNotIn(url.password, said)
        broker = psutil.Process(process.pid).children(recursive=True)
        self.assertIn("beam.smp", {each.name() for each in broker})
        for each in (psutil.Process(process.pid), *broker):
            self.assertNotIn(url.password, " ".join(each.cmdline()))
            self.assertNotIn(url.password, " ".join(each.environ().values()))
        directory = next(each.cwd() for each in broker if each.name() == "beam.smp")
        files = [path for place in (directory, state_dir)
                 for path in pathlib.Path(place).rglob("*") if path.is_file()]
        self.assertIn("rabbitmq.conf", {path.name for path in files})
        self.assertEqual([state_file], [
            path for path in files if url.password.encode() in path.read_bytes()])
        self.assertEqual(0o700, stat.S_IMODE(os.stat(directory).st_mode))

    def demo(self, *arguments):
        return subprocess.run(
            [sys.executable, "examples/demo.py", "--consumers", "200", "--clients", "4",
             *arguments], check=False, capture_output=True, text=True, cwd=_ROOT)

    def test_the_demo_balances_its_books_on_both_buses(self):
        for bus in ("inprocess", "rabbit"):
            demo = self.demo("--bus", bus)
            self.assertEqual((0, ""), (demo.returncode, demo.stderr))
            for words in ("There are 120 compute nodes", "keeps the gate closed",
                          "contracted to c001", "constraints_violated",
                          "The usages are equal to the allocations of the clients"):
                self.assertIn(words, demo.stdout)
