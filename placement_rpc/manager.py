# SPDX-License-Identifier: Apache-2.0
"""The server's end of the RPC contract; ``api.py`` is the client's.

Every method authorises, validates, makes one call into ``objects``, and returns. What may be
called from outside is what carries ``exposed`` and nothing else.

Contract versions (:mod:`placement_rpc.upgrade.contract` has the calls of each):

* 1.0: newton: providers, inventories, claims, compute nodes, get by request
* 1.1: ocata: custom resource classes, generations of consumers, limits
* 1.2: 2026.2: batches, find and claim in one call, moves, sync_compute_node, events, explain
"""

import functools
import os
import socket
import time

import oslo_messaging

import placement_rpc
from placement_rpc import exception, intakes
from placement_rpc.exposure import (
    Together,
    an,
    as_generation,
    as_limit,
    as_name,
    as_uuid,
    exposed,
    having,
)
from placement_rpc.metrics import Metrics
from placement_rpc.node_endpoint import NodeEndpoint
from placement_rpc.objects import (
    aggregate,
    allocation,
    fields,
    inventory,
    inventory_changes,
    inventory_settlement,
    outcome,
    placing,
    request,
    resource_class,
    resource_provider,
    service,
    usage,
)
from placement_rpc.objects.candidates import get_candidates
from placement_rpc.objects.claim import (
    Claim,
    ClaimList,
    ClaimResult,
    ClaimResultList,
    ClaimSettlement,
    MoveSettlement,
    ReleaseSettlement,
)
from placement_rpc.objects.group_commit import GroupCommit
from placement_rpc.objects.inventory_settlement import InventoriesSettlement
from placement_rpc.objects.outcome import Request
from placement_rpc.objects.plain import Told
from placement_rpc.query_endpoint import QueryEndpoint
from placement_rpc.upgrade import contract, manifests, pins
from placement_rpc.upgrade.callers import Callers
from placement_rpc.upgrade.gate import InventoryGate

RPC_VERSION = contract.RPC_VERSION


class Manager(NodeEndpoint, QueryEndpoint):
    """Answers the calls of contract 1.x.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    """

    def __init__(self, conf, database):
        self.conf = conf
        self.database = database
        # An operator may let it be as an older release.
        self.release = pins.fixed(conf.upgrade_levels.placement) or manifests.CURRENT
        self.target = oslo_messaging.Target(version=self.release.contract)
        if self.release is not manifests.CURRENT:
            # What it stores is read by processes of that release.
            database.versions = self.release.versions
        self.metrics = Metrics(conf.metrics.slow_call)
        self.group_commit = GroupCommit(
            database, conf.claims.max_settled_together, settled=self.metrics.settled)
        self.inventory_commit = GroupCommit(
            database, conf.claims.max_settled_together, inventory_settlement.settle,
            method="set_inventory")
        self.candidates = get_candidates(conf, database)
        self.gate = InventoryGate(conf, database)
        self.callers = Callers()

    @functools.cached_property
    def policy(self):
        """:class:`placement_rpc.policy.Enforcer`; only what comes through the facade needs it"""
        from placement_rpc import policy
        return policy.Enforcer(self.conf)

    # -- providers ----------------------------------------------------------------------

    @exposed
    def create_provider(self, context, provider, request_id):
        having(an(resource_provider.ResourceProvider, "provider", provider), "uuid", "name")
        asked = Request.of(request_id, "create_provider", {"provider": provider})
        return outcome.once(context, asked, provider.create)

    @exposed
    def update_provider(self, context, provider, request_id):
        having(an(resource_provider.ResourceProvider, "provider", provider), "uuid", "name")
        asked = Request.of(request_id, "update_provider", {"provider": provider})
        return outcome.once(context, asked, provider.rename)

    @exposed
    def delete_provider(self, context, provider_uuid, request_id, generation=None):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        asked = Request.of(request_id, "delete_provider", {"uuid": uuid, "at": generation})
        return outcome.once(context, asked, lambda tx, journal: (
            resource_provider.ResourceProvider.delete(tx, journal, uuid, generation)))

    @exposed
    def get_provider(self, context, provider_uuid):
        return resource_provider.ResourceProvider.get(
            context, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def list_providers(self, context, name=None, member_of=None, marker=None, limit=None):
        return resource_provider.ResourceProviderList.page(
            context,
            name=as_name(name) if name is not None else None,
            member_of=request.MEMBER_OF.coerce(None, "member_of", member_of or []),
            marker=as_uuid("marker", marker) if marker is not None else None,
            limit=as_limit(limit))

    # -- inventories --------------------------------------------------------------------

    @exposed
    def set_inventory(self, context, provider_uuid, inventories, request_id, generation=None):
        settled, = self.inventory_commit.settle([self._set_inventory(
            context, provider_uuid, inventories, request_id, generation)])
        return self.answer(settled)

    def _set_inventory(self, context, provider_uuid, inventories, request_id, generation=None):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        given = having(an(inventory.InventoryList, "inventories", inventories), "objects")
        if len(given.objects) > self.conf.claims.max_resources:
            raise exception.BatchTooLarge(
                what="set of inventories", limit=self.conf.claims.max_resources,
                size=len(given.objects))
        asked = Request.of(request_id, "set_inventory", {
            "uuid": uuid, "inventories": given.objects, "at": generation})
        return InventoriesSettlement(asked, uuid, given.objects, generation, context.deadline)

    @exposed
    def add_inventory(self, context, provider_uuid, given, request_id, generation=None):
        return self._change_inventory(
            context, "add_inventory", inventory_changes.add, provider_uuid, given, request_id,
            generation)

    @exposed
    def update_inventory(self, context, provider_uuid, given, request_id, generation=None):
        return self._change_inventory(
            context, "update_inventory", inventory_changes.update, provider_uuid, given,
            request_id, generation)

    def _change_inventory(self, context, method, change, provider_uuid, given, request_id,
                          generation):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        an(inventory.Inventory, "given", given)
        asked = Request.of(request_id, method, {
            "uuid": uuid, "inventory": given, "at": generation})
        return outcome.once(context, asked, lambda tx, journal: change(
            tx, journal, uuid, given, generation))

    @exposed
    def delete_inventory(self, context, provider_uuid, name, request_id, generation=None):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "delete_inventory", {
            "uuid": uuid, "class": name, "at": generation})
        return outcome.once(context, asked, lambda tx, journal: inventory_changes.delete(
            tx, journal, uuid, name, generation))

    @exposed
    def get_inventory(self, context, provider_uuid):
        return inventory.InventoryList.get(context, as_uuid("provider_uuid", provider_uuid))

    # -- claims -------------------------------------------------------------------------

    def together(self):
        """:returns: dict of intake to :class:`placement_rpc.exposure.Together`, what a server that
        takes several calls at a time may settle in one transaction"""
        return {intakes.CLAIMS: Together(
            ("claim_allocations", "release_allocations"), self.group_commit),
                intakes.FLEET: Together(("set_inventory",), self.inventory_commit)}

    def settlement(self, context, method, arguments):
        """What a call asks for, not settled yet.

        :param method: str, one of those that :meth:`together` names
        :param arguments: dict, as of the call
        :returns: :class:`placement_rpc.objects.settlement.Unsettled`
        :raises InvalidInput: and its kin
        """
        if context.rule is not None:
            self.policy.check_call(context, method)
        return {"claim_allocations": self._claim, "release_allocations": self._release,
                "set_inventory": self._set_inventory}[method](context, **arguments)

    def _claim(self, context, claim, request_id):
        an(Claim, "claim", claim).check(self.conf.claims.max_resources)
        asked = Request.of(request_id, "claim_allocations", {"claim": claim})
        return ClaimSettlement(asked, claim, context.deadline)

    def _release(self, context, consumer_uuid, request_id, consumer_generation=None):
        uuid = as_uuid("consumer_uuid", consumer_uuid)
        generation = as_generation(consumer_generation)
        asked = Request.of(request_id, "release_allocations", {"uuid": uuid, "at": generation})
        return ReleaseSettlement(asked, uuid, generation, context.deadline)

    @exposed
    def claim_allocations(self, context, claim, request_id):
        return self._settle(self._claim(context, claim, request_id))

    @exposed
    def claim_batch(self, context, claims, request_id):
        claims = having(an(ClaimList, "claims", claims), "objects").objects
        limit = self.conf.claims.max_batch
        if len(claims) > limit:
            raise exception.BatchTooLarge(what="batch", limit=limit, size=len(claims))
        for number, claim in enumerate(claims):
            try:
                claim.check(self.conf.claims.max_resources)
            except exception.InvalidInput as error:
                raise exception.InvalidInput(
                    what=f"claims[{number}]", reason=error.text) from None
        told = [Told(claim) for claim in claims]
        asked = Request.of(request_id, "claim_batch", {"claims": told})
        return ClaimResultList(objects=[_batch_result(settled) for settled in (
            self.group_commit.settle([
                ClaimSettlement(asked.part(number, {"claim": told[number]}), claim,
                                context.deadline)
                for number, claim in enumerate(claims)]))])

    @exposed
    def release_allocations(self, context, consumer_uuid, request_id, consumer_generation=None):
        return self._settle(self._release(
            context, consumer_uuid, request_id, consumer_generation))

    @exposed
    def move_allocations(self, context, source_uuid, target_uuid, request_id,
                         consumer_generation=None):
        source, target = as_uuid("source_uuid", source_uuid), as_uuid("target_uuid", target_uuid)
        generation = as_generation(consumer_generation)
        asked = Request.of(request_id, "move_allocations", {
            "source": source, "target": target, "at": generation})
        return self._settle(MoveSettlement(asked, source, target, generation, context.deadline))

    @exposed
    def claim_by_request(self, context, wanted, claim, request_id):
        having(an(request.ResourceRequest, "wanted", wanted), "resources")
        an(Claim, "claim", claim).check_owner()
        if claim.value("allocations"):
            raise exception.InvalidInput(
                what="allocations", reason="claim_by_request chooses the provider itself")
        asked = Request.of(request_id, "claim_by_request", {"wanted": wanted, "claim": claim})
        return ClaimResult.of_settled(placing.claim_by_request(
            context, self.candidates, self.group_commit, asked, wanted, claim))

    def _settle(self, settlement):
        settled, = self.group_commit.settle([settlement])
        return self.answer(settled)

    @staticmethod
    def answer(settled):
        """What a call that was settled returns.

        :param settled: :class:`placement_rpc.objects.settlement.Settled`
        :returns: :class:`placement_rpc.objects.claim.ClaimResult`, or whatever was settled
        :raises PlacementException: when it was refused
        """
        if settled.error is not None:
            raise settled.error
        if isinstance(settled.result, ClaimResult):
            return ClaimResult.of_settled(settled)
        return settled.result

    # -- reading ------------------------------------------------------------------------

    @exposed
    def get_allocations(self, context, consumer_uuid):
        return allocation.AllocationList.of_consumer(
            context, as_uuid("consumer_uuid", consumer_uuid))

    @exposed
    def get_provider_allocations(self, context, provider_uuid):
        return allocation.AllocationList.of_provider(
            context, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_usages(self, context, provider_uuid):
        return usage.UsageList.get(context, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_by_request(self, context, wanted):
        having(an(request.ResourceRequest, "wanted", wanted), "resources")
        return resource_provider.ResourceProviderList.of_candidates(
            self.candidates.find(wanted))

    # -- aggregates ---------------------------------------------------------------------

    @exposed
    def get_aggregates(self, context, provider_uuid):
        return aggregate.ProviderAggregates.get(
            context, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def set_aggregates(self, context, aggregates, request_id):
        having(an(aggregate.ProviderAggregates, "aggregates", aggregates),
                "provider_uuid", "aggregates")
        asked = Request.of(request_id, "set_aggregates", {"aggregates": aggregates})
        return outcome.once(context, asked, aggregates.replace)

    # -- resource classes ---------------------------------------------------------------

    @exposed
    def resource_class_list(self, context, marker=None, limit=None):
        return resource_class.ResourceClassList.page(context, marker, as_limit(limit))

    @exposed
    def resource_class_get(self, context, name):
        return resource_class.ResourceClass.get(context, name)

    @exposed
    def resource_class_create(self, context, given, request_id):
        having(an(resource_class.ResourceClass, "given", given), "name")
        asked = Request.of(request_id, "resource_class_create", {"class": given})
        return outcome.once(context, asked, given.create)

    @exposed
    def resource_class_rename(self, context, name, given, request_id):
        having(an(resource_class.ResourceClass, "given", given), "name")
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_rename", {"class": given, "of": name})
        return outcome.once(context, asked, lambda tx, journal: given.rename(
            tx, journal, name))

    @exposed
    def resource_class_delete(self, context, name, request_id):
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_delete", {"name": name})
        return outcome.once(context, asked, lambda tx, journal: (
            resource_class.ResourceClass.delete(tx, journal, name)))

    # -- the service itself -------------------------------------------------------------

    @exposed
    def get_request_result(self, context, settled_id):
        return outcome.RequestResult.get(
            context, fields.RequestId(part=True).coerce(None, "settled_id", settled_id))

    @exposed
    def ping(self, context):
        """Answers without touching the store: the bus works and somebody listens."""
        return {"host": self.conf.conductor.host or socket.gethostname(), "pid": os.getpid(),
                "version": placement_rpc.__version__, "rpc_version": self.release.contract,
                "time": time.time()}

    @exposed
    def get_versions(self, context):
        return service.ServiceList.get(context, self.conf.conductor.service_down_time)


def _batch_result(settled):
    error = settled.error
    if error is None:
        return ClaimResult.of_settled(settled)
    if not isinstance(error, exception.PlacementException) or error.retryable:
        # Nothing is known of this one: the whole call is to be made again, under the same id.
        raise error
    return ClaimResult(replayed=settled.replayed, error={
        "code": error.code, "kwargs": error.kwargs})
