# SPDX-License-Identifier: Apache-2.0
"""Conductors and clients in separate processes."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import fixtures
from testtools import content, content_type

_ROOT = pathlib.Path(__file__).parents[2]
_CLAIMER = pathlib.Path(__file__).with_name("claimer.py")


class Conductor(fixtures.Fixture):
    """``placement-rpc-conductor`` on real servers.

    :param options: dict of group to dict of options
    :param module: str, the program
    """

    def __init__(self, options, module="placement_rpc.cmd.conductor"):
        super().__init__()
        self.options = options
        self._module = module
        self.process = None

    def _setUp(self):
        directory = self.useFixture(fixtures.TempDir()).path
        self.path = pathlib.Path(directory, "placement-rpc.conf")
        self.log = pathlib.Path(directory, "log")
        self.write()
        self.addCleanup(self.kill)
        # Part of the report of a test that fails.
        self.addDetail("errors", content.Content(
            content_type.UTF8_TEXT, lambda: [self._errors().encode()]))
        self.start()

    def write(self):
        """Write the configuration file from the current ``options``."""
        self.path.write_text("".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in options.items())
            for group, options in self.options.items()))

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", self._module,
                 "--config-file", str(self.path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=_ROOT,
                start_new_session=True)

    def kill(self):
        """Kill the process and all its workers at once, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def freeze(self):
        """Stop the process and all its workers without ending them."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        """Let them go on."""
        os.killpg(self.process.pid, signal.SIGCONT)

    def signal(self, number):
        self.process.send_signal(number)

    def said(self):
        return self.log.read_text(errors="replace")

    def _errors(self):
        return "".join(f"{line}\n" for line in self.said().splitlines() if " ERROR " in line)


class Claimers:
    """Client processes under load.

    :param orders: list of dicts, see :mod:`tests.integration.claimer`
    :param interpreters: list of command lines, as lists of str, of the interpreters that run them;
        None for this one
    :param program: list of str, what the interpreter runs
    """

    def __init__(self, orders, interpreters=None, program=(str(_CLAIMER),)):
        self.processes = []
        for number, order in enumerate(orders):
            interpreter = interpreters[number] if interpreters else [
                sys.executable, "-W", "ignore"]
            process = subprocess.Popen(
                [*interpreter, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, cwd=_ROOT, start_new_session=True)
            process.stdin.write(json.dumps(order).encode())
            process.stdin.close()
            process.stdin = None
            self.processes.append(process)

    def results(self):
        """Wait for the processes; return the reports of their threads, a list of dicts."""
        reports = []
        for process in self.processes:
            out, err = process.communicate()
            if process.returncode:
                raise RuntimeError(err.decode(errors="replace"))
            reports += json.loads(out)
        return reports

    def running(self):
        return any(process.poll() is None for process in self.processes)

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()
