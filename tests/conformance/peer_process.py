# SPDX-License-Identifier: Apache-2.0
"""This service in processes of its own, with an empty store.

A new process of Python takes seconds until all modules are loaded. These are forked from one that
has loaded them, in a tenth of a second.
"""

import contextlib
import functools
import importlib
import multiprocessing
import os
import pathlib
import signal
import sys
import threading

import fixtures
import requests

from placement_rpc.cmd import state_file
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.conformance import web

_START_TIMEOUT = 60
# For what the tests of a file need, and no more.
_OPTIONS = {"DEFAULT": {"log_file": "/dev/null"}, "api": {"threads": 4, "max_waiting": 1},
            "conductor": {"workers": 1, "threads": 2}, "database": {"sqlite_synchronous": False}}


@functools.cache
def _forks():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([
        "tests.conformance.peer_process", "placement_rpc.cmd.standalone",
        "placement_rpc.cmd.conductor"])
    return context


def _serve(program, arguments, output, lifeline):
    """Run a program; end when the process of the tests does."""
    # The output of the process of the tests is their report.
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(descriptor, number)
    # What a program forks is ended with it.
    os.setpgid(0, 0)
    threading.Thread(target=_await_end, args=(lifeline,), daemon=True).start()
    sys.exit(importlib.import_module(f"placement_rpc.cmd.{program}").main(arguments))


def _await_end(lifeline):
    lifeline.poll(None)
    os.killpg(0, signal.SIGKILL)


class _Program(fixtures.Fixture):
    """One of the programs in :mod:`placement_rpc.cmd`.

    :param name: str, of its module
    :param directory: :class:`pathlib.Path`, for what it writes
    :param arguments: str each
    """

    def __init__(self, name, directory, *arguments):
        super().__init__()
        self._name, self._arguments = name, list(arguments)
        self._output = directory / f"{name}.output"

    def _setUp(self):
        lifeline, far_end = multiprocessing.Pipe()
        self._process = _forks().Process(target=_serve, args=(
            self._name, self._arguments, str(self._output), far_end))
        self._process.start()
        far_end.close()
        self.addCleanup(self._process.join)
        # Nothing that it holds is needed any more: a graceful end would only take longer.
        self.addCleanup(lifeline.close)

    def wait_until(self, is_up):
        """Wait until a function returns something true, and return that."""
        return base.wait_until(lambda: self._check() or is_up(), _START_TIMEOUT, self._said)

    def _check(self):
        if not self._process.is_alive():
            raise RuntimeError(f"The program ended:\n{self._said()}")

    def _said(self):
        return self._output.read_text(errors="replace") if self._output.exists() else ""


class Standalone(fixtures.Fixture):
    """``placement-rpc standalone`` on SQLite; ``url`` is its address.

    :param options: dict of the name of a group to a dict of its options
    """

    def __init__(self, options):
        super().__init__()
        self._options = options

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        program = self.useFixture(_Program(
            "main", directory, "--config-file", _written(directory / "conf", self._options),
            "--state-dir", str(directory), "standalone", "--http-port", "0"))
        self.url = program.wait_until(lambda: state_file.read(directory))["http_url"]


class Facade(fixtures.Fixture):
    """A facade behind gunicorn that opens its store, SQLite, itself; ``url`` is its address.

    :param options: of :class:`Standalone`
    :param policy: str, the content of its policy file; None for none
    :param environment: dict, of the processes in addition
    """

    def __init__(self, options, policy=None, environment=()):
        super().__init__()
        self._options, self._policy, self._environment = options, policy, dict(environment)

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        _write_policy(directory, self._policy)
        self.conf = self.useFixture(placement_fixtures.Store()).conf
        server = self.useFixture(web.Gunicorn("placement_rpc.http.wsgi:application", {
            "PLACEMENT_RPC_CONF": _written(directory / "placement-rpc.conf", _merged(
                self._options, {"database": {"connection": self.conf.database.connection}})),
            **self._environment}))
        self.url, self.process, self.said = server.url, server.process, server.said


class OnRealServers(fixtures.Fixture):
    """A facade behind gunicorn that calls a conductor over RabbitMQ; the store is PostgreSQL.

    ``url`` is the address of the facade, which knows nothing of the database.

    :param options: of :class:`Standalone`
    :param policy: str, the content of the policy file of both; None for none
    :param token: str, of a caller that may list providers
    """

    def __init__(self, options, policy=None, token="admin"):
        super().__init__()
        self._options, self._policy, self._token = options, policy, token

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        _write_policy(directory, self._policy)
        options = _merged(self._options, {
            "DEFAULT": {"transport_url": self.useFixture(servers.VirtualHost()).url},
            "api": {"transport": "rpc"}})
        conductor = self.useFixture(_Program(
            "conductor", directory, "--config-file", _written(directory / "conductor", _merged(
                options, {"database": {"connection": servers.new_database("postgresql")}}))))
        self.url = self.useFixture(web.Gunicorn("placement_rpc.http.wsgi:application", {
            "PLACEMENT_RPC_CONF": _written(directory / "facade", options)})).url
        conductor.wait_until(self._answers)

    def _answers(self):
        with contextlib.suppress(requests.ConnectionError):
            return requests.get(f"{self.url}/resource_providers", timeout=_START_TIMEOUT,
                                headers={"x-auth-token": self._token}).status_code < 500


def _write_policy(directory, policy):
    """Write a policy file to where programs look for it: beside their configuration."""
    if policy is not None:
        (directory / "policy.yaml").write_text(policy)


def _merged(options, more):
    return {group: {**options.get(group, {}), **more.get(group, {})}
            for group in {**options, **more}}


def _written(path, options):
    """Write a configuration, and return its path."""
    path.write_text(web.configuration(_merged(_OPTIONS, options)))
    return str(path)
