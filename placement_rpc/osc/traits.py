# SPDX-License-Identifier: Apache-2.0
"""``resource-trait``, and the traits of a resource provider."""

from osc_lib.command import command

from placement_rpc.osc import names, resource_types, retry

#: The first minor version with traits.
SINCE = 6


class _OfTraits(names.OfNames):
    collection, what, since = "traits", "traits", SINCE


class ListTraits(_OfTraits, command.Lister):
    """List the traits, standard ones and custom ones"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--prefix", help="list only those that begin with this")
        parser.add_argument("--associated", action="store_true",
                            help="list only those that resource providers have")
        return parser

    def take_action(self, options):
        document, _ = self.client.read(self.path(), {
            "name": options.prefix and f"startswith:{options.prefix}",
            "associated": "true" if options.associated else None}, SINCE)
        return names.rows(document["traits"])


class ShowTrait(_OfTraits, names.OfOne, command.ShowOne):
    """Show whether a trait exists, and whether it is a custom one"""

    def take_action(self, options):
        self.client.send("GET", self.path(options.name), minor=SINCE)
        return names.FIELDS, names.values(options.name)


class CreateTrait(_OfTraits, names.OfNew, command.ShowOne):
    """Create a custom trait, unless it exists"""

    def take_action(self, options):
        self.client.send("PUT", self.path(options.name), minor=SINCE)
        return names.FIELDS, names.values(options.name)


class DeleteTraits(_OfTraits, names.Delete):
    """Delete custom traits, unless resource providers have them"""


class _OfProvider(_OfTraits):
    """Base of the commands about the traits of one provider."""

    @staticmethod
    def path_in(options):
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
        client, path = self.client, self.path_in(options)

        def write(document):
            present = set(document["traits"])
            wanted = changed(present)
            if wanted != present:
                client.send("PUT", path, {**document, "traits": sorted(wanted)}, minor=SINCE)
            return wanted

        return names.rows(retry.change(
            lambda: client.read(path, minor=SINCE)[0], write))


class ListProviderTraits(_OfProvider, command.Lister):
    """List the traits of a resource provider"""

    def take_action(self, options):
        return names.rows(self.client.read(self.path_in(options), minor=SINCE)[0]["traits"])


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
