# SPDX-License-Identifier: Apache-2.0
"""A request for providers that have room (resource-providers-get-by-request)."""

from placement_rpc.objects import base, fields

# Each list is a condition of its own in the query; PostgreSQL plans a hundred for a second.
MEMBER_OF = fields.Several(fields.Several(fields.Uuid()), maximum=16)


@base.PlacementObjectRegistry.register
class ResourceRequest(base.PlacementObject):
    """Amounts that one provider is to have free.

    ``member_of`` is a list of lists of aggregate uuids: the provider is in one of each list.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "resources": fields.field(fields.Amounts()),
        "member_of": fields.field(MEMBER_OF, default=[]),
        "limit": fields.field(fields.WholeNumber(minimum=1), nullable=True, default=None),
    }
