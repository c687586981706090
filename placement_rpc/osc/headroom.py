# SPDX-License-Identifier: Apache-2.0
"""``resource-provider headroom``: how many more requests of a kind fit."""

from osc_lib.command import command

from placement_rpc.osc import client, formatting, request_groups, resource_types

_ALL = "all"


class ShowHeadroom(command.Lister):
    """Show how many more such requests have room.

    The first line is for the whole fleet. The number is exact unless the column at_most is
    greater: it is then between the two. The column trees has the number of trees in which a
    resource class binds first, because no other class allows fewer requests there.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        request_groups.add(parser)
        parser.add_argument("--by", choices=("aggregate", "trait", "class-limit"),
                            help="also show it for each aggregate or trait, or for each resource "
                                 "class how many would fit by this class alone, and how much of "
                                 "it is left when all have been placed")
        return parser

    def take_action(self, options):
        body = request_groups.body_of(options)
        if options.by:
            body["by"] = options.by
        found = client.document_of(self.app.client_manager.placement_rpc.send(
            "POST", resource_types.PROVIDER.path() + "?headroom", body))
        columns = ["name", "count", "at_most", "trees"]
        rows = [[_ALL, found["count"], found["at_most"], _of_limits(found["limits"])]]
        if options.by == "class-limit":
            columns.append("left")
            rows[0].append(None)
            rows += [[part["name"], part["count"], part["at_most"],
                      formatting.Mapping({part["name"]: part["trees"]}), part["left"]]
                     for part in found["parts"]]
        else:
            rows += [[part["name"], part["count"], part["at_most"],
                      formatting.Mapping(part["limits"])] for part in found["parts"]]
        return columns, formatting.without_none(options, [
            [*row[:3], _shown(options, row[3]), *row[4:]] for row in rows])


def _of_limits(limits):
    """Return a mapping of resource class to number of trees, over all groups."""
    found = formatting.Mapping()
    for limit in limits:
        name = limit["resource_class"]
        found[name] = max(found.get(name, 0), limit["trees"])
    return found


def _shown(options, trees):
    """Return the numbers of trees for a person, or as they are for a program."""
    if not formatting.is_for_people(options):
        return trees
    return ", ".join(f"{name}: {number}" for name, number in sorted(
        trees.items(), key=lambda each: (-each[1], each[0])) if number)
