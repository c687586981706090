# SPDX-License-Identifier: Apache-2.0
"""The two spellings of a provider: resource provider, and the draft's resource pool.

A resource pool is a resource provider under another address, at which the ETag takes the place of
the generation.
"""

import dataclasses

from placement_rpc.osc.client import path_of


@dataclasses.dataclass(frozen=True)
class Kind:
    """The type of resource of a command.

    ``collection`` is the address and the key of a list; ``fields`` are the fields that are shown.
    """

    name: str
    collection: str
    fields: tuple

    def path(self, *parts):
        """Return the address of the collection, of a resource, or of an address below it.

        :param parts: str each, beginning with the uuid; none for the collection
        """
        return path_of(self.collection, *parts)


PROVIDER = Kind("resource provider", "resource_providers", ("uuid", "name", "generation"))
POOL = Kind("resource pool", "resource_pools", ("uuid", "name"))


class OfProvider:
    """Base of the commands about one provider, or pool, whose uuid is the first argument."""

    kind = PROVIDER

    @property
    def client(self):
        """The :class:`placement_rpc.osc.client.Client`."""
        return self.app.client_manager.placement_rpc

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("uuid", metavar="UUID", help=f"the {self.kind.name}")
        return parser
