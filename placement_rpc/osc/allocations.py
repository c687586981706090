# SPDX-License-Identifier: Apache-2.0
"""``allocation show``, ``allocation set`` and ``allocation delete``."""

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from placement_rpc.osc import arguments, formatting, retry
from placement_rpc.osc.client import path_of

# The first minor version whose requests name the owner of the allocations.
_OWNERS = 8


class Amounts(columns.FormattableColumn):
    """Amounts by class: CLASS=AMOUNT pairs for a person, a mapping for a program."""

    def human_readable(self):
        return ",".join(f"{name}={amount}" for name, amount in sorted(self._value.items()))

    def machine_readable(self):
        return formatting.Mapping(self._value)


def _path(consumer):
    return path_of("allocations", consumer)


def _allocations(client, consumer):
    """Return the allocations of a consumer, a row for each provider."""
    document, _ = client.read(_path(consumer))
    return ("resource_provider", "generation", "resources"), [
        (uuid, each["generation"], Amounts(each["resources"]))
        for uuid, each in sorted(document["allocations"].items())]


class ShowAllocation(command.Lister):
    """Show the allocations of a consumer by resource provider"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("consumer", metavar="CONSUMER", help="uuid of the consumer")
        return parser

    def take_action(self, options):
        return _allocations(self.app.client_manager.placement_rpc, options.consumer)


class SetAllocation(command.Lister):
    """Replace the allocations of a consumer.

    Either all the resources are claimed, or nothing is changed. Without --project and --user, a
    consumer that has allocations keeps its project and user, and another one gets those that the
    service is configured with.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("consumer", metavar="CONSUMER", help="uuid of the consumer")
        parser.add_argument("--allocation", type=arguments.allocation, action="append",
                            required=True, metavar="rp=UUID,CLASS=AMOUNT[,CLASS=AMOUNT]",
                            help="resources to claim from a resource provider; repeat it for "
                                 "further providers")
        parser.add_argument("--project", metavar="ID",
                            help="project of the consumer; needs --user")
        parser.add_argument("--user", metavar="ID", help="user of the consumer; needs --project")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        owner = _owner(options)
        if owner:
            client.need(_OWNERS, "--project and --user")
        wanted = arguments.without_repeats(options.allocation, "resource provider")
        client.send("PUT", _path(options.consumer), {"allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": resources}
            for uuid, resources in wanted.items()], **owner}, minor=_OWNERS if owner else 0)
        return _allocations(client, options.consumer)


def _owner(options):
    """Return the project and the user for the body of a request; nothing if none is given.

    :raises osc_lib.exceptions.CommandError: if only one is given: a request names both
    """
    if (options.project is None) != (options.user is None):
        raise exceptions.CommandError("--project and --user are given together, or neither is")
    return {} if options.project is None else {
        "project_id": options.project, "user_id": options.user}


class DeleteAllocations(command.Command):
    """Delete all allocations of consumers"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("consumer", nargs="+", metavar="CONSUMER",
                            help="uuid of a consumer")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        retry.delete_each(
            options.consumer, lambda consumer: client.send("DELETE", _path(consumer)))
