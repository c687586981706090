# SPDX-License-Identifier: Apache-2.0
"""The client's calls about inventories."""

from collections.abc import Sequence

from oslo_context.context import RequestContext

from placement_rpc.client.base import list_of
from placement_rpc.objects.inventory import Inventory, InventoryList
from placement_rpc.rpc.client import Client


class InventoryCalls(Client):

    def set_inventory(self, context: RequestContext | None, provider_uuid: str,
                      inventories: Sequence[Inventory], generation: int | None = None,
                      request_id: str | None = None, timeout: float | None = None,
                      allow_below_use: bool | None = None) -> InventoryList:
        """Set all inventories of a provider; equal ones change nothing.

        :param generation: the provider's, as the caller read it; None to accept any
        :param allow_below_use: whether a capacity may be set below what is used, as of hardware
            that has shrunk: an event ``inventory.capacity_exceeded`` reports it, and nothing more
            can be claimed until enough is released. If False, it is refused, unless the service
            has the option ``[claims] allow_capacity_below_use``. None is True for services of
            contract 1.3, and False for older ones.
        :raises ProviderNotFound: if there is no such provider
        :raises ResourceClassNotFound: if there is no such class
        :raises InvalidInventory: if the values of an inventory contradict each other
        :raises InventoryInUse: if an inventory that is left out has allocations
        :raises CapacityConflict: if a capacity would fall below what is used, and may not
        :raises UpgradeInProgress: the same, while a service older than contract 1.3 is live
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        return self._change(
            context, "set_inventory", request_id, timeout, provider_uuid=provider_uuid,
            inventories=InventoryList(objects=list_of(Inventory, "inventories", inventories)),
            generation=generation, allow_below_use=allow_below_use)

    def add_inventory(self, context: RequestContext | None, provider_uuid: str,
                      inventory: Inventory, generation: int | None = None,
                      request_id: str | None = None,
                      timeout: float | None = None) -> InventoryList:
        """Add the inventory of one class; return all inventories of the provider.

        :raises InventoryExists: if the provider has one of the class
        :raises PlacementException: the errors of :meth:`set_inventory`
        """
        return self._change(context, "add_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, given=inventory, generation=generation)

    def update_inventory(self, context: RequestContext | None, provider_uuid: str,
                         inventory: Inventory, generation: int | None = None,
                         request_id: str | None = None, timeout: float | None = None,
                         allow_below_use: bool | None = None) -> InventoryList:
        """Change the inventory of one class; return all inventories of the provider.

        :param allow_below_use: as of :meth:`set_inventory`
        :raises InventoryNotFound: if the provider has none of the class
        :raises PlacementException: the errors of :meth:`set_inventory`
        """
        return self._change(context, "update_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, given=inventory, generation=generation,
                            allow_below_use=allow_below_use)

    def delete_inventory(self, context: RequestContext | None, provider_uuid: str,
                         resource_class: str, generation: int | None = None,
                         request_id: str | None = None,
                         timeout: float | None = None) -> InventoryList:
        """Delete the inventory of one class; return the inventories that are left.

        :raises ResourceClassNotFound: if there is no such class
        :raises InventoryNotFound: if the provider has none of the class
        :raises InventoryInUse: if it has allocations
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        return self._change(context, "delete_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, name=resource_class,
                            generation=generation)

    def get_inventory(self, context: RequestContext | None, provider_uuid: str,
                      timeout: float | None = None) -> InventoryList:
        """Return the inventories of a provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_inventory", timeout, provider_uuid=provider_uuid)
