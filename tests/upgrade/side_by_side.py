# SPDX-License-Identifier: Apache-2.0
"""Programs of different releases on one store and one broker, as fixtures.

Each takes an :class:`tests.environments.Installation`.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess

import fixtures
import requests

from placement_rpc import exception
from tests import base, environments
from tests.integration import processes
from tests.upgrade import golden

_CLIENT = pathlib.Path(__file__).with_name("release_client.py")
_START_TIMEOUT = 60


def manage(installation, directory, database, *arguments, transport_url=None):
    """Run ``placement-rpc-manage`` of a release.

    :param directory: str, where to work
    :param database: str, URL of the store
    :param transport_url: str, for commands that need the broker
    :returns: str, what it printed
    """
    path = pathlib.Path(directory, "manage.conf")
    broker = f"[DEFAULT]\ntransport_url = {transport_url}\n" if transport_url else ""
    path.write_text(f"{broker}[database]\nconnection = {database}\n")
    return subprocess.run(
        installation.program("placement-rpc-manage", "--config-file", str(path), *arguments),
        check=True, capture_output=True, text=True, cwd=directory).stdout


class Conductor(processes.Conductor):
    """``placement-rpc-conductor`` of a release.

    :param installation: which release it is; may be set before another :meth:`start`
    :param options: dict of group to dict of options
    """

    _number = 0

    def __init__(self, installation, options):
        super().__init__({**options, "conductor": {
            "workers": 1, "threads": 8, "report_interval": 1, **options.get("conductor", {})}})
        self.installation = installation

    def start(self):
        # A name for each process, so that its row in the store is not one that was killed.
        Conductor._number += 1
        self.host = f"conductor{Conductor._number}.example.org"
        self.options["conductor"]["host"] = self.host
        self.write()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.installation.program(
                    "placement-rpc-conductor", "--config-file", str(self.path)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.path.parent,
                start_new_session=True)


class Client(fixtures.Fixture):
    """A client process of a release, see :mod:`tests.upgrade.release_client`.

    ``version``, ``package``, ``methods`` and ``changes`` are what it says about itself.

    :param installation: which release it is
    :param transport_url: str
    """

    def __init__(self, installation, transport_url):
        super().__init__()
        self._installation = installation
        self._options = {"transport_url": transport_url, "placement_client__deadline": 60.0,
                         "placement_client__attempt_timeout": 5.0}

    def _setUp(self):
        directory = self.useFixture(fixtures.TempDir()).path
        self._errors = pathlib.Path(directory, "errors")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self._installation.script(_CLIENT), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, cwd=directory)
        self.addCleanup(self._end)
        # The module is that of the first release and, in this tree, where it is now.
        of_this_tree = self._installation is environments.THIS_TREE
        said = self._exchange({"options": self._options, "compute_node": (
            golden.ComputeNode.__module__ if of_this_tree
            else "placement_rpc.objects.compute_node")})
        self.version, self.package, self.methods, self.changes = (
            said[name] for name in ("version", "package", "methods", "changes"))

    def _end(self):
        self._process.kill()
        self._process.communicate()

    def _exchange(self, message):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._errors.read_text(errors="replace"))
        return json.loads(line)

    def ask(self, method, **arguments):
        """Make a call; returns a dict of ``result`` or of ``error``."""
        return self._exchange({"method": method, "arguments": arguments})

    def call(self, method, **arguments):
        """Make a call; returns its result as JSON types.

        :raises PlacementException:
        """
        answer = self.ask(method, **arguments)
        if "error" in answer:
            raise exception.from_code(answer["error"]["code"], answer["error"]["values"])
        return answer["result"]


class Facade(fixtures.Fixture):
    """The HTTP facade of a release, behind gunicorn; ``url`` is where.

    :param installation: which release it is
    :param options: dict of group to dict of options
    """

    def __init__(self, installation, options):
        super().__init__()
        self._installation = installation
        self._options = {**options, "api": {"auth_strategy": "noauth2", **options["api"]}}

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path, log = directory / "placement-rpc.conf", directory / "log"
        path.write_text("".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in options.items())
            for group, options in self._options.items()))
        with socket.create_server(("127.0.0.1", 0)) as free, log.open("wb") as errors:
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
            # The process inherits the listening socket, so that no other can take the port.
            process = subprocess.Popen(
                self._installation.module(
                    "gunicorn", "--threads", "4", "--bind", f"fd://{free.fileno()}",
                    "--log-level", "warning", "placement_rpc.http.wsgi:application"),
                pass_fds=[free.fileno()], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                cwd=directory, start_new_session=True,
                env={**os.environ, "PLACEMENT_RPC_CONF": str(path)})
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        self.session = requests.Session()
        self.addCleanup(self.session.close)
        self.session.headers.update({
            "x-auth-token": "admin", "openstack-api-version": "placement 1.4"})
        try:
            base.wait_until(
                lambda: self.send("GET", "/resource_providers").status_code == 200, _START_TIMEOUT)
        except (TimeoutError, requests.ConnectionError) as error:
            raise RuntimeError(log.read_text(errors="replace")) from error

    def send(self, method, path, **how):
        """Send a request; returns the :class:`requests.Response`."""
        return self.session.request(method, self.url + path, timeout=60, **how)
