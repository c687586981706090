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
    # Version 1.1: Added limit
    # Version 1.2: Added member_of
    VERSION = "1.2"

    fields = {
        "resources": fields.field(fields.Amounts()),
        "member_of": fields.field(MEMBER_OF, default=[]),
        "limit": fields.field(fields.WholeNumber(minimum=1), nullable=True, default=None),
    }

    added = {"limit": "1.1", "member_of": "1.2"}
