# SPDX-License-Identifier: Apache-2.0
"""The result of a resource tracker's cycle."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Disagreement(base.PlacementObject):
    """A consumer whose reported and stored allocations differ.

    ``kind`` is ``orphaned`` (it has stored allocations on the node, and the tracker does not know
    it), ``missing`` (the reverse) or ``different``. ``held`` are the stored allocations on the
    node and on the disk that it shares, ``said`` those that the tracker reports; both map provider
    uuid to a mapping of class to amount. ``healed`` says whether the stored allocations were
    changed to the reported ones; if that failed, ``reason`` says why.
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
    """The changes that a cycle made, and the consumers on which tracker and store disagree.

    ``changed`` names the columns of the node and the classes of its inventory that were written.
    ``provider_uuid`` is the uuid of the node's provider, ``shared_disk_uuid`` that of the provider
    whose disk it shares.
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
