# SPDX-License-Identifier: Apache-2.0
"""What a store holds that services of older releases do not know."""

import sqlalchemy as sa

from placement_rpc.db import models

_inventories = models.inventories

#: dict of what contract 1.3 added to a condition and the table whose rows have it
_SINCE_1_3 = {
    "parents of resource providers": (
        models.resource_providers, models.resource_providers.c.parent_provider_id.is_not(None)),
    "traits of resource providers": (models.resource_provider_traits, sa.true()),
    "types of consumers": (models.consumers, models.consumers.c.consumer_type_id.is_not(None)),
    "capacities below what is used": (
        _inventories, _inventories.c.used > _inventories.c.capacity),
}


def stored_since_1_3(tx):
    """Return what the store holds of what contract 1.3 added, a list of str."""
    return [what for what, (table, condition) in _SINCE_1_3.items() if tx.execute(
        sa.select(sa.literal(1)).select_from(table).where(condition).limit(1)).first()]
