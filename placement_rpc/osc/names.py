# SPDX-License-Identifier: Apache-2.0
"""Base of the commands about resources that are a name only: resource classes and traits."""

from osc_lib.command import command

from placement_rpc.osc import retry
from placement_rpc.osc.client import path_of

PREFIX = "CUSTOM_"
#: The columns of a list, and the fields of one of them.
FIELDS = ("name", "custom")


def values(name):
    """Return the values of :data:`FIELDS`."""
    return name, name.startswith(PREFIX)


def rows(names):
    """Return a sorted list, for cliff: the columns, and a list of tuples of their values."""
    return FIELDS, [values(name) for name in sorted(names)]


class OfNames:
    """Base of all the commands.

    :cvar collection: str, the address of the list
    :cvar what: str, what they are, for an error
    :cvar since: int, the first minor version that has them
    """

    collection = what = ""
    since = 0

    @property
    def client(self):
        client = self.app.client_manager.placement_rpc
        client.need(self.since, self.what)
        return client

    def path(self, *name):
        """Return the address of the list, or of one of them."""
        return path_of(self.collection, *name)


class OfOne(OfNames):
    """Base of the commands about one, whose name is the first argument."""

    help = None

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help=self.help)
        return parser


class OfNew(OfOne):
    """Base of the commands that create one."""

    help = f"its name, which must begin with {PREFIX}"


class Delete(OfNames, command.Command):
    """Base of the commands that delete some."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", nargs="+", metavar="NAME")
        return parser

    def take_action(self, options):
        client = self.client
        retry.delete_each(options.name, lambda name: client.send(
            "DELETE", self.path(name), minor=self.since))
