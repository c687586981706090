# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about inventories."""

import functools

from placement_rpc import exception
from placement_rpc.accounting import (
    idempotency,
    reads,
)
from placement_rpc.accounting import (
    inventories as inventory_rules,
)
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventory_batch import InventoryReplacement
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import resource_class
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.inventory import Inventory, InventoryList
from placement_rpc.rpc.endpoint import as_generation, as_uuid, exposed, require_fields

# The largest ratio before contract 1.3; the smallest was above 0.
_OLD_RATIO = 1e9


class InventoryEndpoint(ManagerBase):

    @exposed
    def set_inventory(self, context: RequestContext, provider_uuid: str,
                      inventories: InventoryList, request_id: str,
                      generation: int | None = None,
                      allow_below_use: bool | None = None) -> InventoryReplacement:
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        given = self.check_inventories(instance_of(InventoryList, "inventories", inventories))
        asked = Request.of(request_id, "set_inventory", {
            "uuid": uuid, "inventories": given, "at": None}, {"at": generation})
        return InventoryReplacement(asked, uuid, given, generation, context.deadline,
                                    self.below_use(context, allow_below_use))

    def check_inventories(self, inventories: InventoryList) -> list[Inventory]:
        """Return the inventories of a list.

        :raises InvalidInput: if there is no list
        :raises BatchTooLarge: if there are more than are taken in one call
        :raises UpgradeInProgress: if a live service cannot read one of them
        """
        found = require_fields(inventories, "objects").objects
        limit = self.conf.claims.max_resources
        if len(found) > limit:
            raise exception.BatchTooLarge(
                what="set of inventories", limit=limit, size=len(found))
        self._check_ratios(found)
        return found

    @exposed
    def add_inventory(self, context: RequestContext, provider_uuid: str, given: Inventory,
                      request_id: str, generation: int | None = None) -> InventoryList:
        return self._change_inventory(context, "add_inventory", inventory_rules.add,
                                      provider_uuid, given, request_id, generation)

    @exposed
    def update_inventory(self, context: RequestContext, provider_uuid: str, given: Inventory,
                         request_id: str, generation: int | None = None,
                         allow_below_use: bool | None = None) -> InventoryList:
        change = functools.partial(
            inventory_rules.update, below_use=self.below_use(context, allow_below_use))
        return self._change_inventory(
            context, "update_inventory", change, provider_uuid, given, request_id, generation)

    def _change_inventory(self, context, method, change, provider_uuid, given, request_id,
                          generation):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        self._check_ratios([instance_of(Inventory, "given", given)])
        asked = Request.of(request_id, method, {
            "uuid": uuid, "inventory": given, "at": None}, {"at": generation})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: change(tx, outbox, uuid, given, generation))

    def _check_ratios(self, inventories):
        """Check that every live service can read the ratios of inventories.

        :raises UpgradeInProgress: if one is too old for one of them
        """
        if not all(0 < each.value("allocation_ratio", 1) <= _OLD_RATIO for each in inventories):
            self.check_everywhere("an allocation_ratio of 0 or less, or above 1e9", "1.3")

    @exposed
    def delete_inventory(self, context: RequestContext, provider_uuid: str, name: str,
                         request_id: str, generation: int | None = None) -> InventoryList:
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "delete_inventory", {
            "uuid": uuid, "class": name, "at": None}, {"at": generation})
        return idempotency.run_once(
            context, asked,
            lambda tx, outbox: inventory_rules.delete(tx, outbox, uuid, name, generation))

    @exposed
    def get_inventory(self, context: RequestContext, provider_uuid: str) -> InventoryList:
        return reads.inventories(self.database, as_uuid("provider_uuid", provider_uuid))
