# SPDX-License-Identifier: Apache-2.0
"""The replacement of a provider's inventories as a request of a batch."""

from collections.abc import Sequence

from placement_rpc.accounting.batch import PendingRequest
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventories import BelowUse, LockedInventories, columns_of
from placement_rpc.accounting.locked_state import LockedState, Scope
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.objects.inventory import Inventory, InventoryList


class InventoryReplacement(PendingRequest):
    """All inventories of a provider, to be these and no others.

    A resource tracker sends one for each of its nodes, so that many arrive at once.

    :param generation: the generation of the provider that the caller read; None for any
    :param below_use: whether a capacity may shrink below what is used
    """

    def __init__(self, request: Request, provider_uuid: str, inventories: Sequence[Inventory],
                 generation: int | None = None, deadline: float | None = None,
                 below_use: BelowUse = False):
        super().__init__(request, deadline)
        self.provider_uuid = provider_uuid
        self.inventories = inventories
        self.generation = generation
        self.below_use = below_use

    @property
    def weight(self) -> int:
        return len(self.inventories) or 1

    def add_to_scope(self, scope: Scope) -> None:
        scope.providers.add(self.provider_uuid)
        scope.classes.update(
            each.resource_class for each in self.inventories
            if each.obj_attr_is_set("resource_class"))
        scope.inventories_change = True

    def apply(self, state: LockedState, outbox: Outbox) -> InventoryList:
        wanted = columns_of(self.inventories)
        locked = LockedInventories(state, self.provider_uuid, self.generation)
        locked.change(wanted, locked.classes - wanted.keys(), outbox, self.below_use)
        return locked.inventories()
