# SPDX-License-Identifier: Apache-2.0
"""A request for providers that have room (resource-providers-get-by-request)."""

from placement_rpc.objects import base, fields

# Alternatives, of which there is at least one.
SOME_AGGREGATES = fields.Several(fields.Uuid(), minimum=1)
# list_providers makes a condition of each list, and PostgreSQL plans a hundred for a second.
MEMBER_OF = fields.Several(SOME_AGGREGATES, maximum=16)
MAX_FORBIDDEN = 500
AGGREGATES = fields.Several(fields.Uuid(), maximum=MAX_FORBIDDEN)
TRAITS = fields.Several(fields.TraitName(), maximum=2000)
TRAIT_SETS = fields.Several(TRAITS, maximum=100)
#: Which of the providers that fit come first.
ORDERS = ("spread", "pack", "random")


@base.PlacementObjectRegistry.register
class ResourceRequest(base.PlacementObject):
    """Amounts that one provider has to have free.

    ``member_of`` is a list of lists of aggregate uuids: the provider is in at least one of each
    list. ``not_member_of`` is a list of aggregate uuids: the provider is in none of them.
    ``order`` says which of the providers that fit come first: ``spread`` those that would have
    most left, ``pack`` those that would have least left, ``random`` any; None is ``random``.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added limit
    # Version 1.2: Added member_of, not_member_of and order
    VERSION = "1.2"

    fields = {
        "resources": fields.field(fields.Amounts()),
        "member_of": fields.field(MEMBER_OF, default=[]),
        "not_member_of": fields.field(AGGREGATES, default=[]),
        "order": fields.field(fields.Choice(ORDERS), nullable=True, default=None),
        "limit": fields.field(fields.WholeNumber(minimum=1), nullable=True, default=None),
    }

    added = {"limit": "1.1", "member_of": "1.2", "not_member_of": "1.2", "order": "1.2"}

    @property
    def text(self) -> str:
        """What is asked for, for errors and logs."""
        return ", ".join(f"{name}:{amount}" for name, amount in sorted(self.resources.items()))
