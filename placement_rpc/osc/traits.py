# SPDX-License-Identifier: Apache-2.0
"""``resource-trait``, and the traits of a resource provider."""

from osc_lib.command import command

from placement_rpc.osc import resource_types, retry
from placement_rpc.osc.client import path_of

_PREFIX = "CUSTOM_"
_FIELDS = ("name", "custom")
#: The first minor version with traits.
SINCE = 6


def _path(*name):
    return path_of("traits", *name)


def _values(name):
    return name, name.startswith(_PREFIX)


class _OfTraits:
    """Base of the commands: a client whose microversion has traits."""

    @property
    def client(self):
        client = self.app.client_manager.placement_rpc
        client.need(SINCE, "traits")
        return client


class ListTraits(_OfTraits, command.Lister):
    """List the traits, standard ones and custom ones"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--prefix", help="list only those that begin with this")
        parser.add_argument("--associated", action="store_true",
                            help="list only those that resource providers have")
        return parser

    def take_action(self, options):
        document, _ = self.client.read(_path(), {
            "name": options.prefix and f"startswith:{options.prefix}",
            "associated": "true" if options.associated else None}, SINCE)
        return _FIELDS, [_values(name) for name in sorted(document["traits"])]


class ShowTrait(_OfTraits, command.ShowOne):
    """Show whether a trait exists, and whether it is a custom one"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME")
        return parser

    def take_action(self, options):
        self.client.send("GET", _path(options.name), minor=SINCE)
        return _FIELDS, _values(options.name)


class CreateTrait(_OfTraits, command.ShowOne):
    """Create a custom trait, unless it exists"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME",
                            help=f"its name, which must begin with {_PREFIX}")
        return parser

    def take_action(self, options):
        self.client.send("PUT", _path(options.name), minor=SINCE)
        return _FIELDS, _values(options.name)


class DeleteTraits(_OfTraits, command.Command):
    """Delete custom traits, unless resource providers have them"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", nargs="+", metavar="NAME")
        return parser

    def take_action(self, options):
        client = self.client
        retry.delete_each(
            options.name, lambda name: client.send("DELETE", _path(name), minor=SINCE))


class _OfProvider(_OfTraits):
    """Base of the commands about the traits of one provider."""

    @staticmethod
    def path(options):
        return resource_types.PROVIDER.path(options.uuid, "traits")

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("uuid", metavar="UUID", help="the resource provider")
        return parser

    def change(self, options, changed):
        """Change the traits of the provider.

        :param changed: callable that takes the set of names that it has and returns the new one
        :returns: columns and rows of the result, for cliff
        """
        client, path = self.client, self.path(options)

        def write(document):
            present = set(document["traits"])
            wanted = changed(present)
            if wanted != present:
                client.send("PUT", path, {**document, "traits": sorted(wanted)}, minor=SINCE)
            return wanted

        return _rows(retry.change(
            lambda: client.read(path, minor=SINCE)[0], write))


def _rows(names):
    return _FIELDS, [_values(name) for name in sorted(names)]


class ListProviderTraits(_OfProvider, command.Lister):
    """List the traits of a resource provider"""

    def take_action(self, options):
        return _rows(self.client.read(self.path(options), minor=SINCE)[0]["traits"])


class SetProviderTraits(_OfProvider, command.Lister):
    """Replace the traits of a resource provider"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("trait", nargs="*", metavar="TRAIT",
                            help="its traits from now on; none to remove all")
        return parser

    def take_action(self, options):
        return self.change(options, lambda _: set(options.trait))


class AddProviderTraits(_OfProvider, command.Lister):
    """Add traits to those of a resource provider"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("trait", nargs="+", metavar="TRAIT")
        return parser

    def take_action(self, options):
        return self.change(options, lambda present: present | set(options.trait))


class DeleteProviderTraits(_OfProvider, command.Lister):
    """Remove traits from those of a resource provider"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("trait", nargs="+", metavar="TRAIT")
        return parser

    def take_action(self, options):
        return self.change(options, lambda present: present - set(options.trait))
