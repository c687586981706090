# SPDX-License-Identifier: Apache-2.0
"""``openstack`` within this process."""

import contextlib
import io
import json
import logging
import warnings

import fixtures
from openstackclient import shell
from osc_lib import clientmanager
from osc_placement import plugin


class CommandFailed(Exception):
    """A command ended with an error; the text is its message."""


class _Logging(fixtures.Fixture):
    """Removes the handlers that the command adds to the process's logging."""

    def _setUp(self):
        root = logging.getLogger()
        self.addCleanup(setattr, root, "handlers", root.handlers[:])
        self.addCleanup(root.setLevel, root.level)


class OpenStack(fixtures.Fixture):
    """Runs commands of osc-placement against an address.

    :param address: str
    :param version: str, microversion
    """

    def __init__(self, address, version):
        super().__init__()
        self._options = ["--os-auth-type", "admin_token", "--os-token", "admin", "--os-endpoint",
                         address, "--os-placement-api-version", version]

    def _setUp(self):
        self.useFixture(_Logging())
        home = self.useFixture(fixtures.TempDir()).path
        # Without the configuration of the user who runs the tests.
        self.useFixture(fixtures.EnvironmentVariable("HOME", home))
        # The program keeps its client, and with it address and version, for the whole process.
        manager = clientmanager.ClientManager
        self.addCleanup(setattr, manager, "placement", vars(manager)["placement"])
        manager.placement = clientmanager.ClientCache(plugin.make_client)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)

    def run(self, command, *arguments):
        """Run one that shows nothing; returns what it shows as text.

        :param command: str, words with blanks between them
        :raises CommandFailed:
        """
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = shell.OpenStackShell().run([*self._options, *command.split(), *arguments])
            except SystemExit as end:  # of arguments that it does not understand
                status = end.code
        if status:
            raise CommandFailed(err.getvalue())
        return out.getvalue()

    def show(self, command, *arguments):
        """Run one that shows a table; returns what it shows, decoded from JSON."""
        return json.loads(self.run(command, *arguments, "--format", "json"))
