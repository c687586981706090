# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about traits, and those of a resource provider."""

from placement_rpc.accounting import (
    idempotency,
    reads,
    traits,
)
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.idempotency import Request
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields, request
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.trait import ProviderTraits, Trait, TraitList
from placement_rpc.rpc.endpoint import (
    as_bool,
    as_limit,
    as_uuid,
    exposed,
    optional,
    require_fields,
)


class TraitEndpoint(ManagerBase):

    @exposed
    def list_traits(self, context: RequestContext, names: list[str] | None = None,
                    prefix: str | None = None, associated: bool | None = None,
                    marker: str | None = None, limit: int | None = None) -> TraitList:
        return reads.trait_page(
            self.database,
            names=optional(request.TRAITS, "names", names),
            prefix=optional(fields.Text(255, 0), "prefix", prefix),
            associated=as_bool("associated", associated),
            marker=optional(fields.TraitName(), "marker", marker),
            limit=as_limit(limit))

    @exposed
    def create_trait(self, context: RequestContext, trait: Trait, request_id: str) -> Trait:
        require_fields(instance_of(Trait, "trait", trait), "name")
        asked = Request.of(request_id, "create_trait", {"name": trait.name})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: traits.create(tx, outbox, trait.name))

    @exposed
    def delete_trait(self, context: RequestContext, name: str, request_id: str) -> None:
        name = fields.TraitName().coerce(None, "name", name)
        asked = Request.of(request_id, "delete_trait", {"name": name})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: traits.delete(tx, outbox, name))

    @exposed
    def get_provider_traits(self, context: RequestContext, provider_uuid: str) -> ProviderTraits:
        return reads.provider_traits(self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def set_provider_traits(self, context: RequestContext, traits_of: ProviderTraits,
                            request_id: str) -> ProviderTraits:
        require_fields(instance_of(ProviderTraits, "traits_of", traits_of),
                       "provider_uuid", "traits")
        asked = Request.of(request_id, "set_provider_traits", {
            "traits": CanonicalForm(traits_of).without("generation")})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: traits.replace(tx, outbox, traits_of))
