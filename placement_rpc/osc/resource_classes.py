# SPDX-License-Identifier: Apache-2.0
"""``resource-class``: standard and custom classes (specification custom-resource-classes)."""

from osc_lib.command import command

from placement_rpc.osc import retry
from placement_rpc.osc.client import path_of

_FIELDS = ("name", "custom")
_PREFIX = "CUSTOM_"


def _path(*name):
    return path_of("resource_classes", *name)


def _values(name):
    return name, name.startswith(_PREFIX)


class _OfClasses:
    """Base of the commands: a client whose microversion has resource classes."""

    @property
    def client(self):
        client = self.app.client_manager.placement_rpc
        client.need(2, "resource classes")
        return client


class ListClasses(_OfClasses, command.Lister):
    """List the resource classes, standard ones and custom ones"""

    def take_action(self, options):
        document, _ = self.client.read(_path())
        return _FIELDS, [_values(each["name"]) for each in document["resource_classes"]]


class ShowClass(_OfClasses, command.ShowOne):
    """Show whether a resource class exists, and whether it is a custom one"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME")
        return parser

    def take_action(self, options):
        document, _ = self.client.read(_path(options.name))
        return _FIELDS, _values(document["name"])


class CreateClass(_OfClasses, command.ShowOne):
    """Create a custom resource class"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME",
                            help=f"its name, which must begin with {_PREFIX}")
        return parser

    def take_action(self, options):
        self.client.send("POST", _path(), {"name": options.name})
        return _FIELDS, _values(options.name)


class RenameClass(_OfClasses, command.ShowOne):
    """Rename a custom resource class, which keeps its inventories and allocations"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="the current name")
        parser.add_argument("new_name", metavar="NEW",
                            help=f"the new name, which must begin with {_PREFIX} too")
        return parser

    def take_action(self, options):
        self.client.send("PUT", _path(options.name), {"name": options.new_name})
        return _FIELDS, _values(options.new_name)


class DeleteClasses(_OfClasses, command.Command):
    """Delete custom resource classes, unless inventories use them"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", nargs="+", metavar="NAME")
        return parser

    def take_action(self, options):
        client = self.client
        retry.delete_each(options.name, lambda name: client.send("DELETE", _path(name)))
