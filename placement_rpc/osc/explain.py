# SPDX-License-Identifier: Apache-2.0
"""``resource-provider explain``: the providers with room for a request, and why others lack it."""

from osc_lib.command import command

from placement_rpc.osc import (
    arguments,
    client,
    formatting,
    provider_names,
    request_groups,
    resource_types,
)

_PAGE = 100
_OF_REASON = ("rule", "resource_class", "requested", "allowed", "by")
_OF_GROUPS = ("group", "provider_uuid")
_OF_LONG = ("generation", "detail")
_OF_STEP = ("rule", "group", "resource_class", "detail", "providers", "trees")


class ExplainRequest(command.Lister):
    """Show which resource providers have room for a request, and why others do not.

    The output has a line for each provider that fits, and for other providers a line for each
    rule that the request breaks, with the requested and the allowed amount and their difference.
    With --resource and --member-of only, each provider is tested by itself. With any other option
    of a request, trees of providers are, each under its root. A table has names of providers; -c
    uuid, --long and the other formats have the uuids.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        request_groups.add(parser)
        parser.add_argument("--limit", type=arguments.positive, metavar="N",
                            help="show only the first N providers or trees (default: all)")
        parser.add_argument("--long", action="store_true",
                            help="show generations, and a sentence for every reason")
        parser.add_argument("--funnel", action="store_true",
                            help="show in place of the providers how many of them and how many "
                                 "trees each rule leaves of all")
        return parser

    def take_action(self, options):
        service = self.app.client_manager.placement_rpc
        request = request_groups.flat_body_of(options)
        is_flat = request is not None
        if not is_flat:
            request = request_groups.body_of(options)
        columns, lines = (_steps if options.funnel else _verdicts)(
            service, request, options, is_flat)
        rows = formatting.without_none(
            options, [[line.get(column) for column in columns] for line in lines])
        return columns, formatting.fitted(columns, rows) if _is_overview(options) else rows


def _is_overview(options):
    """Return whether the output is a table whose columns the user did not choose."""
    return options.formatter == "table" and not (options.long or options.columns)


def _steps(service, request, _options, _is_flat):
    """Return the columns of a funnel, and its lines, dicts by column."""
    return _OF_STEP, _page(service, {**request, "limit": 1}).get("funnel") or []


def _verdicts(service, request, options, is_flat):
    """Return the columns of the providers with their reasons, and the lines, dicts by column."""
    is_overview = _is_overview(options)
    lines = [line for each in _providers(service, request, options.limit)
             for line in _lines(each)]
    columns = ["name", "fits", *(() if is_flat else _OF_GROUPS), *_OF_REASON]
    if not is_overview:
        return ["uuid", *columns, *(_OF_LONG if options.long else ())], lines
    names = provider_names.of_providers(
        service, {line["provider_uuid"] for line in lines if line.get("provider_uuid")})
    return ["provider" if each == "provider_uuid" else each for each in columns], [
        {**line, "provider": names.get(uuid := line.get("provider_uuid"), uuid)}
        for line in lines]


def _page(service, request):
    """Return the document that answers a request."""
    return client.document_of(
        service.send("POST", resource_types.PROVIDER.path() + "?explain", request))


def _providers(service, request, limit):
    """Yield the providers with their reasons, reading page by page."""
    left = limit
    marker = None
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        found = _page(service, {
            **request, "limit": size, **({"marker": marker} if marker else {})},
        )["resource_providers"]
        yield from found
        if len(found) < size:
            return
        marker = found[-1]["uuid"]
        left = left and left - size


def _lines(provider):
    """Return the lines of a provider, dicts by column: one, or one for each broken rule."""
    return [{**provider, **reason} for reason in provider["reasons"] or [{}]]
