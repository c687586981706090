# SPDX-License-Identifier: Apache-2.0
"""Modules of the benchmarks in processes of their own, which take and answer JSON lines."""

import json
import pathlib
import subprocess
import sys

import fixtures

_ROOT = pathlib.Path(__file__).parents[2]


class ModuleProcess(fixtures.Fixture):
    """``python -m tests.benchmarks.MODULE``; ``pid``.

    :param module: str, its name
    :param arguments: str, of its command line
    """

    def __init__(self, module, *arguments):
        super().__init__()
        self._command = [
            sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}", *arguments]

    def _setUp(self):
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT, text=True)
        self.pid = self._process.pid
        self.addCleanup(self.end)

    def end(self):
        """End the process, if it runs."""
        self._process.terminate()
        self._process.wait()

    def tell(self, order):
        """Send a value as a line of JSON."""
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def hear(self):
        """Wait for a line of JSON and return its value.

        :raises RuntimeError: if the process has ended
        """
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self._command[3:])} has ended: {self._process.wait()}")
        return json.loads(line)
