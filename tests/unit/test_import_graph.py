# SPDX-License-Identifier: Apache-2.0
"""Imports point one way (DESIGN section 1)."""

import ast
import configparser
import itertools
import pathlib
import subprocess
import sys
from importlib import metadata

from packaging import requirements, utils

import placement_rpc
from tests import base

_ROOT = pathlib.Path(placement_rpc.__file__).parent

# DESIGN section 1: a part may import what stands to its right, and what that may import.
_RULE = """
    cmd  >  testing  >  service  >  manager, http, notifications
    manager  >  rpc
    manager  >  upgrade  >  nova  >  accounting  >  candidates  >  db
    notifications  >  db
    http  >  api  >  rpc
    service, rpc, notifications  >  amqp
"""
# Every part may import these, and they each other; osc, which speaks HTTP, imports nothing else.
_SHARED = {"objects", "versions", "telemetry", "conf", "policies", "schemas", "exception",
           "context", "policy", "backoff", "bodies"}
# The module that a WSGI server loads starts a process, as the programs do.
_PROGRAMS = {"http/wsgi.py": "cmd"}


def _below():
    """Return what each part may import: a dict of part to set of parts."""
    edges = {}
    for line in _RULE.split("\n"):
        groups = [[part.strip() for part in group.split(",")] for group in line.split(">")]
        for uppers, lowers in itertools.pairwise(groups):
            for upper in uppers:
                edges.setdefault(upper, set()).update(lowers)

    def closure(part):
        return set().union(*({each} | closure(each) for each in edges.get(part, ())))

    parts = {*edges, *itertools.chain.from_iterable(edges.values())}
    return {**{part: closure(part) | _SHARED for part in parts},
            **dict.fromkeys(_SHARED, _SHARED), "osc": set()}


def _imports(path):
    """The parts of the project that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("placement_rpc"):
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else (alias.name for alias in node.names))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "placement_rpc" and len(parts) > 1:
                    yield parts[1]


class ImportGraphTest(base.TestCase):

    def test_nothing_points_back_up(self):
        below, wrong = _below(), []
        for path in _ROOT.rglob("*.py"):
            name = str(path.relative_to(_ROOT))
            part = path.relative_to(_ROOT).parts[0].removesuffix(".py")
            if part == "__init__":
                continue
            allowed = below[_PROGRAMS.get(name, part)] | {part, "__version__"}
            wrong += [f"{name} imports {each}" for each in _imports(path) if each not in allowed]
        self.assertEqual([], wrong)

    def test_the_rule_has_no_circle(self):
        self.assertEqual([], [part for part, lower in _below().items()
                              if part not in _SHARED and part in lower])

    def test_sql_is_written_in_db_alone(self):
        wrong = [str(path.relative_to(_ROOT)) for path in _ROOT.rglob("*.py")
                 if "sqlalchemy" in path.read_text()
                 and path.relative_to(_ROOT).parts[0] not in ("db", "cmd", "testing")]
        self.assertEqual([], wrong)


# The modules that a client's programs begin with. The last chooses the threading backend of
# oslo.service, which it can do only before the others are loaded.
_CLIENT = ("placement_rpc.cmd.main", "placement_rpc.api", "placement_rpc.notifications.listener")
# Modules and parts of the package that only a service loads.
_SERVICE_ONLY = ("sqlalchemy", "oslo_db", "oslo_policy", "alembic", "numpy", "falcon",
                 "jsonschema", "placement_rpc.accounting", "placement_rpc.candidates",
                 "placement_rpc.db", "placement_rpc.manager", "placement_rpc.http")


def _loaded_by(*names):
    """Return the names of the modules that a fresh interpreter loads for some imports."""
    program = ("import importlib, sys, warnings\n"
               "warnings.simplefilter('ignore')\n"
               "for name in sys.argv[1:]:\n"
               "    importlib.import_module(name)\n"
               "print(*sys.modules)\n")
    done = subprocess.run([sys.executable, "-c", program, *names], check=True,
                          capture_output=True, text=True)
    return done.stdout.split()


def _files(names):
    """Return the files of those of some modules that are the project's."""
    for name in names:
        path = _ROOT.parent.joinpath(*name.split("."))
        if name.partition(".")[0] == "placement_rpc":
            yield path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _third_party(path):
    """Return the top-level names of other projects' modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {
            "placement_rpc"}


def _requirements(name):
    """Return lines of setup.cfg: those of ``install_requires``, or of an extra."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(_ROOT.parent / "setup.cfg")
    lines = parser["options"].get(name) or parser["options.extras_require"][name]
    return lines.split("\n")[1:]


def _installed_with(lines):
    """Return the canonical names of the distributions that requirements install.

    :param lines: list of str, requirements as in setup.cfg
    """
    found, waiting = set(), [requirements.Requirement(line) for line in lines]
    while waiting:
        requirement = waiting.pop()
        key = utils.canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in found:
            continue
        found.add(key)
        try:
            needed = metadata.requires(requirement.name) or ()
        except metadata.PackageNotFoundError:
            # A dependency of another platform or of an optional feature.
            continue
        waiting += [each for each in map(requirements.Requirement, needed) if each.marker is None
                    or any(each.marker.evaluate({"extra": extra})
                           for extra in ("", *requirement.extras))]
    return {name for name, _extras in found}


class ClientTest(base.TestCase):
    """A client installs and loads what a client needs."""

    def test_it_loads_no_part_of_a_service(self):
        for name in _CLIENT:
            loaded = _loaded_by(name)
            self.assertIn(name, loaded)
            self.assertEqual([], [each for each in loaded if each.startswith(_SERVICE_ONLY)])

    def test_what_its_modules_import_is_a_requirement(self):
        """An indirect dependency may go with the next release of the library that brings it."""
        required = {utils.canonicalize_name(requirements.Requirement(line).name)
                    for line in _requirements("install_requires")}
        owners, missing = metadata.packages_distributions(), {}
        for path in _files(_loaded_by(*_CLIENT)):
            for name in _third_party(path):
                if not {utils.canonicalize_name(each) for each in owners[name]} & required:
                    missing[f"{path.relative_to(_ROOT)}: {name}"] = owners[name]
        self.assertEqual({}, missing)

    def test_it_loads_nothing_that_only_the_extra_installs(self):
        client = _installed_with(_requirements("install_requires"))
        service = _installed_with(_requirements("service")) - client
        self.assertIn("sqlalchemy", service)
        owners = metadata.packages_distributions()
        loaded = {each.partition(".")[0] for each in _loaded_by(*_CLIENT)}
        self.assertEqual([], [name for name in loaded for owner in owners.get(name, ())
                              if utils.canonicalize_name(owner) in service])


class ImportTest(base.TestCase):

    def test_what_programs_begin_with_can_be_the_first_to_be_imported(self):
        """A module must import each submodule that it uses, even if another one did."""
        names = [f"placement_rpc.{name}" for name in (
            "api", "notifications.listener", "testing.fixtures", "testing.servers",
            "cmd.conductor", "cmd.main", "cmd.manage")]
        program = (
            "import importlib, os, sys, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "for name in sys.argv[1:]:\n"
            "    if not os.fork():\n"
            "        importlib.import_module(name)\n"
            "        os._exit(0)\n"
            "    if os.wait()[1]:\n"
            "        print(name)\n")
        done = subprocess.run([sys.executable, "-c", program, *names], check=True,
                              capture_output=True, text=True)
        self.assertEqual("", done.stdout, done.stderr)
