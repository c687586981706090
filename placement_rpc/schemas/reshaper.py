# SPDX-License-Identifier: Apache-2.0
"""Reshapes: inventories and allocations in one body, from microversion 1.30 on."""

from placement_rpc.schemas import allocation, inventory


def _reshape(claim):
    """Return the schema of a reshape.

    :param claim: the schema of the claim of one consumer
    """
    return {
        "type": "object",
        "properties": {
            "inventories": {
                "type": "object",
                "patternProperties": {allocation.UUID_KEY: inventory.REPLACE},
                "minProperties": 1,
                "additionalProperties": False},
            # There may be no allocations of what moves.
            "allocations": allocation.of_consumers(claim, minimum=0)},
        "required": ["inventories", "allocations"],
        "additionalProperties": False,
    }


RESHAPE_1_30, RESHAPE_1_34, RESHAPE_1_38 = map(
    _reshape, (allocation.CLAIM_1_28, allocation.CLAIM_1_34, allocation.CLAIM_1_38))
