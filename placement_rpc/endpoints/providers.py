# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about resource providers and their aggregates."""

from placement_rpc.accounting import (
    aggregates as aggregate_rules,
)
from placement_rpc.accounting import (
    idempotency,
    providers,
    reads,
)
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.idempotency import Request
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields, request
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from placement_rpc.rpc.endpoint import (
    NAME,
    UUID,
    as_bool,
    as_generation,
    as_limit,
    as_uuid,
    exposed,
    optional,
    require_fields,
)

# A list may ask for any amount.
_AMOUNTS = fields.Amounts(maximum=2 ** 63 - 1)


class ProviderEndpoint(ManagerBase):

    @exposed
    def create_provider(self, context: RequestContext, provider: ResourceProvider,
                        request_id: str) -> ResourceProvider:
        require_fields(instance_of(ResourceProvider, "provider", provider), "uuid", "name")
        if provider.value("parent_provider_uuid"):
            self.check_everywhere("the parent of a resource provider", "1.3")
        self._check_name(provider.name)
        asked = Request.of(request_id, "create_provider", {"provider": provider})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.create(tx, outbox, provider))

    @exposed
    def update_provider(self, context: RequestContext, provider: ResourceProvider,
                        request_id: str, may_move: bool | None = None) -> ResourceProvider:
        require_fields(instance_of(ResourceProvider, "provider", provider), "uuid", "name")
        if provider.obj_attr_is_set("parent_provider_uuid"):
            self.check_everywhere("the parent of a resource provider", "1.3")
        self._check_name(provider.name)
        may_move = as_bool("may_move", may_move) is not False
        form = CanonicalForm(provider)
        asked = Request.of(request_id, "update_provider", {"provider": form.without("generation")},
                            {"provider": form})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.update(tx, outbox, provider, may_move))

    def _check_name(self, name: str) -> None:
        """Check that every live service can read a name.

        :raises UpgradeInProgress: if an older one would not accept it
        """
        if name != name.strip():
            self.check_everywhere("a name with blanks at its ends", "1.3")

    @exposed
    def delete_provider(self, context: RequestContext, provider_uuid: str, request_id: str,
                        generation: int | None = None) -> None:
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        asked = Request.of(request_id, "delete_provider", {"uuid": uuid, "at": None},
                           {"at": generation})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.delete(tx, outbox, uuid, generation))

    @exposed
    def get_provider(self, context: RequestContext, provider_uuid: str) -> ResourceProvider:
        return reads.provider(self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def list_providers(self, context: RequestContext, name: str | None = None,
                       member_of: list[list[str]] | None = None, marker: str | None = None,
                       limit: int | None = None, uuid: str | None = None,
                       not_member_of: list[str] | None = None, in_tree: str | None = None,
                       required: list[list[str]] | None = None,
                       forbidden: list[str] | None = None,
                       resources: dict[str, int] | None = None) -> ResourceProviderList:
        among = position = None
        if resources is not None:
            # The list is read later, so the position of the index holds for both.
            among, position = self._with_room(context, resources)
        return self.provider_lists.page(
            name=optional(NAME, "name", name),
            uuid=optional(UUID, "uuid", uuid),
            member_of=optional(request.MEMBER_OF, "member_of", member_of) or (),
            not_member_of=optional(request.AGGREGATES, "not_member_of", not_member_of) or (),
            in_tree=optional(UUID, "in_tree", in_tree),
            required=optional(request.TRAIT_SETS, "required", required) or (),
            forbidden=optional(request.TRAITS, "forbidden", forbidden) or (),
            among=among, position=position,
            marker=optional(UUID, "marker", marker),
            limit=as_limit(limit))

    def _with_room(self, context: RequestContext,
                   resources: dict[str, int]) -> tuple[set[str], int]:
        """Return the uuids of the providers that have room, and the position of the index.

        :raises ResourceClassNotFound: if there is no class of a name
        """
        amounts = _AMOUNTS.coerce(None, "resources", resources)
        # The classes are checked for an amount that no provider gives, too.
        wanted = request.ResourceRequest(resources={
            name: min(amount, fields.MAX_INT) for name, amount in amounts.items()})
        found, position = self.candidates.find(wanted, context.deadline)
        return ({each.uuid for each in found} if wanted.resources == amounts else set()), position

    @exposed
    def get_aggregates(self, context: RequestContext, provider_uuid: str) -> ProviderAggregates:
        return reads.aggregates(self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def set_aggregates(self, context: RequestContext, aggregates: ProviderAggregates,
                       request_id: str) -> ProviderAggregates:
        require_fields(instance_of(ProviderAggregates, "aggregates", aggregates),
                       "provider_uuid", "aggregates")
        form = CanonicalForm(aggregates)
        asked = Request.of(
            request_id, "set_aggregates", {"aggregates": form.without("generation")},
            {"aggregates": form})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: aggregate_rules.replace(tx, outbox, aggregates))
