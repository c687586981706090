# SPDX-License-Identifier: Apache-2.0
"""How the script for shared storage is run: by whom, and when."""

import configparser
import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from unittest import mock

import fixtures
from keystoneauth1 import fixture as keystone_fixture

from tests.functional.shared_storage_case import DIRECTORY, NAME, SCRIPT, SharedStorageCase


class Keystone(fixtures.Fixture):
    """A keystone that accepts the password "secret" and has one internal endpoint of Placement."""

    def __init__(self, placement):
        super().__init__()
        self.token, self.asked = keystone_fixture.V3Token(), []
        self.token.set_project_scope()
        self.token.add_service("placement").add_endpoint("internal", placement)

    def _setUp(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(
            KeystoneHandler, self))
        self.url = f"http://127.0.0.1:{server.server_port}/v3"
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()


class KeystoneHandler(http.server.BaseHTTPRequestHandler):

    def __init__(self, keystone, *arguments):
        self.keystone = keystone
        super().__init__(*arguments)

    def log_message(self, *arguments):
        """Not on the test's output."""

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("X-Subject-Token", "admin")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_GET(self):
        self.answer(200, {"version": keystone_fixture.V3Discovery(self.keystone.url)})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.keystone.asked.append(body["auth"]["identity"]["password"]["user"])
        good = self.keystone.asked[-1]["password"] == "secret"
        self.answer(201 if good else 401, self.keystone.token)


class SignInTest(SharedStorageCase):

    def sign_in(self, code=0, **variables):
        for name, value in variables.items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        self.mount(500, 20)
        return self.run_script("--name", NAME, "--create", "--endpoint", "", "--os-token", "",
                               code=code)

    def test_by_the_example_of_an_environment(self):
        keystone = self.useFixture(Keystone(self.url))
        found = {**environment_example(), "OS_AUTH_URL": keystone.url}
        said, _ = self.sign_in(**found)
        self.assertEqual([said["uuid"]], [each["uuid"] for each in self.providers()])
        self.assertEqual(["shared-storage"], [each["name"] for each in keystone.asked])
        for name, value, expected in (
                ("OS_PASSWORD", "wrong", "401"), ("OS_PASSWORD", None, "required"),
                ("OS_AUTH_TYPE", "riddle", "riddle"), ("OS_INTERFACE", "public", "not found")):
            _, words = self.sign_in(1, **{**found, name: value})
            self.assertRegex(words, f"signing in failed: .*{expected}")
            self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE"))

    def test_without_the_library_it_says_what_to_do(self):
        with mock.patch.dict(sys.modules, {"keystoneauth1": None}):
            _, words = self.sign_in(1, OS_AUTH_URL="http://127.0.0.1:1/v3")
        self.assertIn("give --endpoint and --os-token", words)


def environment_example():
    """What systemd and the shell read of it."""
    lines = (DIRECTORY / "shared-storage.env").read_text().splitlines()
    found = [re.fullmatch(r"(#?)([A-Z_]+)='([^']*)'", line) for line in lines
             if line and not line.startswith("# ")]
    return {each[2]: each[3] for each in found if not each[1]}


class ScheduleTest(SharedStorageCase):

    def setUp(self):
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.programs = self.place / "bin"
        self.programs.mkdir()
        (self.programs / "update_pool.py").symlink_to(SCRIPT)
        (self.programs / "python3").symlink_to(sys.executable)
        self.environment = self.place / "shared-storage.env"
        self.environment.write_text(
            f"POOL_PATH='{self.share}'\nPOOL_OPTIONS='--name {NAME} --create --allow-any-path'\n"
            f"OS_ENDPOINT='{self.url}'\nOS_TOKEN='admin'\n")

    def test_the_line_of_cron(self):
        lines = [line for line in (DIRECTORY / "shared-storage.cron").read_text().splitlines()
                 if not re.match(r"#|[A-Z]+=[^ ]+$", line)]
        *times, user, command = lines[0].split(maxsplit=6)
        self.assertEqual((1, "root", 5), (len(lines), user, len(times)))
        for each in times:
            self.assertRegex(each, r"^(\*|[0-9]+)(/[0-9]+)?$")
        self.assertNotIn("%", command, "cron makes a new line of it")
        logger = self.programs / "logger"
        logger.write_text("#!/bin/sh\ncat\n")
        logger.chmod(0o755)
        for path, ours in (("/etc/placement-rpc/shared-storage.env", self.environment),
                           ("/run/lock/shared-storage.lock", self.place / "lock")):
            self.assertIn(path, command)
            command = command.replace(path, str(ours))
        done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True,
                              text=True, env={"PATH": f"{self.programs}:/usr/bin:/bin"})
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual([json.loads(done.stdout)["uuid"]],
                         [each["uuid"] for each in self.providers()])

    def test_the_units_of_systemd(self):
        copies = []
        for kind in ("service", "timer"):
            text = (DIRECTORY / f"shared-storage.{kind}").read_text()
            copies.append(self.place / f"shared-storage.{kind}")
            copies[-1].write_text(text.replace("/usr/local/bin", str(self.programs)))
        units = configparser.ConfigParser(interpolation=None)
        units.optionxform = str
        units.read(copies)
        self.assertEqual("oneshot", units["Service"]["Type"])
        self.assertEqual(f"{self.programs}/update_pool.py $POOL_OPTIONS ${{POOL_PATH}}",
                         units["Service"]["ExecStart"])
        self.assertEqual("timers.target", units["Install"]["WantedBy"])
        if not shutil.which("systemd-analyze"):
            return
        done = subprocess.run(["systemd-analyze", "verify", *copies], check=False, text=True,
                              capture_output=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_the_options_of_the_example_are_understood(self):
        found = environment_example()
        options = self.script.make_parser().parse_args(
            [*found["POOL_OPTIONS"].split(), found["POOL_PATH"]])
        self.assertEqual((NAME, NAME.rstrip("/")), (options.name, options.path))
