# SPDX-License-Identifier: Apache-2.0
"""``add aggregate`` and ``delete aggregate``."""

from osc_lib.command import command

from placement_rpc.osc import arguments, membership, providers, resource_types


class AddAggregate(resource_types.OfProvider, command.ShowOne):
    """Associate a resource provider with more aggregates"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("aggregate", nargs="+", type=arguments.uuid, metavar="AGG",
                            help="uuid of an aggregate")
        return parser

    def take_action(self, options):
        membership.associate(self.client, self.kind, options.uuid, options.aggregate)
        return providers.shown(self.client, self.kind, options.uuid)


class AddPoolAggregate(AddAggregate):
    """Associate a resource pool with more aggregates"""

    kind = resource_types.POOL


class DeleteAggregate(resource_types.OfProvider, command.Command):
    """Remove a resource provider from an aggregate"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("aggregate", type=arguments.uuid, metavar="AGG",
                            help="uuid of the aggregate")
        return parser

    def take_action(self, options):
        membership.disassociate(self.client, self.kind, options.uuid, options.aggregate)


class DeletePoolAggregate(DeleteAggregate):
    """Remove a resource pool from an aggregate"""

    kind = resource_types.POOL
