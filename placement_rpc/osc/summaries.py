# SPDX-License-Identifier: Apache-2.0
"""``resource-consumer list``, and ``resource-provider list usage``: lists in pages."""

from osc_lib.command import command

from placement_rpc.osc import arguments, client, formatting
from placement_rpc.osc.allocations import Amounts

# The most that the service answers at once.
_PAGE = 1000


def _all(service, path, key, limit, query):
    """Yield the entries of all pages.

    :param service: :class:`placement_rpc.osc.client.Client`
    :param key: str, the key of the list in a page
    :param limit: int, how many at most; None for all
    """
    left, marker = limit, None
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = client.document_of(service.send(
            "GET", path, query={**query, "limit": size, "marker": marker}))
        yield from page[key]
        marker = page["next"]
        if marker is None:
            return
        left = left and left - len(page[key])


class _Pages(command.Lister):
    """Base of the commands that read pages."""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--limit", type=arguments.positive, metavar="N",
                            help="list so many at most (default: all)")
        return parser


class ListConsumers(_Pages):
    """List consumers with their allocations.

    There is a line for each provider from which a consumer has allocations.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", metavar="ID", help="list only those of this project")
        parser.add_argument("--user", metavar="ID", help="list only those of this user")
        parser.add_argument("--resource-provider", type=arguments.uuid, metavar="UUID",
                            help="list only those that have allocations from this provider")
        return parser

    def take_action(self, options):
        found = _all(self.app.client_manager.placement_rpc, "/consumers", "consumers",
                     options.limit, {
                         "project_id": options.project, "user_id": options.user,
                         "resource_provider": options.resource_provider})
        columns = ("uuid", "consumer_type", "project_id", "user_id", "generation",
                   "resource_provider", "resources")
        return columns, formatting.without_none(options, [
            [*(each[name] for name in columns[:5]), provider, Amounts(resources)]
            for each in found for provider, resources in sorted(each["allocations"].items())])


class ListAllUsages(_Pages):
    """Show how much of each inventory of all resource providers is used"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--resource-class", metavar="CLASS",
                            help="show only inventories of this class")
        return parser

    def take_action(self, options):
        found = _all(self.app.client_manager.placement_rpc, "/provider_summaries",
                     "provider_summaries", options.limit, {})
        rows = []
        for each in found:
            for name, its in sorted(each["inventories"].items()):
                if options.resource_class in (None, name):
                    capacity = its["capacity"]
                    share = round(100 * its["used"] / capacity, 1) if capacity else None
                    rows.append([each["uuid"], each["name"], name, its["used"], capacity, share])
        return ("uuid", "name", "resource_class", "used", "capacity", "percent"), (
            formatting.without_none(options, rows))
