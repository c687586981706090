# SPDX-License-Identifier: Apache-2.0
"""``resource-provider tree``: providers with those below them, their traits and what is used."""

from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from placement_rpc.osc import allocations, arguments, resource_types, traits

_SINCE = 14
_BRANCH, _LAST, _LINE, _GAP = "├─ ", "└─ ", "│  ", "   "
_PLAIN = {_BRANCH: "|- ", _LAST: "`- ", _LINE: "|  ", _GAP: _GAP}


class ShowTree(command.Lister):
    """Draw the tree of a resource provider with the traits of each, or all trees.

    The table draws the tree in the names; other formats have the parent and the root of each
    provider instead.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("uuid", nargs="?", type=arguments.uuid, metavar="UUID",
                            help="any resource provider of the tree (default: all trees)")
        parser.add_argument("--long", action="store_true",
                            help="show used amounts and inventories too, by two more requests for "
                                 "each resource provider")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        client.need(_SINCE, "trees")
        document, _ = client.read(
            resource_types.PROVIDER.path(), {"in_tree": options.uuid}, _SINCE)
        found = document["resource_providers"]
        if options.uuid and not found:
            raise exceptions.CommandError(f"resource provider {options.uuid} does not exist")
        columns = ["name", "uuid"]
        if options.formatter != "table":
            columns += ["generation", "parent_provider_uuid", "root_provider_uuid"]
        encoding = getattr(self.app.stdout, "encoding", None)
        rows = [_row(client, [
            *([drawable(lines, encoding) + each["name"]] if options.formatter == "table"
              else [each["name"]]), *(each[name] for name in columns[1:])], each["uuid"],
            options.long) for each, lines in in_order(found)]
        return [*columns, "traits", *(["used", "total"] if options.long else [])], rows


def in_order(providers):
    """Yield each provider after its parent, siblings by name.

    :param providers: list of dicts of uuid, name, parent_provider_uuid
    :returns: iterator of tuples of the provider and the lines before its name
    """
    known = {each["uuid"] for each in providers}
    below = {}
    for each in sorted(providers, key=lambda each: each["name"]):
        parent = each["parent_provider_uuid"]
        # A parent that was deleted since, or created later, is not in the list.
        below.setdefault(parent if parent in known else None, []).append(each)
    waiting = [(each, "", "") for each in reversed(below.get(None, []))]
    while waiting:
        provider, indent, line = waiting.pop()
        yield provider, indent + line
        indent += {"": "", _BRANCH: _LINE, _LAST: _GAP}[line]
        children = below.get(provider["uuid"], [])
        waiting += [(each, indent, _LAST if each is children[-1] else _BRANCH)
                    for each in reversed(children)]


def drawable(lines, encoding):
    """Return lines with other characters if the output cannot have these.

    :param encoding: str, of the output; None for text in memory
    """
    try:
        lines.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        for piece, plain in _PLAIN.items():
            lines = lines.replace(piece, plain)
    return lines


def _row(client, values, uuid, is_long):
    """Return a row of values, and of what other requests tell of the provider."""
    def read(name, minor=0):
        return client.read(resource_types.PROVIDER.path(uuid, name), minor=minor)[0][name]

    row = [*values, format_columns.ListColumn(sorted(read("traits", traits.SINCE)))]
    if is_long:
        row += [allocations.Amounts(read("usages")), allocations.Amounts({
            name: each["total"] for name, each in read("inventories").items()})]
    return row
