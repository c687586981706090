# SPDX-License-Identifier: Apache-2.0
"""The server's end of the call that changes inventories and allocations together."""

from placement_rpc import exception
from placement_rpc.accounting.claims import forms_of_claim
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.reshape import ReshapeChange
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.allocations import AllocationEndpoint
from placement_rpc.endpoints.inventories import InventoryEndpoint
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.claim import ClaimList
from placement_rpc.objects.reshape import Reshape, ReshapeResult
from placement_rpc.rpc.endpoint import exposed, require_fields


class ReshapeEndpoint(AllocationEndpoint, InventoryEndpoint):

    @exposed
    def reshape(self, context: RequestContext, wanted: Reshape, request_id: str) -> ReshapeResult:
        require_fields(instance_of(Reshape, "wanted", wanted), "inventories", "claims")
        inventories = self._inventories_of(wanted)
        claims = self.claims_of_set(ClaimList(objects=wanted.claims)) if wanted.claims else []
        forms = [forms_of_claim(claim) for claim in claims]
        wholes = [CanonicalForm(each).without("updated_at") for each in inventories]
        asked = Request.of(
            request_id, "reshape", {
                "inventories": [each.without("generation") for each in wholes],
                "claims": [form for form, _ in forms]},
            {"inventories": wholes, "claims": [whole for _, whole in forms]})
        return self.settle_claim(ReshapeChange(asked, inventories, claims, context.deadline))

    def _inventories_of(self, wanted):
        """Return the inventories of a reshape.

        :raises InvalidInput: if there are none, one is not complete, or two are of one provider
        :raises BatchTooLarge: if there are more providers or inventories than are taken in one
            call
        :raises UpgradeInProgress: if a live service cannot read one of them
        """
        found, limit = wanted.inventories, self.conf.claims.max_batch
        if not found:
            raise exception.InvalidInput(what="inventories", reason="there are none")
        if len(found) > limit:
            raise exception.BatchTooLarge(what="reshape", limit=limit, size=len(found))
        for each in found:
            require_fields(each, "provider_uuid")
            self.check_inventories(each)
        if len({each.provider_uuid for each in found}) < len(found):
            raise exception.InvalidInput(what="inventories", reason="two are of one provider")
        return found
