# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc standalone`` in processes of their own, each with an empty store.

A new process of Python takes seconds until all modules are loaded. These are forked from one that
has loaded them, in a tenth of a second.
"""

import functools
import json
import multiprocessing
import os
import pathlib
import signal
import sys
import threading

import fixtures

from placement_rpc.cmd import state_file
from tests import base

_START_TIMEOUT = 60
# For what the tests of a file need, and no more.
_OPTIONS = {"DEFAULT": {"log_file": "/dev/null"}, "api": {"threads": 4, "max_waiting": 1},
            "database": {"sqlite_synchronous": False}}


@functools.cache
def _forks():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([
        "tests.conformance.peer_process", "placement_rpc.cmd.standalone"])
    return context


def _serve(arguments, output, lifeline):
    """Run the program; end when the process of the tests does."""
    from placement_rpc.cmd import main
    # The output of the process of the tests is their report.
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(descriptor, number)
    threading.Thread(target=_await_end, args=(lifeline,), daemon=True).start()
    sys.exit(main.main(arguments))


def _await_end(lifeline):
    lifeline.poll(None)
    os.kill(os.getpid(), signal.SIGTERM)


class Standalone(fixtures.Fixture):
    """The program with HTTP on a free port; ``url`` is its address.

    :param options: dict of the name of a group to a dict of its options
    """

    def __init__(self, options):
        super().__init__()
        self._options = {group: {**_OPTIONS.get(group, {}), **options.get(group, {})}
                         for group in {**_OPTIONS, **options}}

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        configuration = directory / "placement-rpc.conf"
        configuration.write_text("".join(
            f"[{group}]\n" + "".join(f"{name} = {_text(value)}\n" for name, value in its.items())
            for group, its in self._options.items()))
        self._output = directory / "output"
        lifeline, far_end = multiprocessing.Pipe()
        self.addCleanup(lifeline.close)
        self._process = _forks().Process(target=_serve, args=(
            ["--config-file", str(configuration), "--state-dir", str(directory), "standalone",
             "--http-port", "0"], str(self._output), far_end))
        self._process.start()
        far_end.close()
        self.addCleanup(self._stop)
        running = base.wait_until(
            lambda: self._is_up(directory), _START_TIMEOUT, self.output)
        self.url = running["http_url"]

    def _is_up(self, directory):
        if not self._process.is_alive():
            raise RuntimeError(f"The program ended:\n{self.output()}")
        return state_file.read(directory)

    def output(self):
        """Return what the program has printed."""
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    def _stop(self):
        # Nothing that it holds is needed any more: a graceful end would only take longer.
        self._process.kill()
        self._process.join()


def _text(value):
    return ",".join(value) if isinstance(value, list) else json.dumps(value).strip('"')
