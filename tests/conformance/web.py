# SPDX-License-Identifier: Apache-2.0
"""WSGI applications served by gunicorn in processes of their own."""

import atexit
import functools
import os
import pathlib
import re
import subprocess
import sys
import time

import fixtures

from placement_rpc.testing.facade import Facade

_START_TIMEOUT = 60
_LISTENING = re.compile(r"Listening at: (http://[\d.:]+)")
_BOOTED = "Application is ready"


class Gunicorn(fixtures.Fixture):
    """An application behind gunicorn on 127.0.0.1; ``url`` and ``process`` are set.

    :param application: str, ``module:attribute``
    :param environment: dict of what the processes find in their environment besides PATH
    :param workers: int, processes
    :param threads: int, threads of each
    """

    def __init__(self, application, environment, workers=1, threads=4):
        super().__init__()
        self._application = application
        self._environment = environment
        self._workers, self._threads = workers, threads

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        settings = directory / "settings.py"
        # A worker logs a line when it has loaded the application, which may take seconds.
        settings.write_text(
            "def post_worker_init(worker):\n"
            f"    worker.log.info({_BOOTED!r})\n")
        self._log = directory / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", sys.executable, "-W", "ignore", "-m",
                 "gunicorn", "--config", str(settings), "--bind", "127.0.0.1:0",
                 "--worker-class", "gthread", "--workers", str(self._workers),
                 "--threads", str(self._threads), "--keep-alive", "600",
                 "--graceful-timeout", "2", "--no-control-socket", self._application],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory,
                env={"PATH": "/usr/bin:/bin", "HOME": str(directory), **{
                    name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
                    **self._environment})
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.terminate)
        self.url = self._wait()

    def _wait(self):
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            said = self.said()
            if said.count(_BOOTED) >= self._workers:
                return _LISTENING.search(said)[1]
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self._application} did not start:\n{said}")
            time.sleep(0.02)

    def said(self):
        """Return what its processes have logged so far."""
        return self._log.read_text(errors="replace")


class Upstream(fixtures.Fixture):
    """openstack-placement; ``url`` and ``process`` are set.

    :param database_url: str, SQLAlchemy URL of an empty database; None for a SQLite file
    :param durable: bool, whether SQLite waits for the disk
    :param options: dict of the name of a group to a dict of its options; without it the
        authentication is that for development
    :param policy: str, the content of its policy file; None for none
    :param serving: of :class:`Gunicorn`
    """

    def __init__(self, database_url=None, durable=True, options=None, policy=None, **serving):
        super().__init__()
        self._database_url = database_url
        self._durable = durable
        self._options = options or {"api": {"auth_strategy": "noauth2"}}
        self._policy = policy
        self._serving = serving

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        url = self._database_url or f"sqlite:///{directory}/placement.sqlite"
        # The log of requests is off, since the other side of a comparison has none.
        (directory / "placement.conf").write_text(configuration({
            "DEFAULT": {"default_log_levels": "placement.requestlog=WARNING"},
            "placement_database": {"connection": url, "sqlite_synchronous": self._durable},
            **self._options}))
        if self._policy is not None:
            (directory / "policy.yaml").write_text(self._policy)
        surroundings = {"OS_PLACEMENT_CONFIG_DIR": str(directory)}
        # Beforehand: several workers would run into each other at it.
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c",
             "import sys; from placement.cmd.manage import main; sys.exit(main())",
             "--config-file", str(directory / "placement.conf"), "db", "sync"],
            check=True, capture_output=True)
        server = self.useFixture(Gunicorn(
            "placement.wsgi.api:application", surroundings, **self._serving))
        self.url, self.process, self.said = server.url, server.process, server.said


def configuration(options):
    """Return the text of a configuration file.

    :param options: dict of the name of a group to a dict of its options
    """
    return "".join(f"[{group}]\n" + "".join(
        f"{name} = {','.join(value) if isinstance(value, list) else value}\n"
        for name, value in its.items()) for group, its in options.items())


def _shared(fixture):
    fixture.setUp()
    atexit.register(fixture.cleanUp)
    return fixture.url.rstrip("/")


@functools.cache
def upstream():
    """Return the address of this test process's openstack-placement, started when needed."""
    return _shared(Upstream(durable=False))


@functools.cache
def facade():
    """Return the address of this test process's facade, started when needed."""
    return _shared(Facade())


SERVERS = {"placement_rpc": facade, "openstack-placement": upstream}
