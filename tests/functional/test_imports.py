# SPDX-License-Identifier: Apache-2.0
"""What a fresh interpreter loads: a client loads no part of a service."""

import ast
import pathlib
import subprocess
import sys
from importlib import metadata

from packaging import requirements, utils

import placement_rpc
from placement_rpc.cmd import parser_tree
from tests import base, declared, sources

_ROOT = pathlib.Path(placement_rpc.__file__).parent

# The modules that a client's programs begin with. The last chooses the threading backend of
# oslo.service, which it can do only before the others are loaded.
_CLIENT = ("placement_rpc.cmd.main", "placement_rpc.cmd.calls", "placement_rpc.cmd.event_stream",
           "placement_rpc.api", "placement_rpc.notifications.listener")
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
    for node in ast.walk(sources.parsed(path)):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {
            "placement_rpc"}


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
                    for line in declared.lines("install_requires")}
        # Imported by functions that are called only if traces are switched on.
        traced = {"telemetry/tracing.py": declared.installed_with(declared.lines("tracing"))}
        owners, missing = metadata.packages_distributions(), {}
        for path in _files(_loaded_by(*_CLIENT)):
            allowed = required | traced.get(str(path.relative_to(_ROOT)), set())
            for name in _third_party(path):
                if not {utils.canonicalize_name(each) for each in owners[name]} & allowed:
                    missing[f"{path.relative_to(_ROOT)}: {name}"] = owners[name]
        self.assertEqual({}, missing)

    def test_it_loads_nothing_that_only_the_extra_installs(self):
        client = declared.installed_with(declared.lines("install_requires"))
        service = declared.installed_with(declared.lines("service")) - client
        self.assertIn("sqlalchemy", service)
        owners = metadata.packages_distributions()
        loaded = {each.partition(".")[0] for each in _loaded_by(*_CLIENT)}
        self.assertEqual([], [name for name in loaded for owner in owners.get(name, ())
                              if utils.canonicalize_name(owner) in service])


# What takes long to load, and nothing of which is needed to print help.
_SLOW = ("oslo_messaging", "oslo_versionedobjects", "oslo_config", "oslo_log", "sqlalchemy",
         "kombu", "rich", "eventlet", "dns", "placement_rpc.objects", "placement_rpc.db")
_PROGRAM = """
import importlib, sys
try:
    importlib.import_module("placement_rpc.cmd." + sys.argv[1]).main(sys.argv[2:])
except SystemExit as end:
    assert not end.code, end
print(*sys.modules, file=sys.stderr)
"""


class ProgramTest(base.TestCase):
    """Loading modules is most of the time of a short command."""

    def loaded_by(self, *arguments):
        """Return what a program prints, and the names of the modules that it loads.

        :param arguments: the program's module and its arguments
        """
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", _PROGRAM, *arguments],
                              check=True, capture_output=True, text=True)
        return done.stdout, done.stderr.split()

    def assert_light(self, *arguments):
        shown, loaded = self.loaded_by(*arguments)
        self.assertTrue(shown)
        self.assertIn("placement_rpc.cmd.errors", loaded)
        self.assertEqual([], [each for each in loaded if each.startswith(_SLOW)], arguments)

    def test_help_and_version_load_no_library(self):
        for program, parser in parser_tree.PROGRAMS.items():
            module = program.removeprefix("placement-rpc-").replace("placement-rpc", "main")
            self.assert_light(module, "--version")
            # Any command's help is made from the same parser.
            for command in list(parser_tree.commands(parser()))[:-3:-1]:
                self.assert_light(module, *command.names, "--help")

    def test_a_conductor_loads_nothing_of_web_applications(self):
        loaded = _loaded_by("placement_rpc.cmd.conductor_process")
        self.assertIn("placement_rpc.service.conductor", loaded)
        self.assertEqual([], [each for each in loaded if each.startswith(
            ("oslo_middleware", "jinja2", "webob"))])

    def test_a_call_loads_no_resolver_and_no_stream(self):
        """The library of green threads, which this program does not use, brings the resolver."""
        loaded = _loaded_by("placement_rpc.cmd.calls")
        self.assertIn("oslo_messaging", loaded)
        self.assertEqual([], [each for each in loaded if each in (
            "dns", "rich.progress", "placement_rpc.notifications.stream")])

    def test_what_reads_a_store_loads_no_migrations(self):
        """Whether the schema is the right one is read without Alembic."""
        for name in ("placement_rpc.cmd.local", "placement_rpc.cmd.manage_outbox",
                     "placement_rpc.cmd.manage_command", "placement_rpc.service.conductor"):
            loaded = _loaded_by(name)
            self.assertIn("sqlalchemy", loaded)
            self.assertEqual([], [each for each in loaded if each.startswith("alembic")], name)


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
