# SPDX-License-Identifier: Apache-2.0
"""``allocation show``, ``allocation set`` and ``allocation delete``."""

from cliff import columns
from osc_lib.command import command

from placement_rpc.osc import arguments, formatting, retry
from placement_rpc.osc.client import path_of


class Amounts(columns.FormattableColumn):
    """Amounts by class: as they are typed for a person, a mapping for a program."""

    def human_readable(self):
        return ",".join(f"{name}={amount}" for name, amount in sorted(self._value.items()))

    def machine_readable(self):
        return formatting.Mapping(self._value)


def _path(consumer):
    return path_of("allocations", consumer)


def _held(client, consumer):
    """What a consumer holds, a row for each provider; none where it holds nothing."""
    document, _ = client.read(_path(consumer))
    return ("resource_provider", "generation", "resources"), [
        (uuid, each["generation"], Amounts(each["resources"]))
        for uuid, each in sorted(document["allocations"].items())]


class ShowAllocation(command.Lister):
    """Show what a consumer holds of which resource provider"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("consumer", metavar="CONSUMER", help="uuid of the consumer")
        return parser

    def take_action(self, options):
        return _held(self.app.client_manager.placement_rpc, options.consumer)


class SetAllocation(command.Lister):
    """Claim resources for a consumer, in place of all that it held before.

    Either everything is claimed, or nothing is changed.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("consumer", metavar="CONSUMER", help="uuid of the consumer")
        parser.add_argument("--allocation", type=arguments.allocation, action="append",
                            required=True, metavar="rp=UUID,CLASS=AMOUNT[,CLASS=AMOUNT]",
                            help="what to claim from a resource provider; may be repeated, for "
                                 "others")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        wanted = arguments.without_repeats(options.allocation, "resource provider")
        client.send("PUT", _path(options.consumer), {"allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": resources}
            for uuid, resources in wanted.items()]})
        return _held(client, options.consumer)


class DeleteAllocations(command.Command):
    """Give back all that consumers hold"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("consumer", nargs="+", metavar="CONSUMER",
                            help="uuid of a consumer")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        retry.delete_each(
            options.consumer, lambda consumer: client.send("DELETE", _path(consumer)))
