# SPDX-License-Identifier: Apache-2.0
"""The processes of the service, as their heartbeats tell."""


from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Service(base.PlacementObject):
    """One process of the service. Times are UTC in ISO 8601.

    ``pin`` is the release that its operator has it keep to, or ``auto``; ``oldest_caller`` the
    oldest release of those who called it lately. None of either where it is too old to tell.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added pin and oldest_caller
    VERSION = "1.1"

    fields = {
        "binary": fields.field(fields.Text(64)),
        "host": fields.field(fields.Text(255)),
        "worker": fields.field(fields.WholeNumber()),
        "version": fields.field(fields.Text(32)),
        "rpc_version": fields.field(fields.Text(16)),
        "started_at": fields.field(fields.Text(32)),
        "last_seen_at": fields.field(fields.Text(32)),
        "alive": fields.BooleanField(),
        "pin": fields.field(fields.Text(32), nullable=True),
        "oldest_caller": fields.field(fields.Text(32), nullable=True),
    }

    added = {"pin": "1.1", "oldest_caller": "1.1"}


@base.PlacementObjectRegistry.register
class ServiceList(base.PlacementObjectList):
    """All processes that ever reported and did not end in good order."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Service")}
