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
    """

    # Version 1.0: Initial version
    # Version 1.1: Added position
    VERSION = "1.1"

    fields = {
        "objects": fields.ListOfObjectsField("Explanation"),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
    }

    added = {"position": "1.1"}
