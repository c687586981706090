# SPDX-License-Identifier: Apache-2.0
"""The two spellings of a provider: the specification's and its draft's.

A resource pool is a resource provider under another address, where the ETag is what tells
one state from another instead of the generation.
"""

import dataclasses

from placement_rpc.osc.client import path_of


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a command works on.

    ``collection`` is the address and the key of a list, ``fields`` what is shown of one.
    """

    name: str
    collection: str
    fields: tuple

    def path(self, *parts):
        """The address of one of them, or of what is below it.

        :param parts: str, beginning with the uuid
        """
        return path_of(self.collection, *parts)


PROVIDER = Kind("resource provider", "resource_providers", ("uuid", "name", "generation"))
POOL = Kind("resource pool", "resource_pools", ("uuid", "name"))
