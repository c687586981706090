# SPDX-License-Identifier: Apache-2.0
"""Reshapes: inventories and allocations of many providers change in one transaction.

An inventory cannot be removed before its allocations, and an allocation cannot be made before its
inventory. So a reshape has three steps on one locked state. Each provider first gets the new
inventories in addition to the old ones, then the allocations are replaced, and then the old
inventories that the request does not name are removed. Each step that changes a provider raises
its generation and records its events. If a step is refused, nothing has changed.
"""

from collections.abc import Sequence

from placement_rpc import exception
from placement_rpc.accounting.batch import PendingRequest
from placement_rpc.accounting.claims import ClaimSet
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventories import LockedInventories, columns_of
from placement_rpc.accounting.ledger import Ledger
from placement_rpc.accounting.locked_state import LockedState, Scope
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.payloads import EventPayload
from placement_rpc.objects.reshape import ReshapeResult


class ReshapeChange(PendingRequest):
    """A reshape as a request of a batch.

    The capacity of an inventory may be set below what is used, and more may be reserved than
    there is, as in OpenStack Placement; what is allocated in the same request has to fit.

    :param inventories: of different providers
    :param claims: of different consumers, whose fields were checked
    """

    def __init__(self, request: Request, inventories: Sequence[InventoryList],
                 claims: Sequence[Claim], deadline: float | None = None):
        super().__init__(request, deadline)
        self.inventories = inventories
        self.claims = ClaimSet(claims, as_new=True)

    @property
    def weight(self) -> int:
        return sum(len(each.objects) or 1 for each in self.inventories) + self.claims.weight

    def add_to_scope(self, scope: Scope) -> None:
        scope.inventories_change = True
        for each in self.inventories:
            scope.providers.add(each.provider_uuid)
            scope.classes.update(
                inventory.resource_class for inventory in each.objects
                if inventory.obj_attr_is_set("resource_class"))
        self.claims.add_to_scope(scope)

    def apply(self, state: LockedState, outbox: Outbox) -> ReshapeResult:
        # In the order in which clients know the refusals.
        providers = [LockedInventories(state, each.provider_uuid, each.value("generation"))
                     for each in self.inventories]
        Ledger(state).check_consumers(self.claims.desired(state))
        wanted = [columns_of(each.objects, may_contradict=True) for each in self.inventories]
        with state.all_or_nothing(), outbox.all_or_nothing():
            for provider, columns in zip(providers, wanted, strict=True):
                provider.change(columns, (), outbox, below_use=True, final=False)
            claimed = self.claims.apply(state, outbox)
            for provider, columns in zip(providers, wanted, strict=True):
                provider.record_excess(outbox)
                provider.change({}, provider.classes - columns.keys(), outbox)
        named = {each.provider_uuid for each in self.inventories}.union(
            *(each.generations for each in claimed.objects))
        return ReshapeResult(
            generations={uuid: state.providers_by_uuid[uuid].generation for uuid in named},
            consumer_generations={
                each.consumer_uuid: each.consumer_generation for each in claimed.objects},
            replayed=False)

    def refused(self, error: exception.PlacementException) -> list[tuple[str, EventPayload]]:
        return self.claims.refused(error)
