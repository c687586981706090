# SPDX-License-Identifier: Apache-2.0
"""Commands of documents, run as they are written, on a service of the test's own."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import fixtures

from placement_rpc.cmd import state_file
from placement_rpc.testing.facade import Facade
from tests import base

_ROOT = pathlib.Path(__file__).parents[1]

# What 'make run' prints.
_ADDRESS = "http://127.0.0.1:8778"
# Of a RabbitMQ of the reader's own.
_BUS = "rabbit://user:password@host/"
# Of 'make demo'.
_FEWER = {} if base.FULL else {"CONSUMERS": "200"}


def run(case, script):
    """Run commands with bash until one fails, and return what they print.

    :param case: the test, which fails if a command does
    :param script: str, in which the address of ``make run`` is replaced
    """
    case.assertIn(_ADDRESS, script)
    url = case.useFixture(Facade()).url
    return _bash(case, script.replace(_ADDRESS, url))


def _bash(case, script, directory=None):
    done = subprocess.run(
        ["bash", "-eu", "-c", script], check=False, text=True,
        cwd=directory, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**_FEWER, **os.environ,
             "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})
    case.assertEqual(0, done.returncode, done.stdout)
    return done.stdout


class Clone(fixtures.Fixture):
    """A directory like a clone of the repository, in which ``make run`` runs on RabbitMQ.

    Its files are links to those of this tree. The environment of this process takes the place of
    the two that make would make.

    :param transport_url: str, the RabbitMQ
    """

    def __init__(self, transport_url):
        super().__init__()
        self._transport_url = transport_url

    def _setUp(self):
        self._path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        environments = (".venv", ".venv-test")
        _link(_ROOT, self._path, but=(".git", "state", ".stestr", *environments))
        for name in environments:
            (self._path / name).mkdir()
            _link(pathlib.Path(sys.prefix), self._path / name, but=(".installed",))
            # Newer than all that it depends on, so that make installs nothing.
            (self._path / name / ".installed").touch()
        self._log = self._path / "log"
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main",
                 "--transport-url", self._transport_url, "standalone", "--http-port", "0"],
                cwd=self._path, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        state = base.wait_until(
            lambda: process.poll() is not None or state_file.read(self._path / "state"),
            message=self._log.read_text)
        if process.poll() is not None:
            raise RuntimeError(self._log.read_text())
        self._url = state["http_url"]

    def run(self, case, script):
        """Run commands as :func:`run` does, in this directory and on this service."""
        return _bash(case, script.replace(_ADDRESS, self._url).replace(
            _BUS, self._transport_url), self._path)


def _link(source, target, but):
    for each in source.iterdir():
        if each.name not in but:
            (target / each.name).symlink_to(each)


def blocks(page, language):
    """Return the texts of the code blocks of a page in a language."""
    found = re.findall(rf"^\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", page, re.MULTILINE)
    return [textwrap.dedent(each) for each in found]


def missing(page, output):
    """Return the lines of the text blocks of a page that its commands have not printed.

    Widths of columns are ignored.
    """
    printed = _words(output)
    return [line for block in blocks(page, "text") for line in _words(block)
            if not any(line in each for each in printed)]


def _words(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
