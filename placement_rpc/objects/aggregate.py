# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider, which say which other providers it can be used with."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class ProviderAggregates(base.PlacementObject):
    """The aggregates of a provider, and its generation."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "aggregates": fields.field(fields.Several(fields.Uuid())),
    }
