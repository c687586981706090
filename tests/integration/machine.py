# SPDX-License-Identifier: Apache-2.0
"""A machine on which the files of ``etc/`` are installed, and their programs run."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import fixtures

ETC = pathlib.Path(__file__).parents[2] / "etc"
_DIRECTORIES = ("/etc/placement-rpc", "/var/log/placement-rpc", "/var/lib/placement-rpc",
                "/run/placement-rpc-api", "/run/haproxy")
_PROGRAMS = "/opt/placement-rpc/bin/"
# Until a program says that it is ready.
_START_TIMEOUT = 60


def program(name):
    """Return the path of a program of the system, which need not be in a user's PATH."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or name


def free_port():
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Machine(fixtures.Fixture):
    """Directories below a temporary one, as :meth:`path` says, in place of the system's."""

    def _setUp(self):
        self._root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for each in _DIRECTORIES:
            self.path(each).mkdir(parents=True)

    def path(self, name):
        """Return where a path of the system is on this machine."""
        return self._root / name.lstrip("/")

    def install(self, name, path, replacements=None):
        """Copy a file of ``etc/`` to a path of the system.

        Every path of the system in it becomes one of this machine, and nothing else changes.

        :param name: relative to ``etc/``
        :param replacements: dict of further texts, each of which must be there, to others
        :returns: :class:`pathlib.Path`
        """
        text = self.local((ETC / name).read_text())
        for old, new in (replacements or {}).items():
            if old not in text:
                raise ValueError(f"{name} has no {old}")
            text = text.replace(old, new)
        written = self.path(path)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text)
        return written

    def local(self, text):
        """Return a text with the paths of this machine, and the programs of this environment."""
        for each in _DIRECTORIES:
            text = text.replace(each, str(self.path(each)))
        return text.replace(_PROGRAMS, f"{os.path.dirname(sys.executable)}/")

    def command(self, *units, setting="ExecStart"):
        """Return a command line of a systemd unit: list of str.

        :param units: files relative to ``etc/``: a unit, then its drop-ins
        """
        found = [line for name in units for line in re.findall(
            rf"^{setting}=(.+)$", (ETC / name).read_text(), re.MULTILINE)]
        return shlex.split(self.local(found[-1]))

    def start(self, command, **environment):
        """Start a program as systemd does and wait until it is ready; return :class:`Running`."""
        return self.useFixture(Running(command, environment, self._root))

    def reload(self, running, *units):
        """Do what ``systemctl reload`` does with a program that :meth:`start` returned."""
        command = self.command(*units, setting="ExecReload")
        subprocess.run([str(running.process.pid) if word == "$MAINPID" else word
                        for word in command], check=True)


class Running(fixtures.Fixture):
    """A process that is started as a service of ``Type=notify``.

    :ivar process: :class:`subprocess.Popen`
    """

    def __init__(self, command, environment, directory):
        super().__init__()
        self._command, self._environment = command, environment
        self._directory = directory

    def _setUp(self):
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self._told.close)
        self._told.bind("")
        self._told.settimeout(_START_TIMEOUT)
        self._log = pathlib.Path(self._directory, f"output{self._told.getsockname()[1:].hex()}")
        address = "@" + self._told.getsockname()[1:].decode()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd=self._directory,
                env={"PATH": os.environ["PATH"], "PYTHONWARNINGS": "ignore", **{
                    name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
                    **self._environment, "NOTIFY_SOCKET": address})
        self.addCleanup(self.kill)
        self.wait_until_ready()

    def wait_until_ready(self):
        """Wait for the next message that the service is ready.

        :raises RuntimeError: with its output, if there is none in time
        """
        with self._told.dup() as told:
            told.settimeout(_START_TIMEOUT)
            try:
                while b"READY=1" not in told.recv(4096).split(b"\n"):
                    continue
            except TimeoutError:
                raise RuntimeError(f"It is not ready:\n{self.said()}") from None

    def said(self):
        """Return what it has printed."""
        return self._log.read_text(errors="replace")

    def kill(self):
        """Kill the process and its children at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
