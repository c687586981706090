# SPDX-License-Identifier: Apache-2.0
"""The script that keeps the inventory of a shared storage pool up to date."""

import configparser
import contextlib
import functools
import http.server
import importlib.util
import io
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import threading
import types
from unittest import mock

import fixtures
import requests
from keystoneauth1 import fixture as keystone_fixture

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


class SharedStorageTest(base.TestCase):
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


class PoolTest(SharedStorageTest):

    def test_the_scenario_of_the_specification(self):
        aggregate = base.new_uuid()
        provider = self.create(
            100000, 1000, "--aggregate-uuid", aggregate, "--min-unit", "50", "--max-unit",
            "10000", "--step-size", "10", "--allocation-ratio", "1.0")
        self.assertEqual({"total": 100000, "reserved": 1000, "min_unit": 50, "max_unit": 10000,
                          "step_size": 10, "allocation_ratio": 1.0}, self.inventory(provider))
        self.assertEqual([aggregate], self.ask(
            "GET", f"/resource_providers/{provider}/aggregates")["aggregates"])
        self.assertEqual([NAME], [each["name"] for each in self.providers()])

    def test_what_has_not_changed_is_not_written(self):
        aggregate = base.new_uuid()
        settings = ("--aggregate-uuid", aggregate, "--allocation-ratio", "1.1")
        provider = self.create(500, 20, *settings)
        before = self.generation(provider)
        writes = self.useFixture(fixtures.MockPatchObject(self.script.Placement, "write")).mock
        for identity in (["--name", NAME], ["--uuid", provider], ["--name", NAME, "--create"]):
            said, _ = self.run_script(*identity, *settings)
            self.assertEqual(({}, [], False),
                             (said["changes"], said["aggregates_added"], said["created"]))
        self.assertEqual((before, 0), (self.generation(provider), writes.call_count))

    def test_what_is_allocated_is_not_reserved_too(self):
        provider = self.create(500, 20)
        self.claim(provider, 100)
        for taken, reserved in ((120, 20), (119.5, 20), (119, 19), (60, 0), (500, 400)):
            self.mount(500, taken)
            said, _ = self.run_script("--uuid", provider)
            self.assertEqual((reserved, 100), (self.inventory(provider)["reserved"],
                                               said["used"]), taken)

    def test_it_never_promises_what_is_not_there(self):
        provider = self.create(500.9, 20.1)
        self.assertEqual((500, 21), tuple(
            self.inventory(provider)[name] for name in ("total", "reserved")))
        self.mount(500.9, 0.001)
        self.run_script("--uuid", provider, "--minimum-reserved", "50")
        self.assertEqual(50, self.inventory(provider)["reserved"])

    def test_a_full_share(self):
        provider = self.create(500, 500)
        self.assertEqual(499, self.inventory(provider)["reserved"])
        self.mount(500, 100)
        self.run_script("--uuid", provider)
        self.claim(provider, 300)
        self.mount(500.5, 500.5)
        self.run_script("--uuid", provider)
        self.assertEqual(200, self.inventory(provider)["reserved"])

    def test_what_others_set_stays(self):
        provider = self.create(500, 20, "--max-unit", "100")
        self.ask("POST", f"/resource_providers/{provider}/inventories",
                 {"resource_class": "IPV4_ADDRESS", "total": 254})
        other, ours = base.new_uuid(), base.new_uuid()
        self.ask("PUT", f"/resource_providers/{provider}/aggregates", [other])
        self.mount(900, 20)
        said, _ = self.run_script("--uuid", provider, "--aggregate-uuid", ours)
        self.assertEqual(({"total": [500, 900]}, [ours]),
                         (said["changes"], said["aggregates_added"]))
        self.assertEqual(100, self.inventory(provider)["max_unit"])
        self.assertIn("IPV4_ADDRESS", self.inventories(provider)["inventories"])
        self.assertEqual({other, ours}, set(self.ask(
            "GET", f"/resource_providers/{provider}/aggregates")["aggregates"]))

    def test_a_claim_between_reading_and_writing(self):
        provider = self.create(500, 20)
        before = self.generation(provider)
        # What is measured first is only whether there is a mount.
        claims = iter((lambda: None, lambda: self.claim(provider, 15)))
        self.mount(600, 20)
        self.meanwhile = lambda: next(claims, lambda: None)()
        said, _ = self.run_script("--uuid", provider)
        self.assertEqual(({"total": [500, 600], "reserved": [20, 5]}, 15),
                         (said["changes"], said["used"]))
        self.assertEqual(before + 2, self.generation(provider))

    def test_a_change_that_always_conflicts_ends_with_an_error(self):
        provider = self.create(500, 20)
        self.useFixture(fixtures.MockPatchObject(self.script, "ATTEMPTS", 3))
        self.mount(600, 20)
        self.meanwhile = lambda: self.claim(provider, 1)
        _, words = self.run_script("--uuid", provider, code=1)
        self.assertIn("others changed the provider 3 times", words)
        self.assertEqual(500, self.inventory(provider)["total"])

    def test_a_share_that_has_become_too_small(self):
        provider = self.create(500, 20)
        self.claim(provider, 300)
        self.mount(200, 20)
        lack = "300 GiB are allocated of a capacity of 200 GiB"
        self.assertIn(lack, self.run_script("--uuid", provider, "--dry-run")[1])
        self.assertRegex(self.run_script("--uuid", provider, code=1)[1], f"409.*{lack}")
        self.assertEqual(500, self.inventory(provider)["total"])

    def test_a_dry_run(self):
        self.mount(500, 20)
        new = ("--name", NAME, "--create", "--aggregate-uuid", base.new_uuid(), "--dry-run")
        said, _ = self.run_script(*new)
        self.assertEqual((True, True, None, [None, 500]), (
            said["dry_run"], said["created"], said["uuid"], said["changes"]["total"]))
        self.assertEqual([], self.providers())
        provider = self.create(500, 20)
        self.mount(600, 20)
        said, _ = self.run_script(*new)
        self.assertEqual({"total": [500, 600]}, said["changes"])
        self.assertEqual(500, self.inventory(provider)["total"])


class MistakeTest(SharedStorageTest):

    def test_an_unmounted_share_is_not_measured(self):
        arguments = ("--name", NAME, "--create")
        self.assertIn("is not a mount point", self.run_script(*arguments, code=1)[1])
        self.share += "/nowhere"
        self.assertIn("No such file", self.run_script(*arguments, "--allow-any-path", code=1)[1])
        self.assertEqual([], self.providers())

    def test_a_share_of_nothing(self):
        self.mount(0.9, 0)
        self.assertIn("less than 1 GiB", self.run_script("--name", NAME, code=1)[1])

    def test_a_provider_that_is_not_there(self):
        provider = self.create(500, 20)
        for arguments, expected in (
                (["--name", "another"], "use --create"),
                (["--uuid", base.new_uuid()], "use --create"),
                (["--uuid", base.new_uuid(), "--name", NAME, "--create"], "409"),
                (["--uuid", provider, "--name", "another"], f"is called {NAME}")):
            self.assertIn(expected, self.run_script(*arguments, code=1)[1])

    def test_a_service_that_does_not_serve(self):
        self.mount(500, 20)
        for arguments, expected in (
                (["--os-token", "nobody"], "403"), (["--endpoint", self.url + "/no"], "404"),
                (["--os-token", "two\nlines"], "malformed"),
                (["--endpoint", "http://127.0.0.1:1"], "no answer from"),
                (["--endpoint", "http://127.0.0.1:port"], "malformed")):
            _, words = self.run_script("--name", NAME, "--create", *arguments, code=1)
            self.assertIn(expected, words)
            self.assertEqual(1, len(words.splitlines()), words)
            self.assertNotIn("lines", words)

    def test_a_service_that_is_overloaded(self):
        """It says when to come back, which the script does, for some time."""
        busy = self.script.Refused(503, "busy", 1)
        pause = self.useFixture(fixtures.MockPatch("time.sleep")).mock
        ask = self.useFixture(fixtures.MockPatchObject(self.script.Placement, "_ask")).mock
        ask.side_effect = [busy, busy, {"found": 1}]
        placement = self.script.Placement(self.url, "admin")
        self.assertEqual({"found": 1}, placement.read("/any"))
        self.assertEqual([mock.call(1)] * 2, pause.mock_calls)
        ask.side_effect = [busy] * self.script.ATTEMPTS
        self.assertRaises(self.script.Refused, placement.read, "/any")
        ask.side_effect = [self.script.Refused(503, "no reason")]
        self.assertRaises(self.script.Refused, placement.read, "/any")

    def test_wrong_arguments(self):
        for arguments in ([], ["--uuid", "pool"], ["--uuid", base.new_uuid(), "--create"],
                          ["--name", NAME, "--min-unit", "0"], ["--name", NAME, "--os-token", ""],
                          ["--name", NAME, "--endpoint", "placement:8778"],
                          ["--name", NAME, "--aggregate-uuid", "row 1"]):
            self.assertIn("usage: ", self.run_script(*arguments, code=2)[1])


class ProcessTest(SharedStorageTest):

    arguments = ("--name", NAME, "--create", "--allow-any-path")

    def assert_is_measured(self, inventory):
        size = os.statvfs(self.share)
        self.assertEqual(size.f_blocks * size.f_frsize // 2 ** 30, inventory["total"])
        taken = (size.f_blocks - size.f_bavail) * size.f_frsize / 2 ** 30
        # Others write to this disk at the same time.
        self.assertLess(abs(inventory["reserved"] - taken), 5)

    def test_a_real_file_system(self):
        done = self.run_process(*self.arguments)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        said = json.loads(done.stdout)
        self.assert_is_measured(said["inventory"])
        self.assert_is_measured(self.inventory(said["uuid"]))

    def test_one_line_for_a_terminal(self):
        terminal, its_end = pty.openpty()
        self.addCleanup(os.close, terminal)
        done = self.run_process(*self.arguments, stdout=its_end)
        os.close(its_end)
        said = os.read(terminal, 4096).decode()
        self.assertEqual((0, 1), (done.returncode, len(said.splitlines())), done.stderr)
        self.assertRegex(said, rf"{NAME} \(.*\): created, total \d+, reserved \d+")

    def test_several_machines_have_the_share(self):
        results = []
        machines = [threading.Thread(target=lambda: results.append(
            self.run_process(*self.arguments))) for _ in range(5)]
        for each in machines:
            each.start()
        for each in machines:
            each.join()
        self.assertEqual([(0, "")] * 5, [(each.returncode, each.stderr) for each in results])
        said = [json.loads(each.stdout) for each in results]
        self.assertEqual(1, sum(each["created"] for each in said))
        (provider,) = self.providers()
        self.assertEqual({provider["uuid"]}, {each["uuid"] for each in said})
        self.assert_is_measured(self.inventory(provider["uuid"]))


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


class SignInTest(SharedStorageTest):

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


class ScheduleTest(SharedStorageTest):

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
