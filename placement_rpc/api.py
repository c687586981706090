# SPDX-License-Identifier: Apache-2.0
"""The client's end of the RPC contract: what a nova-compute or a scheduler imports.

::

    api = PlacementAPI(transport_url="rabbit://user:secret@broker/")
    api.claim_allocations(context, Claim(
        consumer_uuid=instance.uuid, project_id=instance.project_id, user_id=instance.user_id,
        allocations={node.uuid: {"VCPU": 2, "MEMORY_MB": 2048}}))

A call returns the result, or raises an error of :mod:`placement_rpc.exception`. A call that may
succeed later is retried until its deadline, always under the same request id, so that the service
does it once however often it is sent.
"""

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from oslo_context.context import RequestContext

from placement_rpc import exception
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.allocation import AllocationList
from placement_rpc.objects.claim import CONSUMER_TAGS, Claim, ClaimList, ClaimResult
from placement_rpc.objects.event_page import EventPage, EventPositions
from placement_rpc.objects.explanation import ExplanationList
from placement_rpc.objects.fields import RequestId, Uuid, WholeNumber
from placement_rpc.objects.inventory import Inventory, InventoryList
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.request_result import RequestResult
from placement_rpc.objects.resource_class import ResourceClass, ResourceClassList, canonical
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from placement_rpc.objects.service import ServiceList
from placement_rpc.objects.sync_result import SyncResult
from placement_rpc.objects.trait import ProviderTraits, Trait, TraitList
from placement_rpc.objects.usage import ProjectUsages, UsageList
from placement_rpc.rpc.client import Client, new_request_id, own_context
from placement_rpc.rpc.endpoint import as_name, as_uuid
from placement_rpc.versions.contract import RPC_VERSION

__all__ = ["RPC_VERSION", "Claim", "Inventory", "PlacementAPI", "ResourceRequest", "as_name",
           "as_uuid", "canonical", "new_request_id"]

# The namespace of the uuids of providers that are created without one.
_NEW_PROVIDERS = uuid.UUID("6e7d1f0c-3d3c-5b0b-9f5e-0d6b7a0c9a11")

#: For an argument that is left as it is, where None is a value.
KEEP = ""

_T = TypeVar("_T")


class PlacementAPI(Client):
    """Calls to the placement service. Thread-safe; make one per process, after it forked.

    The constructor's parameters are those of :class:`placement_rpc.rpc.client.Client`.

    Every method takes ``context`` first: any :class:`oslo_context.context.RequestContext`, or
    None. Every method takes ``timeout``: seconds for the whole call; None for the configured
    deadline. Every change takes ``request_id``; None for a new one.

    In addition to the errors that it names, a method may raise InvalidInput and its subclasses
    for bad input, DeadlineExceeded if the time is over and the outcome unknown (its subclass
    ReadTimedOut for a call that changes nothing), and
    UnsupportedCall if the service is too old for the call.
    """

    # -- providers ----------------------------------------------------------------------

    def create_provider(self, context: RequestContext | None, name: str,
                        provider_uuid: str | None = None, request_id: str | None = None,
                        timeout: float | None = None,
                        parent_provider_uuid: str | None = None) -> ResourceProvider:
        """Create a resource provider, at generation 0.

        :param name: 1 to 200 characters, without blanks at either end
        :param provider_uuid: None for a new one
        :param parent_provider_uuid: None for the root of a new tree
        :raises NameInUse: if another provider has the name
        :raises ProviderExists: if another provider has the uuid
        :raises ParentNotFound: if there is no such parent
        :raises UpgradeInProgress: if it has a parent, and a live service knows no trees
        """
        request_id = RequestId().coerce(None, "request_id", request_id or new_request_id())
        if provider_uuid is None:
            # Derived from the request, so that a repeated request names the same provider.
            provider_uuid = str(uuid.uuid5(_NEW_PROVIDERS, request_id))
        provider = ResourceProvider(uuid=provider_uuid, name=name)
        if parent_provider_uuid is not None:
            provider.parent_provider_uuid = parent_provider_uuid
        return self._change(context, "create_provider", request_id, timeout, provider=provider)

    def update_provider(self, context: RequestContext | None, provider_uuid: str, name: str,
                        generation: int | None = None, request_id: str | None = None,
                        timeout: float | None = None,
                        parent_provider_uuid: str | None = KEEP,
                        may_move: bool | None = None) -> ResourceProvider:
        """Rename a resource provider, or move it to another place in the trees.

        All that is below it moves with it. The generation of each provider whose root is another
        then rises.

        :param generation: the provider's, as the caller read it; None to accept any
        :param parent_provider_uuid: None to make it a root; :data:`KEEP` for no change
        :param may_move: False to refuse another parent, or none, for a provider that has one
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if the provider is at another generation
        :raises NameInUse: if another provider has the name
        :raises ParentNotFound: if there is no such parent
        :raises ParentFixed: if it has another parent, and may not be moved
        :raises TreeLoop: if the parent is the provider itself, or below it
        :raises UpgradeInProgress: if a parent is given, and a live service knows no trees
        """
        provider = ResourceProvider(uuid=provider_uuid, name=name)
        if generation is not None:
            provider.generation = generation
        if parent_provider_uuid != KEEP:
            provider.parent_provider_uuid = parent_provider_uuid
        return self._change(context, "update_provider", request_id, timeout, provider=provider,
                            may_move=may_move)

    def delete_provider(self, context: RequestContext | None, provider_uuid: str,
                        generation: int | None = None, request_id: str | None = None,
                        timeout: float | None = None) -> None:
        """Delete a resource provider that has neither allocations nor children.

        :raises ProviderNotFound: if there is no such provider
        :raises ProviderIsParent: if it has children
        :raises ProviderInUse: if it has allocations
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        self._change(context, "delete_provider", request_id, timeout,
                     provider_uuid=provider_uuid, generation=generation)

    def get_provider(self, context: RequestContext | None, provider_uuid: str,
                     timeout: float | None = None) -> ResourceProvider:
        """Return a resource provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_provider", timeout, provider_uuid=provider_uuid)

    def list_providers(self, context: RequestContext | None, name: str | None = None,
                       member_of: Sequence[Sequence[str]] | None = None,
                       marker: str | None = None, limit: int | None = None,
                       timeout: float | None = None, uuid: str | None = None,
                       not_member_of: Sequence[str] | None = None, in_tree: str | None = None,
                       required: Sequence[Sequence[str]] | None = None,
                       forbidden: Sequence[str] | None = None,
                       resources: Mapping[str, int] | None = None) -> ResourceProviderList:
        """Return resource providers, the oldest first. All conditions have to be met.

        The list carries the ``position`` of an event up to which it includes every change, and
        ``more``, whether there are others after the limit; both are None if the service is older.

        :param name: only the provider of this name
        :param uuid: only the provider of this uuid
        :param not_member_of: aggregate uuids: only providers that are in none of them
        :param in_tree: only providers of the tree of this one
        :param required: lists of traits: only providers that have one of each list
        :param forbidden: traits: only providers that have none of them
        :param resources: amounts by class: only providers that have them free
        :param member_of: lists of aggregate uuids: only providers that are in one of each list
        :param marker: uuid of the provider after which to begin
        :param limit: the most providers to return; None for all
        :raises ProviderNotFound: if there is no provider of the marker
        :raises TraitNotFound: if there is no such trait
        :raises ResourceClassNotFound: if there is no such class
        """
        found: list[ResourceProvider] = []
        position = more = None
        ends = time.monotonic() + self._seconds(timeout)
        if limit is not None:
            limit = WholeNumber(minimum=1).coerce(None, "limit", limit)
        while limit is None or len(found) < limit:
            left = None if limit is None else limit - len(found)
            page = self._call(
                context, "list_providers", max(0, ends - time.monotonic()), name=name,
                member_of=member_of, marker=marker, limit=left, uuid=uuid,
                not_member_of=not_member_of, in_tree=in_tree, required=required,
                forbidden=forbidden, resources=resources)
            position = page.value("position") if position is None else position
            found += page.objects
            more = page.value("more")
            # A service before contract 1.3 does not say whether there is more.
            if not page.value("more", bool(page.objects) and name is None):
                break
            marker = page.objects[-1].uuid
        return ResourceProviderList(objects=found, position=position, more=more)

    # -- inventories --------------------------------------------------------------------

    def set_inventory(self, context: RequestContext | None, provider_uuid: str,
                      inventories: Sequence[Inventory], generation: int | None = None,
                      request_id: str | None = None,
                      timeout: float | None = None) -> InventoryList:
        """Set all inventories of a provider; equal ones change nothing.

        :param generation: the provider's, as the caller read it; None to accept any
        :raises ProviderNotFound: if there is no such provider
        :raises ResourceClassNotFound: if there is no such class
        :raises InvalidInventory: if the values of an inventory contradict each other
        :raises InventoryInUse: if an inventory that is left out has allocations
        :raises CapacityConflict: if a capacity would fall below what is used
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        return self._change(
            context, "set_inventory", request_id, timeout, provider_uuid=provider_uuid,
            inventories=InventoryList(objects=_list_of(Inventory, "inventories", inventories)),
            generation=generation)

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
                         request_id: str | None = None,
                         timeout: float | None = None) -> InventoryList:
        """Change the inventory of one class; return all inventories of the provider.

        :raises InventoryNotFound: if the provider has none of the class
        :raises PlacementException: the errors of :meth:`set_inventory`
        """
        return self._change(context, "update_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, given=inventory, generation=generation)

    def delete_inventory(self, context: RequestContext | None, provider_uuid: str,
                         resource_class: str, generation: int | None = None,
                         request_id: str | None = None,
                         timeout: float | None = None) -> InventoryList:
        """Delete the inventory of one class; return the inventories that are left.

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

    # -- claims -------------------------------------------------------------------------

    def claim_allocations(self, context: RequestContext | None, claim: Claim,
                          request_id: str | None = None, timeout: float | None = None,
                          cast: bool = False) -> ClaimResult | str:
        """Replace the allocations of a consumer by those of the claim.

        A cast returns as soon as the broker has confirmed that the request is in a durable queue,
        from which it is settled even if every process of the service is killed meanwhile. Casts
        are settled in the order in which they were sent. ``allocation.create``,
        ``allocation.update`` or ``allocation.claim.refused`` reports the outcome with the
        request's id, and so does :meth:`get_request_result`. ``timeout`` covers the sending only,
        and the errors below are raised by calls.

        :param claim: its project and user default to the context's
        :returns: the result; of a cast, the request's id
        :raises CapacityExceeded: if a provider has too little left
        :raises ConstraintsViolated: if an amount breaks min_unit, max_unit or step_size
        :raises ConsumerConflict: if the consumer is at another generation
        :raises PreconditionFailed: if the consumer has none of the claim's tags
        :raises ProviderNotFound: if there is no such provider
        :raises ResourceClassNotFound: if there is no such class
        :raises RequestIdReused: if another request had the id
        """
        context = own_context(context)
        claim = _with_owner(context, claim)
        if not cast:
            return self._change(context, "claim_allocations", request_id, timeout, claim=claim)
        # Checked here, since nothing could be reported to the caller later.
        claim.check(max_resources=float("inf"))
        return self._cast(context, "claim_allocations", request_id, timeout, claim=claim)

    def claim_batch(self, context: RequestContext | None, claims: Sequence[Claim],
                    request_id: str | None = None, timeout: float | None = None,
                    ) -> list[ClaimResult | exception.PlacementException]:
        """Make many claims in one call, each accepted or refused on its own.

        :returns: list in the same order: a result for each accepted claim, and the error for each
            refused one
        :raises BatchTooLarge: if there are more than the service takes in one call
        """
        context = own_context(context)
        answer = self._change(
            context, "claim_batch", request_id, timeout,
            claims=ClaimList(objects=[
                _with_owner(context, claim) for claim in _list_of(Claim, "claims", claims)]))
        return [each.exception() or each for each in answer.objects]

    def claim_by_request(self, context: RequestContext | None, wanted: ResourceRequest,
                         claim: Claim, request_id: str | None = None,
                         timeout: float | None = None) -> ClaimResult:
        """Find a provider with room and claim from it, in one call.

        :param claim: without allocations
        :returns: the result; its ``generations`` names the provider
        :raises NoCandidates: if no provider has room
        :raises ResourceClassNotFound: if there is no such class
        :raises ConsumerConflict: if the consumer is at another generation
        """
        context = own_context(context)
        return self._change(context, "claim_by_request", request_id, timeout, wanted=wanted,
                            claim=_with_owner(context, claim))

    def release_allocations(self, context: RequestContext | None, consumer_uuid: str,
                            consumer_generation: int | None = None,
                            request_id: str | None = None, timeout: float | None = None,
                            cast: bool = False,
                            consumer_tags: Sequence[str] | None = None) -> ClaimResult | str:
        """Release everything that a consumer holds.

        :param cast: as of :meth:`claim_allocations`
        :param consumer_tags: entity tags, of which the consumer must have one, or ``*`` for any
            consumer that has allocations; None to accept any
        :returns: the result; of a cast, the request's id
        :raises ConsumerNotFound: if the consumer holds nothing
        :raises ConsumerConflict: if the consumer is at another generation
        :raises PreconditionFailed: if the consumer has none of the tags
        """
        more: dict[str, Any] = {} if consumer_tags is None else {
            "consumer_tags": CONSUMER_TAGS.coerce(None, "consumer_tags", consumer_tags)}
        if not cast:
            return self._change(context, "release_allocations", request_id, timeout,
                                consumer_uuid=consumer_uuid,
                                consumer_generation=consumer_generation, **more)
        return self._cast(
            context, "release_allocations", request_id, timeout,
            consumer_uuid=Uuid().coerce(None, "consumer_uuid", consumer_uuid),
            consumer_generation=consumer_generation, **more)

    def move_allocations(self, context: RequestContext | None, source_uuid: str,
                         target_uuid: str, consumer_generation: int | None = None,
                         request_id: str | None = None,
                         timeout: float | None = None) -> ClaimResult:
        """Move everything that one consumer holds to another that holds nothing.

        :param consumer_generation: the source's, as the caller read it; None to accept any
        :returns: the result of the target
        :raises ConsumerNotFound: if the source holds nothing
        :raises ConsumerConflict: if the target holds something, or the source is at another
            generation
        """
        return self._change(context, "move_allocations", request_id, timeout,
                            source_uuid=source_uuid, target_uuid=target_uuid,
                            consumer_generation=consumer_generation)

    # -- reading ------------------------------------------------------------------------

    def get_allocations(self, context: RequestContext | None, consumer_uuid: str,
                        timeout: float | None = None) -> AllocationList:
        """Return the allocations of a consumer; an unknown one has none."""
        return self._call(context, "get_allocations", timeout, consumer_uuid=consumer_uuid)

    def get_provider_allocations(self, context: RequestContext | None, provider_uuid: str,
                                 timeout: float | None = None) -> AllocationList:
        """Return the allocations of all consumers from a provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_provider_allocations", timeout,
                          provider_uuid=provider_uuid)

    def get_usages(self, context: RequestContext | None, provider_uuid: str,
                   timeout: float | None = None) -> UsageList:
        """Return how much of each inventory of a provider is used.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_usages", timeout, provider_uuid=provider_uuid)

    def get_project_usages(self, context: RequestContext | None, project_id: str,
                           user_id: str | None = None,
                           timeout: float | None = None) -> ProjectUsages:
        """Return how much of each class a project uses; an unknown project uses nothing.

        :param user_id: only what this user uses; None for all users
        """
        return self._call(context, "get_project_usages", timeout, project_id=project_id,
                          user_id=user_id)

    def get_by_request(self, context: RequestContext | None, wanted: ResourceRequest,
                       timeout: float | None = None) -> ResourceProviderList:
        """Return the providers that have room for a request.

        A service returns ``[candidates] max_found`` providers at most, whatever the limit of the
        request. ``more`` of the list is whether other providers fit, too; it is not set by a
        service before contract 1.3, which returns all.

        :raises ResourceClassNotFound: if there is no such class
        """
        return self._call(context, "get_by_request", timeout, wanted=wanted)

    # -- aggregates ---------------------------------------------------------------------

    def get_aggregates(self, context: RequestContext | None, provider_uuid: str,
                       timeout: float | None = None) -> ProviderAggregates:
        """Return the aggregates of a provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_aggregates", timeout, provider_uuid=provider_uuid)

    def set_aggregates(self, context: RequestContext | None, provider_uuid: str,
                       aggregates: Iterable[str], generation: int | None = None,
                       request_id: str | None = None,
                       timeout: float | None = None) -> ProviderAggregates:
        """Put a provider into these aggregates and no others.

        :param aggregates: list, tuple or set of uuids
        :param generation: the provider's, as the caller read it; None to accept any
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        if not isinstance(aggregates, (list, tuple, set, frozenset)):
            raise exception.InvalidInput(what="aggregates", reason="they are not a list")
        wanted = ProviderAggregates(provider_uuid=provider_uuid, aggregates=list(aggregates))
        # Sorted, so that a repeated request has the same fingerprint.
        wanted.aggregates = sorted(wanted.aggregates)
        if generation is not None:
            wanted.generation = generation
        return self._change(context, "set_aggregates", request_id, timeout, aggregates=wanted)

    # -- traits -------------------------------------------------------------------------

    def list_traits(self, context: RequestContext | None, names: Sequence[str] | None = None,
                    prefix: str | None = None, associated: bool | None = None,
                    marker: str | None = None, limit: int | None = None,
                    timeout: float | None = None) -> TraitList:
        """Return traits in alphabetical order.

        :param names: only those of these names that exist
        :param prefix: only those whose names begin with it
        :param associated: True for those that some provider has, False for the others
        :param marker: the name after which to begin
        :param limit: the most traits to return; None for the most that one answer has
        """
        return self._call(context, "list_traits", timeout, names=names, prefix=prefix,
                          associated=associated, marker=marker, limit=limit)

    def create_trait(self, context: RequestContext | None, name: str,
                     request_id: str | None = None, timeout: float | None = None) -> Trait:
        """Create a custom trait.

        :param name: begins with ``CUSTOM_``
        :raises TraitExists: if there is one of the name
        :raises TraitStandard: if a standard trait has the name
        :raises UpgradeInProgress: if a live service knows no traits
        """
        return self._change(context, "create_trait", request_id, timeout, trait=Trait(name=name))

    def delete_trait(self, context: RequestContext | None, name: str,
                     request_id: str | None = None, timeout: float | None = None) -> None:
        """Delete a custom trait that no provider has.

        :raises TraitNotFound: if there is no such trait
        :raises TraitInUse: if a provider has it
        :raises TraitStandard: if it is a standard trait
        :raises UpgradeInProgress: if a live service knows no traits
        """
        self._change(context, "delete_trait", request_id, timeout, name=name)

    def get_provider_traits(self, context: RequestContext | None, provider_uuid: str,
                            timeout: float | None = None) -> ProviderTraits:
        """Return the traits of a provider, and its generation.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_provider_traits", timeout, provider_uuid=provider_uuid)

    def set_provider_traits(self, context: RequestContext | None, provider_uuid: str,
                            traits: Sequence[str], generation: int | None = None,
                            request_id: str | None = None,
                            timeout: float | None = None) -> ProviderTraits:
        """Give a provider these traits and no others; the same ones change nothing.

        :param generation: the provider's, as the caller read it; None to accept any
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if the provider is at another generation
        :raises TraitNotFound: if there is no such trait
        :raises UpgradeInProgress: if a live service knows no traits
        """
        wanted = ProviderTraits(provider_uuid=provider_uuid, traits=list(traits))
        if generation is not None:
            wanted.generation = generation
        return self._change(context, "set_provider_traits", request_id, timeout, traits_of=wanted)

    # -- resource classes ---------------------------------------------------------------

    def resource_class_list(self, context: RequestContext | None, marker: str | None = None,
                            limit: int | None = None,
                            timeout: float | None = None) -> ResourceClassList:
        """Return resource classes in alphabetical order.

        :param marker: the name after which to begin
        :param limit: the most classes to return; the service may return fewer
        """
        return self._call(context, "resource_class_list", timeout, marker=marker, limit=limit)

    def resource_class_get(self, context: RequestContext | None, name: str,
                           timeout: float | None = None) -> ResourceClass:
        """Return a resource class.

        :raises ResourceClassNotFound: if there is no such class
        """
        return self._call(context, "resource_class_get", timeout, name=name)

    def resource_class_create(self, context: RequestContext | None, name: str,
                              request_id: str | None = None,
                              timeout: float | None = None) -> ResourceClass:
        """Create a custom resource class, ``CUSTOM_...``.

        :raises ResourceClassExists: if there is a custom class of the name
        :raises ResourceClassStandard: if there is a standard class of the name
        """
        return self._change(context, "resource_class_create", request_id, timeout,
                            given=ResourceClass(name=name))

    def resource_class_rename(self, context: RequestContext | None, name: str, new_name: str,
                              request_id: str | None = None,
                              timeout: float | None = None) -> ResourceClass:
        """Rename a custom resource class.

        :raises ResourceClassNotFound: if there is no such class
        :raises ResourceClassExists: if there is a custom class of the new name
        :raises ResourceClassStandard: if one of the names is a standard class's
        """
        return self._change(context, "resource_class_rename", request_id, timeout, name=name,
                            given=ResourceClass(name=new_name))

    def resource_class_delete(self, context: RequestContext | None, name: str,
                              request_id: str | None = None,
                              timeout: float | None = None) -> None:
        """Delete a custom resource class.

        :raises ResourceClassNotFound: if there is no such class
        :raises ResourceClassInUse: if there are inventories of it
        :raises ResourceClassStandard: if it is a standard class
        """
        self._change(context, "resource_class_delete", request_id, timeout, name=name)

    # -- compute nodes ------------------------------------------------------------------

    def sync_compute_node(self, context: RequestContext | None, node: ComputeNode,
                          allocations: dict[str, dict[str, Any]], snapshot_at: float,
                          shares_disk: bool | None = None,
                          devices_in_use: dict[str, int] | None = None, heal: bool = False,
                          request_id: str | None = None,
                          timeout: float | None = None) -> SyncResult:
        """Report one periodic cycle of a resource tracker.

        A new node is created, and what changed of a known one is stored; a cycle without changes
        writes nothing. The result compares the consumers of the node in the store with those that
        the tracker reports. A consumer that changed after ``snapshot_at`` is not changed.

        :param allocations: dict of consumer uuid to dict of ``project_id``, ``user_id`` and
            ``resources``, a dict of class to amount. DISK_GB of a node that shares a disk counts
            for the provider that has the disk
        :param snapshot_at: time of the tracker's snapshot, in seconds since the epoch
        :param shares_disk: whether the node's disk is another provider's; None if not known
        :param devices_in_use: dict of class of PCI devices to how many are claimed or allocated,
            which the node's pools leave out; None if not known
        :param heal: whether to change stored allocations to those that the tracker reports
        :raises ComputeNodeExists: if the uuid belongs to another node
        :raises NameInUse: if another provider has the name
        :raises CapacityConflict: if a capacity would fall below what is used
        :raises InventoryInUse: if an inventory that has allocations would be removed
        :raises ServiceTooOld: if a service is older than the call
        """
        return self._change(
            context, "sync_compute_node", request_id, timeout, node=node,
            allocations=allocations, snapshot_at=snapshot_at, shares_disk=shares_disk,
            devices_in_use=devices_in_use, heal=heal)

    def object_class_action_versions(self, context: RequestContext | None, objname: str,
                                     objmethod: str, object_versions: dict[str, str],
                                     args: Sequence, kwargs: dict[str, Any],
                                     timeout: float | None = None) -> Any:
        """Call a remotable method of a class of nova's objects.

        With this method and the next two, a PlacementAPI can serve as
        :attr:`placement_rpc.objects.nova.base.NovaObject.indirection_api` on a machine without a
        database.

        :param object_versions: dict of object name to the version of the answer
        :returns: what the method returned
        """
        return self._call(
            context, "object_class_action_versions", timeout, objname=objname,
            objmethod=objmethod, object_versions=object_versions, args=list(args),
            kwargs=kwargs)

    def object_action(self, context: RequestContext | None, objinst: Any, objmethod: str,
                      args: Sequence, kwargs: dict[str, Any], request_id: str | None = None,
                      timeout: float | None = None) -> tuple[dict[str, Any], Any]:
        """Call a remotable method of an object.

        :returns: dict of the fields that the method changed, and what it returned
        """
        updates, result = self._change(
            context, "object_action", request_id, timeout, objinst=objinst,
            objmethod=objmethod, args=list(args), kwargs=kwargs)
        return updates, result

    def object_backport_versions(self, context: RequestContext | None, objinst: Any,
                                 object_versions: dict[str, str],
                                 timeout: float | None = None) -> dict[str, Any]:
        """Return an object that is newer than its receiver in the versions of the receiver.

        :param objinst: a versioned object, or the primitive of one
        :returns: the primitive of the object at these versions
        """
        return self._call(context, "object_backport_versions", timeout, objinst=objinst,
                          object_versions=object_versions)

    # -- events and reasons -------------------------------------------------------------

    def explain(self, context: RequestContext | None, wanted: ResourceRequest,
                marker: str | None = None, limit: int | None = None,
                timeout: float | None = None) -> ExplanationList:
        """Return which providers fit a request, and for the others which rules fail.

        :param wanted: its limit is ignored
        :param marker: uuid of the provider after which to begin
        :param limit: the most providers to return; the service may return fewer
        :raises ResourceClassNotFound: if there is no such class
        :raises ProviderNotFound: if there is no provider of the marker
        """
        return self._call(context, "explain", timeout, wanted=wanted, marker=marker, limit=limit)

    def verify_index(self, context: RequestContext | None, server: str | None = None,
                     after: int = 0, limit: int | None = None,
                     timeout: float | None = None) -> dict[str, Any] | None:
        """Have a conductor compare a part of its candidate index with the store.

        :param server: which conductor: its host, binary and worker, joined by dots; None for any
        :param after: the provider row id after which to begin
        :param limit: the most providers to compare; the service may compare fewer
        :returns: dict of ``providers``, ``inventories``, ``bytes``, ``position``,
            ``differences`` (provider row id to text) and ``next`` (None at the end); None if the
            conductor has no index
        """
        return self._call(context, "verify_index", timeout, server=server, after=after,
                          limit=limit)

    def get_event_positions(self, context: RequestContext | None,
                            timeout: float | None = None) -> EventPositions:
        """Return the positions of the oldest and of the newest event.

        A program that reads these, then lists, and then follows the events after ``last`` misses
        nothing.
        """
        return self._call(context, "get_event_positions", timeout)

    def list_events(self, context: RequestContext | None, after: int | None = None,
                    limit: int | None = None, timeout: float | None = None) -> EventPage:
        """Return events in the order of their positions.

        :param after: the position after which to begin; None for the oldest that is kept
        :param limit: the most events to return; the service may return fewer
        :raises EventsPruned: if some of these events are no longer kept
        :raises InvalidInput: for a position that was not assigned yet
        """
        return self._call(context, "list_events", timeout, after=after, limit=limit)

    # -- the service itself -------------------------------------------------------------

    def get_request_result(self, context: RequestContext | None, request_id: str,
                           timeout: float | None = None) -> RequestResult:
        """Return the stored outcome of a request; its ``result()`` returns or raises it.

        :param request_id: for an entry of a batch, the batch's id for the first, and with ``#``
            and its place, as ``ID#1``, for each further one
        :raises RequestNotFound: if nothing is stored under the id
        """
        return self._call(context, "get_request_result", timeout, settled_id=request_id)

    def ping(self, context: RequestContext | None,
             timeout: float | None = None) -> dict[str, Any]:
        """Return host, pid, version, rpc_version and time of the process that answers."""
        return self._call(context, "ping", timeout)

    def get_versions(self, context: RequestContext | None,
                     timeout: float | None = None) -> ServiceList:
        """Return the processes of the service, with their releases."""
        return self._call(context, "get_versions", timeout)


def _list_of(cls: type[_T], name: str, values: Any) -> list[_T]:
    """Return the values as a list of objects of the class.

    :raises InvalidInput: for anything else
    """
    if not isinstance(values, (list, tuple)):
        raise exception.InvalidInput(what=name, reason="it is not a list")
    for number, value in enumerate(values):
        if not isinstance(value, cls):
            raise exception.InvalidInput(
                what=f"{name}[{number}]",
                reason=f"a {cls.__name__} was expected, not a {type(value).__name__}")
    return list(values)


def _with_owner(context, claim: Claim) -> Claim:
    """Return the claim with a project and a user: its own, or the context's."""
    _list_of(Claim, "claim", [claim])
    for name in ("project_id", "user_id"):
        if not claim.obj_attr_is_set(name) and getattr(context, name):
            claim = claim.obj_clone()
            setattr(claim, name, getattr(context, name))
    return claim
