# SPDX-License-Identifier: Apache-2.0
"""Resource classes: standard ones, and custom ones (custom-resource-classes)."""

from placement_rpc.objects import base, fields


def canonical(name: str) -> str:
    """Return the current spelling of a class name.

    :raises InvalidInput: if it is not a valid class name
    """
    return fields.ClassName().coerce(None, "resource_class", name)


@base.PlacementObjectRegistry.register
class ResourceClass(base.PlacementObject):
    """A kind of resource. ``updated_at`` is UTC in ISO 8601, and set in answers."""

    # Version 1.0: Initial version
    # Version 1.1: Added updated_at
    VERSION = "1.1"

    fields = {
        "name": fields.field(fields.ClassName()),
        "updated_at": fields.field(fields.Text(32), nullable=True),
    }

    added = {"updated_at": "1.1"}


@base.PlacementObjectRegistry.register
class ResourceClassList(base.PlacementObjectList):
    """Several resource classes."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("ResourceClass")}
