# SPDX-License-Identifier: Apache-2.0
"""``resource-class``: standard and custom classes (specification custom-resource-classes)."""

from osc_lib.command import command

from placement_rpc.osc import names


class _OfClasses(names.OfNames):
    collection, what, since = "resource_classes", "resource classes", 2


class ListClasses(_OfClasses, command.Lister):
    """List the resource classes, standard ones and custom ones"""

    def take_action(self, options):
        document, _ = self.client.read(self.path())
        return names.FIELDS, [names.values(each["name"])
                              for each in document["resource_classes"]]


class ShowClass(_OfClasses, names.OfOne, command.ShowOne):
    """Show whether a resource class exists, and whether it is a custom one"""

    def take_action(self, options):
        document, _ = self.client.read(self.path(options.name))
        return names.FIELDS, names.values(document["name"])


class CreateClass(_OfClasses, names.OfNew, command.ShowOne):
    """Create a custom resource class"""

    def take_action(self, options):
        self.client.send("POST", self.path(), {"name": options.name})
        return names.FIELDS, names.values(options.name)


class RenameClass(_OfClasses, command.ShowOne):
    """Rename a custom resource class, which keeps its inventories and allocations"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="the current name")
        parser.add_argument("new_name", metavar="NEW",
                            help=f"the new name, which must begin with {names.PREFIX} too")
        return parser

    def take_action(self, options):
        self.client.send("PUT", self.path(options.name), {"name": options.new_name})
        return names.FIELDS, names.values(options.new_name)


class DeleteClasses(_OfClasses, names.Delete):
    """Delete custom resource classes, unless inventories use them"""
