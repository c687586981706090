# SPDX-License-Identifier: Apache-2.0
"""Consumers of resources."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Consumer(base.PlacementObject):
    """A consumer of resources, which belongs to a project and a user.

    Its generation is 1 with its first allocations and rises with each change of them. A consumer
    is deleted with its last allocation. ``tag`` changes with each change too, and is never the
    same again: unlike a generation, it does not match later allocations of the same uuid.
    ``consumer_type`` is None if it is not known.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added tag, consumer_type
    VERSION = "1.1"

    fields = {
        "uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "tag": fields.field(fields.Text(64), nullable=True),
        "consumer_type": fields.field(fields.ConsumerType(), nullable=True),
    }

    added = {"tag": "1.1", "consumer_type": "1.1"}
