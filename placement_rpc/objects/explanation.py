# SPDX-License-Identifier: Apache-2.0
"""Why a provider does not fit a request: each rule that fails, and by how much."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Explanation(base.PlacementObject):
    """Whether one provider fits, and why not.

    ``reasons`` has a mapping for each rule that fails: ``rule`` (``member_of``,
    ``not_member_of``, ``inventory``, ``capacity``, ``min_unit``, ``max_unit`` or ``step_size``),
    ``resource_class``, ``requested``, ``allowed``, ``by`` (the excess or the shortfall) and
    ``detail``.

    For a request with groups the provider is the root of a tree, with which it fits or does not.
    Further rules are ``root_required``, ``root_forbidden``, ``required``, ``forbidden``,
    ``in_tree``, ``group_policy`` and ``same_subtree``. Reasons also have ``group``, the suffix of
    the group that cannot be served, None for a rule about several, and ``provider_uuid``, the
    provider that comes closest to serving it, None if there is none.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "name": fields.field(fields.Name()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "fits": fields.BooleanField(),
        "reasons": fields.field(fields.Several(fields.Json(), maximum=1000)),
    }


@base.PlacementObjectRegistry.register
class ExplanationList(base.PlacementObjectList):
    """Explanations of several providers.

    ``position`` is the position of an event up to which they are sure to include every change.
    ``funnel`` says how many providers and trees of the whole fleet each rule leaves: a list of
    mappings of ``rule``, ``group``, ``resource_class``, ``detail``, ``providers`` and ``trees``,
    in the order in which the rules are applied. The first one, ``fleet``, has all. None if it was
    not asked for.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added position and funnel
    VERSION = "1.1"

    fields = {
        "objects": fields.ListOfObjectsField("Explanation"),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
        "funnel": fields.field(
            fields.Several(fields.Json(), maximum=100_000), nullable=True),
    }

    added = {"position": "1.1", "funnel": "1.1"}
