# SPDX-License-Identifier: Apache-2.0
"""Traits: what a provider is or can do, such as ``HW_CPU_X86_AVX2``."""

from placement_rpc.objects import base, fields

_GENERATION = fields.WholeNumber(maximum=2 ** 63 - 1)
#: How the names of custom traits begin.
CUSTOM_PREFIX = "CUSTOM_"


def is_custom(name: str) -> bool:
    """Return whether a text is a valid name of a custom trait."""
    return (fields.is_trait_name(name) and name.startswith(CUSTOM_PREFIX)
            and name != CUSTOM_PREFIX)


@base.PlacementObjectRegistry.register
class Trait(base.PlacementObject):
    """A trait. ``updated_at`` is UTC in ISO 8601, and set in answers."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "name": fields.field(fields.TraitName()),
        "updated_at": fields.field(fields.Text(32), nullable=True),
    }


@base.PlacementObjectRegistry.register
class TraitList(base.PlacementObjectList):
    """Several traits."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Trait")}


@base.PlacementObjectRegistry.register
class ProviderTraits(base.PlacementObject):
    """The traits of a provider, and its generation.

    ``updated_at``, UTC in ISO 8601, is the time of the last change of the provider, and set in
    answers.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(_GENERATION),
        "traits": fields.field(fields.Several(fields.TraitName(), maximum=2000)),
        "updated_at": fields.field(fields.Text(32), nullable=True),
    }
