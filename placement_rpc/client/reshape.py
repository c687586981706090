# SPDX-License-Identifier: Apache-2.0
"""The client's call that changes inventories and allocations together."""

from collections.abc import Sequence

from oslo_context.context import RequestContext

from placement_rpc.client.allocations import with_owner
from placement_rpc.client.base import list_of
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.reshape import Reshape, ReshapeResult
from placement_rpc.rpc.client import Client, own_context


class ReshapeCalls(Client):

    def reshape(self, context: RequestContext | None, inventories: Sequence[InventoryList],
                claims: Sequence[Claim] = (), request_id: str | None = None,
                timeout: float | None = None) -> ReshapeResult:
        """Change the inventories of providers, and allocations, in one transaction.

        It moves inventory that is in use, for example from a compute node to new children. The
        claims name everything that their consumers are to hold, where it is then. What is
        allocated from an inventory that goes, and by no claim moved, is an error. A capacity may
        be set below what is used.

        :param inventories: all inventories of each provider, of different ones, with the
            ``generation`` of the provider that the caller read, if it checks it
        :param claims: of different consumers, as for :meth:`set_allocations
            <placement_rpc.client.allocations.AllocationCalls.set_allocations>`
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if a provider is at another generation
        :raises ConsumerConflict: if a consumer is at another generation
        :raises ResourceClassNotFound: if there is no such class
        :raises InventoryInUse: if an inventory that is left out has allocations
        :raises CapacityExceeded: if an inventory has too little for the claims
        :raises ConstraintsViolated: if an amount breaks min_unit, max_unit or step_size
        :raises UpgradeInProgress: while a service older than contract 1.3 is live
        """
        context = own_context(context)
        return self._change(context, "reshape", request_id, timeout, wanted=Reshape(
            inventories=list_of(InventoryList, "inventories", inventories),
            claims=[with_owner(context, claim) for claim in list_of(Claim, "claims", claims)]))
