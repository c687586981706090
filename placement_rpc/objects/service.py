# SPDX-License-Identifier: Apache-2.0
"""The processes of the service, as known from their heartbeats."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Service(base.PlacementObject):
    """One process of the service. Times are UTC in ISO 8601.

    ``pin`` is the release that the operator pinned it to, or ``auto``; ``oldest_caller`` is the
    oldest release of the clients that called it recently. Both are None for a service that is too
    old to report them.
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
    """All processes that have reported, except those that were stopped in an orderly way."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Service")}
