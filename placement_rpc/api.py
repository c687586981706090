# SPDX-License-Identifier: Apache-2.0
"""The client's end of the RPC contract: what a nova-compute or a scheduler imports.

::

    api = PlacementAPI(transport_url="rabbit://user:secret@broker/")
    api.claim_allocations(context, Claim(
        consumer_uuid=instance.uuid, project_id=instance.project_id, user_id=instance.user_id,
        allocations={node.uuid: {"VCPU": 2, "MEMORY_MB": 2048}}))

A call returns the result, or raises an error of :mod:`placement_rpc.exception`. What may
succeed later is tried again until the call's deadline, always under the same request id, so
that it is done once however often it is sent.
"""

import time
import uuid

from placement_rpc import exception
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.claim import Claim, ClaimList
from placement_rpc.objects.fields import Uuid, WholeNumber
from placement_rpc.objects.inventory import Inventory, InventoryList
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.resource_class import ResourceClass, canonical
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from placement_rpc.rpc.client import Client, new_request_id, own_context
from placement_rpc.rpc.endpoint import as_name, as_uuid
from placement_rpc.versions.contract import RPC_VERSION

__all__ = ["RPC_VERSION", "Claim", "Inventory", "PlacementAPI", "ResourceRequest", "as_name",
           "as_uuid", "canonical", "new_request_id"]

# The name space of the uuids of providers that were created without one.
_NEW_PROVIDERS = uuid.UUID("6e7d1f0c-3d3c-5b0b-9f5e-0d6b7a0c9a11")


class PlacementAPI(Client):
    """Calls to the placement service.

    Thread-safe; make one for a process, after it forked.

    :param transport: ``"rpc"`` for the bus; ``"local"`` for a manager in this process, which
        needs ``manager``
    :param conf: :class:`oslo_config.cfg.ConfigOpts` made by :mod:`placement_rpc.conf`; None
        for one of defaults
    :param transport_url: str, in place of the configured one
    :param manager: :class:`placement_rpc.manager.Manager`, for the local transport
    :param pin: str, in place of the configured ``[upgrade_levels] placement``: a release or a
        version of the contract to keep to, or ``auto``
    :param object_versions: dict of object name to the version in which it is to be answered; None
        for those of this release, or of the pin
    :param topic: str, where the service listens
    :param deadline: float, seconds that a call has, in place of the configured ones

    Every method takes ``context`` first: any :class:`oslo_context.context.RequestContext`, or
    None. Every method takes ``timeout``, seconds for the call in all; None for the configured
    deadline. Every change takes ``request_id``; None for a new one. A method may raise, beside
    what it names: InvalidInput and its kin for bad input, DeadlineExceeded when the time is
    over and the outcome unknown, UnsupportedCall when the service is too old.
    """

    # -- providers ----------------------------------------------------------------------

    def create_provider(self, context, name, provider_uuid=None, request_id=None, timeout=None):
        """Create a resource provider.

        :param name: str, 1 to 200 characters, without blanks at its ends
        :param provider_uuid: str; None for a new one
        :returns: :class:`ResourceProvider` at generation 0
        :raises NameInUse: :raises ProviderExists:
        """
        request_id = request_id or new_request_id()
        if provider_uuid is None:
            # Of the request, so that the same request again asks for the same provider.
            provider_uuid = str(uuid.uuid5(_NEW_PROVIDERS, str(request_id)))
        provider = ResourceProvider(uuid=provider_uuid, name=name)
        return self._change(context, "create_provider", request_id, timeout, provider=provider)

    def update_provider(self, context, provider_uuid, name, generation=None, request_id=None,
                        timeout=None):
        """Rename a resource provider.

        :returns: :class:`ResourceProvider`
        :raises ProviderNotFound: :raises ConcurrentUpdate: :raises NameInUse:
        """
        provider = ResourceProvider(uuid=provider_uuid, name=name)
        if generation is not None:
            provider.generation = generation
        return self._change(context, "update_provider", request_id, timeout, provider=provider)

    def delete_provider(self, context, provider_uuid, generation=None, request_id=None,
                        timeout=None):
        """Delete a resource provider that has no allocations.

        :raises ProviderNotFound: :raises ProviderInUse: :raises ConcurrentUpdate:
        """
        self._change(context, "delete_provider", request_id, timeout,
                     provider_uuid=provider_uuid, generation=generation)

    def get_provider(self, context, provider_uuid, timeout=None):
        """:returns: :class:`ResourceProvider`; :raises ProviderNotFound:"""
        return self._call(context, "get_provider", timeout, provider_uuid=provider_uuid)

    def list_providers(self, context, name=None, member_of=None, marker=None, limit=None,
                       timeout=None):
        """Resource providers, oldest first.

        :param name: str, only the one of this name
        :param member_of: list of lists of aggregate uuids: in one of each list
        :param marker: str, uuid of the provider after which to begin
        :param limit: int, how many at the most; None for all
        :returns: :class:`ResourceProviderList`
        :raises ProviderNotFound: when the marker is none
        """
        found, ends = [], time.monotonic() + self._seconds(timeout)
        if limit is not None:
            limit = WholeNumber(minimum=1).coerce(None, "limit", limit)
        while limit is None or len(found) < limit:
            left = None if limit is None else limit - len(found)
            page = self._call(
                context, "list_providers", max(0, ends - time.monotonic()), name=name,
                member_of=member_of, marker=marker, limit=left).objects
            found += page
            if not page or name is not None:
                break
            marker = page[-1].uuid
        return ResourceProviderList(objects=found)

    # -- inventories --------------------------------------------------------------------

    def set_inventory(self, context, provider_uuid, inventories, generation=None,
                      request_id=None, timeout=None):
        """Set all inventories of a provider. Equal ones change nothing.

        :param inventories: list of :class:`placement_rpc.objects.inventory.Inventory`
        :param generation: int, the provider's, as the caller read it; None for whatever it is
        :returns: :class:`InventoryList`
        :raises ProviderNotFound: :raises ResourceClassNotFound: :raises InvalidInventory:
        :raises InventoryInUse: :raises CapacityConflict: :raises ConcurrentUpdate:
        """
        return self._change(
            context, "set_inventory", request_id, timeout, provider_uuid=provider_uuid,
            inventories=InventoryList(objects=_listed(Inventory, "inventories", inventories)),
            generation=generation)

    def add_inventory(self, context, provider_uuid, inventory, generation=None,
                      request_id=None, timeout=None):
        """Add the inventory of one class.

        :returns: :class:`InventoryList`, all of the provider's
        :raises InventoryExists: and what :meth:`set_inventory` raises
        """
        return self._change(context, "add_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, given=inventory,
                            generation=generation)

    def update_inventory(self, context, provider_uuid, inventory, generation=None,
                         request_id=None, timeout=None):
        """Change the inventory of one class.

        :returns: :class:`InventoryList`, all of the provider's
        :raises InventoryNotFound: and what :meth:`set_inventory` raises
        """
        return self._change(context, "update_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, given=inventory,
                            generation=generation)

    def delete_inventory(self, context, provider_uuid, resource_class, generation=None,
                         request_id=None, timeout=None):
        """Delete the inventory of one class.

        :returns: :class:`InventoryList`, what is left
        :raises InventoryNotFound: :raises InventoryInUse: :raises ConcurrentUpdate:
        """
        return self._change(context, "delete_inventory", request_id, timeout,
                            provider_uuid=provider_uuid, name=resource_class,
                            generation=generation)

    def get_inventory(self, context, provider_uuid, timeout=None):
        """:returns: :class:`InventoryList`; :raises ProviderNotFound:"""
        return self._call(context, "get_inventory", timeout, provider_uuid=provider_uuid)

    # -- claims -------------------------------------------------------------------------

    def claim_allocations(self, context, claim, request_id=None, timeout=None, cast=False):
        """Let a consumer hold what the claim says, in place of what it held.

        As a cast it returns when the request is safe and not when it is done: in a durable queue
        whose broker has confirmed it, from where it is settled even if every process of the
        service is killed meanwhile. Casts are settled in the order in which they were sent. The
        outcome is told by ``allocation.create``, ``allocation.update`` or
        ``allocation.claim.refused``, which carry the request's id, and by
        :meth:`get_request_result`. ``timeout`` is for the sending alone, and what is raised
        below is raised by calls.

        :param claim: :class:`placement_rpc.objects.claim.Claim`; its project and user are the
            context's where they are not set
        :param cast: bool
        :returns: :class:`placement_rpc.objects.claim.ClaimResult`; of a cast, the request's id
        :raises CapacityExceeded: :raises ConstraintsViolated: :raises ConsumerConflict:
        :raises ProviderNotFound: :raises ResourceClassNotFound: :raises RequestIdReused:
        """
        context = own_context(context)
        claim = _owned(context, claim)
        if not cast:
            return self._change(context, "claim_allocations", request_id, timeout, claim=claim)
        # Nobody could be told later on.
        claim.check(max_resources=float("inf"))
        return self._cast(context, "claim_allocations", request_id, timeout, claim=claim)

    def claim_batch(self, context, claims, request_id=None, timeout=None):
        """Make many claims in one call, each accepted or refused on its own.

        :param claims: list of :class:`placement_rpc.objects.claim.Claim`
        :returns: list in the same order, of :class:`placement_rpc.objects.claim.ClaimResult`
            for one accepted and the PlacementException for one refused
        :raises BatchTooLarge:
        """
        context = own_context(context)
        answer = self._change(
            context, "claim_batch", request_id, timeout,
            claims=ClaimList(objects=[
                _owned(context, claim) for claim in _listed(Claim, "claims", claims)]))
        return [each.exception() or each for each in answer.objects]

    def claim_by_request(self, context, wanted, claim, request_id=None, timeout=None):
        """Find a provider with room and claim from it, in one call.

        :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`
        :param claim: :class:`placement_rpc.objects.claim.Claim` without allocations
        :returns: :class:`placement_rpc.objects.claim.ClaimResult`; its ``generations`` name
            the provider
        :raises NoCandidates: :raises ResourceClassNotFound: :raises ConsumerConflict:
        """
        context = own_context(context)
        return self._change(context, "claim_by_request", request_id, timeout, wanted=wanted,
                            claim=_owned(context, claim))

    def release_allocations(self, context, consumer_uuid, consumer_generation=None,
                            request_id=None, timeout=None, cast=False):
        """Give back everything that a consumer holds.

        :param cast: bool, as of :meth:`claim_allocations`
        :returns: :class:`placement_rpc.objects.claim.ClaimResult`; of a cast, the request's id
        :raises ConsumerNotFound: when it holds nothing; :raises ConsumerConflict:
        """
        if not cast:
            return self._change(context, "release_allocations", request_id, timeout,
                                consumer_uuid=consumer_uuid,
                                consumer_generation=consumer_generation)
        return self._cast(
            context, "release_allocations", request_id, timeout,
            consumer_uuid=Uuid().coerce(None, "consumer_uuid", consumer_uuid),
            consumer_generation=consumer_generation)

    def move_allocations(self, context, source_uuid, target_uuid, consumer_generation=None,
                         request_id=None, timeout=None):
        """Give everything that one consumer holds to another that holds nothing.

        :param consumer_generation: int, the source's, as the caller read it
        :returns: :class:`placement_rpc.objects.claim.ClaimResult` of the target
        :raises ConsumerNotFound: :raises ConsumerConflict:
        """
        return self._change(context, "move_allocations", request_id, timeout,
                            source_uuid=source_uuid, target_uuid=target_uuid,
                            consumer_generation=consumer_generation)

    # -- reading ------------------------------------------------------------------------

    def get_allocations(self, context, consumer_uuid, timeout=None):
        """:returns: :class:`placement_rpc.objects.allocation.AllocationList` of a consumer"""
        return self._call(context, "get_allocations", timeout, consumer_uuid=consumer_uuid)

    def get_provider_allocations(self, context, provider_uuid, timeout=None):
        """:returns: :class:`placement_rpc.objects.allocation.AllocationList` of a provider

        :raises ProviderNotFound:
        """
        return self._call(context, "get_provider_allocations", timeout,
                          provider_uuid=provider_uuid)

    def get_usages(self, context, provider_uuid, timeout=None):
        """:returns: :class:`placement_rpc.objects.usage.UsageList`; :raises ProviderNotFound:"""
        return self._call(context, "get_usages", timeout, provider_uuid=provider_uuid)

    def get_by_request(self, context, wanted, timeout=None):
        """The providers that have room.

        :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`
        :returns: :class:`ResourceProviderList`
        :raises ResourceClassNotFound:
        """
        return self._call(context, "get_by_request", timeout, wanted=wanted)

    # -- aggregates ---------------------------------------------------------------------

    def get_aggregates(self, context, provider_uuid, timeout=None):
        """:returns: :class:`ProviderAggregates`; :raises ProviderNotFound:"""
        return self._call(context, "get_aggregates", timeout, provider_uuid=provider_uuid)

    def set_aggregates(self, context, provider_uuid, aggregates, generation=None,
                       request_id=None, timeout=None):
        """Put a provider into these aggregates and no others.

        :param aggregates: list of uuids
        :returns: :class:`ProviderAggregates`
        :raises ProviderNotFound: :raises ConcurrentUpdate:
        """
        if not isinstance(aggregates, (list, tuple, set, frozenset)):
            raise exception.InvalidInput(what="aggregates", reason="they are not a list")
        wanted = ProviderAggregates(provider_uuid=provider_uuid, aggregates=list(aggregates))
        # In one order, so that the same request again says the same.
        wanted.aggregates = sorted(wanted.aggregates)
        if generation is not None:
            wanted.generation = generation
        return self._change(context, "set_aggregates", request_id, timeout, aggregates=wanted)

    # -- resource classes ---------------------------------------------------------------

    def resource_class_list(self, context, marker=None, limit=None, timeout=None):
        """Resource classes in alphabetical order.

        :param marker: str, the name after which to begin
        :param limit: int, how many at the most; the service may answer fewer
        :returns: :class:`placement_rpc.objects.resource_class.ResourceClassList`
        """
        return self._call(context, "resource_class_list", timeout, marker=marker, limit=limit)

    def resource_class_get(self, context, name, timeout=None):
        """:returns: :class:`ResourceClass`; :raises ResourceClassNotFound:"""
        return self._call(context, "resource_class_get", timeout, name=name)

    def resource_class_create(self, context, name, request_id=None, timeout=None):
        """Create a custom resource class, ``CUSTOM_...``.

        :returns: :class:`ResourceClass`
        :raises ResourceClassExists: :raises ResourceClassStandard:
        """
        return self._change(context, "resource_class_create", request_id, timeout,
                            given=ResourceClass(name=name))

    def resource_class_rename(self, context, name, new_name, request_id=None, timeout=None):
        """Rename a custom resource class.

        :returns: :class:`ResourceClass`
        :raises ResourceClassNotFound: :raises ResourceClassExists:
        :raises ResourceClassStandard:
        """
        return self._change(context, "resource_class_rename", request_id, timeout, name=name,
                            given=ResourceClass(name=new_name))

    def resource_class_delete(self, context, name, request_id=None, timeout=None):
        """Delete a custom resource class.

        :raises ResourceClassNotFound: :raises ResourceClassInUse:
        :raises ResourceClassStandard:
        """
        self._change(context, "resource_class_delete", request_id, timeout, name=name)

    # -- compute nodes ------------------------------------------------------------------

    def sync_compute_node(self, context, node, allocations, snapshot_at, shares_disk=None,
                          devices_in_use=None, heal=False, request_id=None, timeout=None):
        """One periodic cycle of a resource tracker.

        The node is created where it is new, and what changed of it is written; a cycle in which
        nothing changed writes nothing. What the store and the tracker say of who uses the node
        is compared; a consumer that changed after the tracker looked is left alone.

        :param node: :class:`placement_rpc.objects.nova.compute_node.ComputeNode`
        :param allocations: dict of consumer uuid to dict of ``project_id``, ``user_id`` and
            ``resources``, a dict of class to amount. DISK_GB of a node that shares a disk is
            taken to be of the provider that has it
        :param snapshot_at: float, seconds since the epoch, when the tracker looked
        :param shares_disk: bool, whether the node's disk is another provider's; None where that
            is not said
        :param devices_in_use: dict of class of PCI devices to how many are claimed or allocated,
            which the node's pools leave out; None where that is not said
        :param heal: bool, whether the store is to have what the tracker says
        :returns: :class:`placement_rpc.objects.sync_result.SyncResult`
        :raises ComputeNodeExists: :raises NameInUse: :raises CapacityConflict:
        :raises InventoryInUse: :raises ServiceTooOld:
        """
        return self._change(
            context, "sync_compute_node", request_id, timeout, node=node,
            allocations=allocations, snapshot_at=snapshot_at, shares_disk=shares_disk,
            devices_in_use=devices_in_use, heal=heal)

    def object_class_action_versions(self, context, objname, objmethod, object_versions, args,
                                     kwargs, timeout=None):
        """Call a remotable method of a class of nova's objects.

        With this and the two that follow a PlacementAPI is what
        :attr:`placement_rpc.objects.nova.base.NovaObject.indirection_api` can be set to on a
        machine without a database.

        :param object_versions: dict of object name to the version in which to answer
        :returns: what the method returned
        """
        return self._call(
            context, "object_class_action_versions", timeout, objname=objname,
            objmethod=objmethod, object_versions=object_versions, args=list(args),
            kwargs=kwargs)

    def object_action(self, context, objinst, objmethod, args, kwargs, request_id=None,
                      timeout=None):
        """Call a remotable method of an object.

        :returns: tuple of dict of the fields that are others now, and what the method returned
        """
        updates, result = self._change(
            context, "object_action", request_id, timeout, objinst=objinst,
            objmethod=objmethod, args=list(args), kwargs=kwargs)
        return updates, result

    def object_backport_versions(self, context, objinst, object_versions, timeout=None):
        """An object that is newer than its receiver, as the receiver knows it.

        :param objinst: a versioned object, or what travels of one
        :returns: the object at these versions, as it travels
        """
        return self._call(context, "object_backport_versions", timeout, objinst=objinst,
                          object_versions=object_versions)

    # -- events and reasons -------------------------------------------------------------

    def explain(self, context, wanted, marker=None, limit=None, timeout=None):
        """Which providers fit a request, and for each that does not, which rules fail.

        :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`; its limit is not
            looked at
        :param marker: str, uuid of the provider after which to begin
        :param limit: int, how many providers at the most; the service may answer fewer
        :returns: :class:`placement_rpc.objects.explanation.ExplanationList`
        :raises ResourceClassNotFound: :raises ProviderNotFound: when the marker is none
        """
        return self._call(context, "explain", timeout, wanted=wanted, marker=marker, limit=limit)

    def verify_index(self, context, server=None, after=0, limit=None, timeout=None):
        """Have a conductor compare a part of its candidate index with the store.

        :param server: str, which one: its host, binary and worker with dots between them; None
            for whichever answers
        :param after: int, the provider row id after which to begin
        :param limit: int, how many providers at the most; the service may look at fewer
        :returns: dict of ``providers``, ``inventories``, ``bytes``, ``position``,
            ``differences`` (provider row id to text) and ``next`` (None at the end); None where
            the conductor has no index
        """
        return self._call(context, "verify_index", timeout, server=server, after=after,
                          limit=limit)

    def get_event_positions(self, context, timeout=None):
        """Where the events begin and end.

        Who reads this, then lists, and then follows the events after ``last`` misses nothing.

        :returns: :class:`placement_rpc.objects.event_page.EventPositions`
        """
        return self._call(context, "get_event_positions", timeout)

    def list_events(self, context, after=None, limit=None, timeout=None):
        """Events by their position.

        :param after: int, the position after which to begin; None for the oldest that is kept
        :param limit: int, how many at the most; the service may answer fewer
        :returns: :class:`placement_rpc.objects.event_page.EventPage`
        :raises EventsPruned: :raises InvalidInput: for a position that was not given yet
        """
        return self._call(context, "list_events", timeout, after=after, limit=limit)

    # -- the service itself -------------------------------------------------------------

    def get_request_result(self, context, request_id, timeout=None):
        """What became of a request; its ``result()`` returns or raises the outcome.

        :param request_id: str; of an entry of a batch, the batch's for the first and, with
            ``#`` and its place, as ``ID#1``, for each further one
        :returns: :class:`placement_rpc.objects.request_result.RequestResult`
        :raises RequestNotFound: when nothing is known of it
        """
        return self._call(context, "get_request_result", timeout, settled_id=request_id)

    def ping(self, context, timeout=None):
        """:returns: dict of host, pid, version, rpc_version, time of the one that answered"""
        return self._call(context, "ping", timeout)

    def get_versions(self, context, timeout=None):
        """:returns: :class:`placement_rpc.objects.service.ServiceList`"""
        return self._call(context, "get_versions", timeout)


def _listed(cls, name, values):
    """:returns: list of objects of the class; :raises InvalidInput: for anything else"""
    if not isinstance(values, (list, tuple)):
        raise exception.InvalidInput(what=name, reason="it is not a list")
    for number, value in enumerate(values):
        if not isinstance(value, cls):
            raise exception.InvalidInput(
                what=f"{name}[{number}]",
                reason=f"a {cls.__name__} was expected, not a {type(value).__name__}")
    return list(values)


def _owned(context, claim):
    """A claim with project and user: its own, or the context's."""
    _listed(Claim, "claim", [claim])
    for name in ("project_id", "user_id"):
        if not claim.obj_attr_is_set(name) and getattr(context, name):
            claim = claim.obj_clone()
            setattr(claim, name, getattr(context, name))
    return claim
