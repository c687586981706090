# SPDX-License-Identifier: Apache-2.0
"""Scripts of nova's and others' own clients, run against servers, and their records compared."""

import ast
import itertools
import json
import os
import pathlib
import subprocess

import fixtures

from tests import environments

_DIRECTORY = pathlib.Path(__file__).with_name("clients")
#: Modules of :mod:`tests.conformance.clients` whose public functions are scripts.
MODULES = ("nova_compute", "nova_scheduler", "nova_moves", "nova_operator", "nova_trouble", "sdk",
           "neutron")


def scripts():
    """Yield the module and the name of each script, without importing what they import."""
    for module in MODULES:
        for node in ast.parse((_DIRECTORY / f"{module}.py").read_bytes()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                yield module, node.name


class Clients(fixtures.Fixture):
    """A process of the interpreter that has nova, which runs scripts."""

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._errors = directory / "errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                environments.program("nova").script(_DIRECTORY / "program.py"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=directory,
                env={"PATH": os.environ["PATH"], "HOME": str(directory),
                     "OS_NOVA_DISABLE_EVENTLET_PATCHING": "true"})
        self.addCleanup(self._end)

    def _end(self):
        self._process.kill()
        self._process.communicate()

    def run(self, module, name, url, seed):
        """Run a script against the server at an address.

        :returns: dict of ``steps``, and of ``failed``, a traceback, if a step ended otherwise
            than the script says
        """
        self._process.stdin.write(json.dumps(
            {"module": module, "name": name, "url": url, "seed": seed}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._errors.read_text(errors="replace"))
        return json.loads(line)


def comparable(steps):
    """Return the part of a record that must not depend on the server, in order.

    Steps stay as they happened. Lists are sorted, since clients and servers keep sets in them;
    so are requests of one method that follow each other: clients loop over sets, too.
    """
    return [{**_comparable({**step, "requests": []}), "requests": _in_order(step["requests"])}
            for step in steps]


def _in_order(requests):
    return [request for _method, group in itertools.groupby(
        requests, lambda request: request["request"].split()[0])
        for request in _comparable(list(group))]


def _comparable(value):
    if isinstance(value, dict):
        hidden = _WORDS | ({"codes"} if _is_before_codes(value) else set())
        return {name: "*" if name in _GENERATIONS and isinstance(its, int) else _comparable(its)
                for name, its in sorted(value.items()) if name not in hidden}
    if isinstance(value, list):
        return sorted((_comparable(each) for each in value), key=json.dumps)
    return value


def _is_before_codes(request):
    """Return whether the version of a request is one at which the other server has no codes."""
    version = request.get("answered version") or "placement 1.0"
    return int(version.rpartition(".")[2]) < _CODES


# Errors say more here, behind the words that clients look for.
_WORDS = {"details", "text"}
_CODES = 23


# Every change of a provider raises its generation by one here, see DESIGN.
_GENERATIONS = ("generation", "resource_provider_generation")
