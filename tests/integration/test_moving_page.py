# SPDX-License-Identifier: Apache-2.0
"""The commands of ``docs/source/moving.rst``, run as they are written and in their order.

Placement serves from MariaDB, this service from PostgreSQL and over RabbitMQ, both check tokens of
a real keystone, and its catalogue is changed. Only addresses and paths are replaced, and
``systemctl`` starts and stops the processes of the test.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import fixtures
import requests

from placement_rpc.cmd import manage
from tests import (
    base,
    keystone_server,
    placement_cloud,
    placement_contents,
    programs,
    servers,
)
from tests.conformance import web
from tests.integration.processes import Conductor

_ROOT = pathlib.Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "source" / "moving.rst").read_text()
_README = (_ROOT / "README.rst").read_text()
_CONFIGURATION = "/etc/placement-rpc/placement-rpc.conf"
_TIMEOUT = 60


def commands_of(text):
    """Return the shell commands in the literal blocks of a text, as a list of str.

    A command of several lines is one: a loop, or lines that end with a backslash.
    """
    found, open_ = [], False
    for block in re.findall(r"::\n\n((?:    .*\n|\n)+)", text):
        for line in filter(None, (line[4:] for line in block.splitlines())):
            if open_:
                found[-1] += f"\n{line}"
            else:
                found.append(line)
            is_loop = found[-1].startswith("for ")
            open_ = line.endswith("\\") or (is_loop and line != "done")
    return found


class _Cloud(fixtures.Fixture):
    """The services of a cloud, by the names that the page has for them.

    :ivar replaced: dict of what the page has to what the test has in its place
    """

    def _setUp(self):
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.keystone = self.useFixture(keystone_server.Keystone())
        self.cloud = self.useFixture(placement_cloud.PlacementCloud("mariadb"))
        placement_contents.fill(self.cloud)
        self.back = servers.new_empty_database("mariadb")
        self.replaced = {}
        self._running = {}
        self._write()
        for name in [name for name in os.environ if name.startswith("OS_")]:
            self.set(name, None)
        self.set("HOME", str(self.directory))
        self.set("OS_CLIENT_CONFIG_FILE", str(self.directory / "clouds.yaml"))
        self.set("PYTHONWARNINGS", "ignore")
        self.set("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
        self.start("placement-api")
        self._put_into_catalogue()
        self._session = requests.Session()
        self.addCleanup(self._session.close)
        self.look_up()

    def set(self, name, value):
        """Set an environment variable of the commands; None removes it."""
        self.useFixture(fixtures.EnvironmentVariable(name, value))

    def _write(self):
        """Write the files that the page names."""
        for name, url in (("placement", self.cloud.url), ("placement-back", self.back)):
            self._file(f"/etc/placement/{name}.conf", web.configuration({
                "placement_database": {"connection": url}}))
        self._options = {
            "DEFAULT": {"transport_url": self.useFixture(servers.VirtualHost()).url},
            "api": {"auth_strategy": "keystone", "transport": "rpc"},
            "conductor": {"workers": 1},
            "database": {"connection": servers.new_empty_database("postgresql")},
            "keystone_authtoken": self.keystone.middleware()}
        self._file(_CONFIGURATION, web.configuration(self._options))
        environment = self.keystone.environment("operator", "operator")
        (self.directory / "clouds.yaml").write_text(json.dumps({"clouds": {"admin": {
            "region_name": environment["OS_REGION_NAME"], "auth": {
                name.removeprefix("OS_").lower(): value for name, value in environment.items()
                if name not in ("OS_REGION_NAME", "OS_IDENTITY_API_VERSION")}}}}))

    def _file(self, path, text):
        self.replaced[path] = str(self.directory / path.replace("/", "-")[1:])
        pathlib.Path(self.replaced[path]).write_text(text)

    def _put_into_catalogue(self):
        keystone = self.keystone.client()
        service = keystone.services.create("placement", type="placement")
        keystone.endpoints.create(service, self.replaced["https://placement.example.org"],
                                  interface="public", region=keystone_server.REGION)

    def start(self, unit):
        """Start a unit."""
        if unit == "placement-rpc-conductor":
            self._running[unit] = self.useFixture(Conductor(self._options))
            return
        if unit == "placement-rpc-api":
            server = self.useFixture(web.Gunicorn("placement_rpc.http.wsgi:application", {
                "PLACEMENT_RPC_CONF": self.replaced[_CONFIGURATION]}))
        else:
            url = self.back if unit.endswith("back") else self.cloud.url
            # It logs the requests that it answers, as it does by default.
            server = self.useFixture(web.Upstream(url, options={
                "api": {"auth_strategy": "keystone"},
                "keystone_authtoken": self.keystone.middleware(),
                "DEFAULT": {"default_log_levels": "placement.requestlog=INFO"}}))
        self._running[unit] = server
        name = unit.replace("-api", "", 1)
        self.replaced[f"https://{name}.example.org"] = server.url.rstrip("/")

    def stop(self, unit):
        """Stop a unit, and wait until it has ended."""
        process = self._running.pop(unit).process
        process.terminate()
        process.wait(_TIMEOUT)

    def keep_log(self):
        """Write what Placement has logged to the path that the page names."""
        self._file("/var/log/placement/placement-api.log",
                   self._running["placement-api"].said())

    def send(self, method, path, body=None):
        """Send a request of nova's to the service in the catalogue; return the document.

        :raises requests.HTTPError: if it is refused
        """
        answer = self._session.request(
            method, self._endpoint + path, json=body, timeout=_TIMEOUT)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def look_up(self):
        """Look the service up in the catalogue, as a client does when it starts."""
        plugin = self.keystone.plugin("nova", "service")
        session = keystone_server.session.Session()
        self._endpoint = plugin.get_endpoint(session, service_type="placement").rstrip("/")
        self._session.headers.update({"x-auth-token": plugin.get_token(session),
                                      "openstack-api-version": "placement 1.39"})


class MovingPageTest(base.TestCase):
    time_limit = 400

    def test_every_command(self):
        self.cloud = self.useFixture(_Cloud())
        commands = commands_of(_PAGE)
        # Placement logs these reads, and 'shadow' repeats them.
        before = placement_contents.dump(self.cloud.send)
        for number, command in enumerate(commands):
            if "shadow" in command:
                self.cloud.keep_log()
            self.check(command, self.run_command(command), commands[:number], before)
        self.assertGreater(len(commands), 18)
        for step in ("import", "verify", "shadow", "export", "--finish", "--dry-run"):
            self.assertTrue(any(step in command for command in commands), step)

    def test_the_readme_has_some_of_them(self):
        section = re.search(r"^Coming from Placement\n=+\n(.*?)^=+$", _README,
                            re.MULTILINE | re.DOTALL)[1]
        commands = commands_of(section)
        self.assertEqual(3, len(commands))
        self.assertLessEqual(set(commands), set(commands_of(_PAGE)))

    def run_command(self, command):
        """Run a command; return its exit code and what it prints."""
        for text, its in sorted(self.cloud.replaced.items(), key=lambda each: -len(each[0])):
            command = command.replace(text, its)
        self.assertNotIn("example.org", command)
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.cloud.set(name, value)
            return 0, ""
        if command.startswith("systemctl "):
            verb, *units = command.split()[1:]
            for unit in units:
                {"start": self.cloud.start, "stop": self.cloud.stop}[verb](unit)
            return 0, ""
        if command.startswith("placement-rpc-manage "):
            # In this process, and with the file that it would find in /etc.
            done = programs.run(manage, "--config-file", self.cloud.replaced[_CONFIGURATION],
                                *shlex.split(command.replace("\\\n", " "))[1:])
            return done.code, done.stdout or done.stderr
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", command], check=False, text=True, cwd=_ROOT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def check(self, command, done, earlier, before):
        code, said = done
        self.assertEqual(0, code, f"{command}\n{said}")
        if "shadow" in command and "dry-run" not in command:
            found = json.loads(said)
            self.assertEqual(found["planned"], found["verdicts"]["same"], said)
            self.assertGreater(found["planned"], 30)
        elif command.startswith("openstack resource provider list"):
            self.assertEqual(sorted(each["name"] for each in before["providers"].values()),
                             sorted(said.splitlines()))
            self.cloud.look_up()
            if not any("placement export" in each for each in earlier):
                self.assertEqual(before, placement_contents.dump(self.cloud.send))
                self.go_on(before)

    def go_on(self, before):
        """Release a consumer's allocations and claim for another, as nova does after the move."""
        consumer = sorted(before["consumers"])[0]
        held = self.cloud.send("GET", f"/allocations/{consumer}")
        self.cloud.send("DELETE", f"/allocations/{consumer}")
        self.cloud.send("PUT", f"/allocations/{base.new_uuid()}", {
            "allocations": {uuid: {"resources": each["resources"]}
                            for uuid, each in held["allocations"].items()},
            "project_id": "p", "user_id": "u", "consumer_generation": None,
            "consumer_type": "INSTANCE"})
