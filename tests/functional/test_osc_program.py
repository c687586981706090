# SPDX-License-Identifier: Apache-2.0
"""The plugin inside ``openstack``: its commands, their help, and its imports."""

import contextlib
import io
import logging
import os
import subprocess
import sys
import warnings

import fixtures
from cliff import command
from openstackclient import shell
from openstackclient.common import clientmanager
from osc_lib.command import commandmanager

from tests import base

_GROUP = "openstack.placement_rpc.v1"
_BOTH = ("list", "show", "create", "delete", "update", "list inventory", "set inventory",
         "delete inventory", "add aggregate", "delete aggregate")
_COMMANDS = {*(f"resource-provider {each}" for each in (
    *_BOTH, "usage", "explain", "headroom", "tree", "list trait", "set trait", "add trait",
    "delete trait", "list usage")),
             *(f"resource-pool {each}" for each in _BOTH),
             *(f"allocation {each}" for each in ("show", "set", "delete")),
             *(f"resource-class {each}"
               for each in ("list", "show", "create", "rename", "delete")),
             *(f"resource-trait {each}" for each in ("list", "show", "create", "delete")),
             "event list", "event watch", "resource-consumer list"}


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self):
        return True


class Openstack(fixtures.Fixture):
    """Runs ``openstack`` in this process, against an endpoint without keystone.

    :param url: str, the endpoint
    """

    def __init__(self, url="http://127.0.0.1:1"):
        super().__init__()
        self._url = url

    def _setUp(self):
        for name in list(os.environ):
            if name.startswith("OS_"):
                self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.EnvironmentVariable("XDG_CONFIG_HOME", "/nonexistent"))
        self.useFixture(fixtures.MonkeyPatch("sys.stdin", io.StringIO()))

    def __call__(self, *arguments, stdout=None, auth=("--os-auth-type", "none")):
        """Run a command.

        :param stdout: what takes its output
        :param auth: the authentication options
        :returns: (int, str, str): the exit code and what it printed
        """
        out, err = stdout or io.StringIO(), io.StringIO()
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        # A client is made once in a process, and here are several programs in one.
        for name in ("placement_rpc", "placement"):
            vars(clientmanager.clientmanager.ClientManager)[name]._handle = None
        try:
            with (warnings.catch_warnings(), contextlib.redirect_stdout(out),
                  contextlib.redirect_stderr(err)):
                code = self._run([*auth, *self._endpoint(auth), *arguments])
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
        return code, out.getvalue(), err.getvalue()

    def _endpoint(self, auth):
        """Nothing where keystone's catalog has it."""
        return [] if "--os-auth-url" in auth else ["--os-endpoint", self._url]

    @staticmethod
    def _run(arguments):
        try:
            return shell.OpenStackShell().run(arguments)
        except SystemExit as end:
            return end.code


class CommandsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.openstack = self.useFixture(Openstack())

    def test_the_commands_of_the_specifications_are_there(self):
        names = commandmanager.CommandManager(_GROUP).get_command_names(_GROUP)
        self.assertEqual(_COMMANDS, set(names))

    def test_no_command_hides_that_of_another_plugin(self):
        manager = commandmanager.CommandManager("openstack.cli")
        with self.log_of("cliff.commandmanager") as log:
            for group in ("openstack.placement.v1", _GROUP, "openstack.common",
                          "openstack.compute.v2", "openstack.network.v2"):
                manager.load_commands(group)
        self.assertEqual("", log.output)
        for words, module in ((["resource", "provider", "list"], "osc_placement"),
                              (["resource", "class", "show"], "osc_placement"),
                              (["resource-provider", "list"], "placement_rpc"),
                              (["resource-class", "show"], "placement_rpc")):
            found, _, left = manager.find_command(words)
            self.assertEqual((module, []), (found.__module__.partition(".")[0], left))

    @contextlib.contextmanager
    def log_of(self, name):
        with fixtures.FakeLogger(name, level=logging.WARNING) as log:
            yield log

    def test_each_has_a_help(self):
        manager = commandmanager.CommandManager(_GROUP)
        for name in _COMMANDS:
            found, _, _ = manager.find_command(name.split())
            self.assertTrue(issubclass(found, command.Command))
            parser = found(None, None).get_parser(f"openstack {name}")
            self.assertIn(f"openstack {name}", parser.format_help())
            self.assertTrue(parser.description)
            for action in parser._actions:
                self.assertTrue(action.help or action.metavar, (name, action))

    def test_help_and_completion(self):
        code, out, _ = self.openstack("resource-provider", "set", "inventory", "--help")
        self.assertEqual(0, code)
        self.assertIn("--allocation-ratio", out)
        code, out, _ = self.openstack("complete")
        self.assertEqual(0, code)
        self.assertIn("resource-provider", out)

    def test_an_endpoint_that_does_not_answer_is_one_line_of_error(self):
        code, out, err = self.openstack("resource-provider", "list")
        self.assertEqual((1, ""), (code, out))
        self.assertIn("http://127.0.0.1:1/", err)
        self.assertEqual(1, len(err.splitlines()), err)


class WeightTest(base.TestCase):

    def test_a_client_machine_needs_neither_bus_nor_database(self):
        program = (
            "import importlib, pkgutil, sys\n"
            "import placement_rpc.osc\n"
            "for each in pkgutil.iter_modules(placement_rpc.osc.__path__):\n"
            "    importlib.import_module('placement_rpc.osc.' + each.name)\n"
            "print(*(name for name in ('oslo_messaging', 'sqlalchemy', 'kombu', 'oslo_db',\n"
            "                          'oslo_versionedobjects', 'falcon')\n"
            "        if name in sys.modules))\n")
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True,
                              capture_output=True, text=True)
        self.assertEqual("", done.stdout.strip(), done.stderr)
