# SPDX-License-Identifier: Apache-2.0
"""``list``, ``show``, ``create``, ``update`` and ``delete`` of providers and pools."""

from osc_lib import exceptions
from osc_lib.cli import format_columns
from osc_lib.command import command

from placement_rpc.osc import arguments, membership, resource_types, retry
from placement_rpc.osc import client as placement_client


def shown(client, kind, uuid):
    """Return a provider as the commands show it.

    :param client: :class:`placement_rpc.osc.client.Client`
    :param kind: :class:`placement_rpc.osc.resource_types.Kind`
    :param uuid: str
    :returns: tuple of names and values for cliff, with aggregates if the microversion has them
    :raises placement_rpc.osc.client.Refused: if the provider does not exist
    """
    provider, _ = client.read(kind.path(uuid))
    names = list(kind.fields)
    values = [provider[name] for name in names]
    if client.microversion >= (1, 1):
        document, _ = client.read(kind.path(uuid, "aggregates"))
        names.append("aggregates")
        values.append(format_columns.ListColumn(document["aggregates"]))
    return names, values


class ListProviders(command.Lister):
    """List resource providers, all of them or those that match the options"""

    kind = resource_types.PROVIDER

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--name", help="list only the one with this name")
        parser.add_argument("--uuid", type=arguments.uuid, help="list only the one with this uuid")
        parser.add_argument("--member-of", type=arguments.aggregates, metavar="AGG[,AGG]",
                            help="list only those in one of these aggregates")
        arguments.add_resource(
            parser, help="list only those that have room for this amount of a resource class; can "
                         "be repeated, and all amounts must fit")
        parser.add_argument("--in-tree", type=arguments.uuid, metavar="UUID",
                            help="list only those in the tree of this provider")
        parser.add_argument("--required", action="append", default=[], metavar="TRAIT",
                            help="list only those with this trait; can be repeated, and all are "
                                 "required")
        parser.add_argument("--forbidden", action="append", default=[], metavar="TRAIT",
                            help="list only those without this trait; can be repeated")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        query, minor = _filters(client, options)
        # Lists of pools have no filters, so pools are searched as providers.
        kind = resource_types.PROVIDER if query else self.kind
        document, _ = client.read(kind.path(), query, minor)
        return self.kind.fields, [
            [each[name] for name in self.kind.fields] for each in document[kind.collection]]


class ListPools(ListProviders):
    """List resource pools, all of them or those that match the options"""

    kind = resource_types.POOL


def _filters(client, options):
    """Return the query parameters of a list that the options set, and the minor version."""
    query, minor = {}, 0
    if options.name is not None:
        query["name"] = options.name
    if options.uuid is not None:
        query["uuid"] = options.uuid
    if options.member_of:
        client.need(3, "lists by aggregate")
        several = len(options.member_of) > 1
        query["member_of"] = "in:" * several + ",".join(options.member_of)
    resources = arguments.resources_of(options)
    if resources:
        client.need(4, "lists by resources")
        query["resources"] = ",".join(
            f"{name}:{amount}" for name, amount in resources.items())
    if options.in_tree is not None:
        minor = 14
        client.need(minor, "lists by tree")
        query["in_tree"] = options.in_tree
    if options.required or options.forbidden:
        minor = 22 if options.forbidden else 18
        client.need(minor, "lists by trait")
        query["required"] = ",".join(
            [*options.required, *(f"!{name}" for name in options.forbidden)])
    return query, minor


class ShowProvider(resource_types.OfProvider, command.ShowOne):
    """Show a resource provider and its aggregates"""

    def take_action(self, options):
        return shown(self.client, self.kind, options.uuid)


class ShowPool(ShowProvider):
    """Show a resource pool and its aggregates"""

    kind = resource_types.POOL


class CreateProvider(command.ShowOne):
    """Create a resource provider, and associate it with aggregates"""

    kind = resource_types.PROVIDER

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="its unique name")
        parser.add_argument("--uuid", type=arguments.uuid,
                            help="its uuid, if another system has given it one (default: a new "
                                 "one)")
        parser.add_argument("--aggregate-uuid", type=arguments.uuid, action="append",
                            default=[], metavar="AGG",
                            help="associate it with this aggregate; can be repeated")
        parser.add_argument("--parent", type=arguments.uuid, metavar="UUID",
                            help="make it a child of this resource provider")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        if options.aggregate_uuid:
            client.need(1, "aggregates")
        body = {"name": options.name}
        if options.uuid:
            body["uuid"] = options.uuid
        minor = 0
        if options.parent:
            minor = 14
            client.need(minor, "trees")
            body["parent_provider_uuid"] = options.parent
        created = client.send("POST", resource_types.PROVIDER.path() if options.parent
                              else self.kind.path(), body, minor=minor)
        uuid = placement_client.header_of(created, "Location").rstrip("/").rpartition("/")[2]
        if options.aggregate_uuid:
            self._associate(client, uuid, options.aggregate_uuid)
        return shown(client, self.kind, uuid)

    def _associate(self, client, uuid, aggregates):
        try:
            membership.associate(client, self.kind, uuid, aggregates)
        except exceptions.CommandError as error:
            raise exceptions.CommandError(
                f"{self.kind.name} {uuid} was created, but not associated with its aggregates: "
                f"{error}") from error


class CreatePool(CreateProvider):
    """Create a resource pool, and associate it with aggregates"""

    kind = resource_types.POOL


class UpdateProvider(resource_types.OfProvider, command.ShowOne):
    """Rename a resource provider, or move it and all below it in the trees"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--name", help="the new name")
        place = parser.add_mutually_exclusive_group()
        place.add_argument("--parent", type=arguments.uuid, metavar="UUID",
                           help="make it a child of this resource provider")
        place.add_argument("--no-parent", action="store_true", help="make it the root of a tree")
        return parser

    def take_action(self, options):
        client, minor, moved = self.client, 0, {}
        if options.parent or options.no_parent:
            minor = 37
            client.need(minor, "moves in trees")
            moved["parent_provider_uuid"] = options.parent
        elif options.name is None:
            raise exceptions.CommandError("give --name, --parent or --no-parent")
        path = (resource_types.PROVIDER if moved else self.kind).path(options.uuid)
        retry.change(
            lambda: client.read(path),
            lambda found: client.send("PUT", path, {
                "name": found[0]["name"] if options.name is None else options.name, **moved},
                etag=found[1], minor=minor))
        return shown(client, self.kind, options.uuid)


class UpdatePool(UpdateProvider):
    """Rename a resource pool, or move it and all below it in the trees"""

    kind = resource_types.POOL


class DeleteProviders(command.Command):
    """Delete resource providers and their inventories, unless they have allocations"""

    kind = resource_types.PROVIDER

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("uuid", nargs="+", metavar="UUID", help=f"the {self.kind.name}")
        return parser

    def take_action(self, options):
        client = self.app.client_manager.placement_rpc
        retry.delete_each(
            options.uuid, lambda uuid: client.send("DELETE", self.kind.path(uuid)))


class DeletePools(DeleteProviders):
    """Delete resource pools and their inventories, unless they have allocations"""

    kind = resource_types.POOL
