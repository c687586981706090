# SPDX-License-Identifier: Apache-2.0
"""The result of a resource tracker's cycle."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Disagreement(base.PlacementObject):
    """A consumer of which the tracker and the store say different things.

    ``kind`` is ``orphaned`` (the store has allocations of it on the node, and the tracker does
    not know it), ``missing`` (the other way round) or ``different``. ``held`` and ``said`` map
    provider uuid to a mapping of class to amount: what the store has of the node and of the disk
    that it shares, and what the tracker says. ``healed`` tells whether the store now has what
    the tracker said; ``reason`` why not, where it was to.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "kind": fields.field(fields.Text(16)),
        "held": fields.field(fields.Json()),
        "said": fields.field(fields.Json()),
        "healed": fields.BooleanField(),
        "reason": fields.field(fields.Text(1000), nullable=True),
    }


@base.PlacementObjectRegistry.register
class SyncResult(base.PlacementObject):
    """What a cycle changed, and what the tracker and the store do not agree on.

    ``changed`` names the columns of the node and the classes of its inventory that were written.
    ``provider_uuid`` is the node's, ``shared_disk_uuid`` the provider's whose disk it shares.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "shared_disk_uuid": fields.field(fields.Uuid(), nullable=True),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
        "changed": fields.field(fields.Several(fields.Text(64))),
        "disagreements": fields.ListOfObjectsField("Disagreement"),
    }
