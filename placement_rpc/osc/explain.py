# SPDX-License-Identifier: Apache-2.0
"""``resource-provider explain``: the providers with room for a request, and why others lack it."""

from osc_lib.command import command

from placement_rpc.osc import arguments, client, formatting, resource_types

_PAGE = 100
_OF_REASON = ("rule", "resource_class", "requested", "allowed", "by")
_OF_LONG = ("generation", "detail")


class ExplainRequest(command.Lister):
    """Show which resource providers have room for a request, and why others do not.

    The output has a line for each provider that fits, and for other providers a line for each
    rule that the request breaks, with the requested and the allowed amount and their difference.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        arguments.add_resource(parser, required=True,
                               help="requested amount of a resource class; can be repeated")
        parser.add_argument("--member-of", type=arguments.aggregates, action="append",
                            metavar="AGG[,AGG]",
                            help="require that the provider is in one of these aggregates; can "
                                 "be repeated, and the provider must be in one of each")
        parser.add_argument("--limit", type=arguments.positive, metavar="N",
                            help="show only the first N providers (default: all)")
        parser.add_argument("--long", action="store_true",
                            help="show generations, and a sentence for every reason")
        return parser

    def take_action(self, options):
        request = {"resources": arguments.resources_of(options)}
        if options.member_of:
            request["member_of"] = options.member_of
        columns = ["uuid", "name", "fits", *_OF_REASON]
        if options.long:
            columns += _OF_LONG
        found = _providers(self.app.client_manager.placement_rpc, request, options.limit)
        return columns, formatting.without_none(options, [
            [line.get(column) for column in columns] for each in found for line in _lines(each)])


def _providers(service, request, limit):
    """Yield the providers with their reasons, reading page by page."""
    left = limit
    marker = None
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = {**request, "limit": size, **({"marker": marker} if marker else {})}
        document = client.document_of(
            service.send("POST", resource_types.PROVIDER.path() + "?explain", page))
        found = document["resource_providers"]
        yield from found
        if len(found) < size:
            return
        marker = found[-1]["uuid"]
        left = left and left - size


def _lines(provider):
    """Return the lines of a provider, dicts by column: one, or one for each broken rule."""
    return [{**provider, **reason} for reason in provider["reasons"] or [{}]]
