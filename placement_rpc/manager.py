# SPDX-License-Identifier: Apache-2.0
"""The server's end of the RPC contract; ``api.py`` is the client's.

Every method authorises, validates, makes one call into ``objects``, and returns. What may be
called from outside is what carries ``exposed`` and nothing else.

Contract versions (:mod:`placement_rpc.versions.contract` has the calls of each):

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
from placement_rpc import exception
from placement_rpc.accounting import aggregates as aggregate_rules
from placement_rpc.accounting import (
    find_and_claim,
    idempotency,
    inventory_batch,
    providers,
    reads,
    resource_classes,
)
from placement_rpc.accounting.claims import ClaimChange, MoveChange, ReleaseChange
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.group_commit import GroupCommit
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventories import add, delete, update
from placement_rpc.accounting.inventory_batch import InventoryReplacement
from placement_rpc.candidates import explanation
from placement_rpc.candidates.search import get_candidates
from placement_rpc.context import versions_of
from placement_rpc.nova import remotable, sync
from placement_rpc.nova.changes import TrackerReport
from placement_rpc.nova.compute_node import ComputeNodeStore
from placement_rpc.nova.inventory import in_use
from placement_rpc.objects import (
    aggregate,
    fields,
    inventory,
    request,
    resource_class,
    resource_provider,
)
from placement_rpc.objects.claim import Claim, ClaimList, ClaimResult, ClaimResultList
from placement_rpc.objects.nova.base import NovaObject
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.rpc import routing
from placement_rpc.rpc.endpoint import (
    MAX_PAGE,
    BatchRule,
    as_generation,
    as_limit,
    as_name,
    as_truth,
    as_uuid,
    exposed,
    instance_of,
    require_fields,
)
from placement_rpc.telemetry.metrics import Metrics
from placement_rpc.upgrade.gate import InventoryGate
from placement_rpc.versions import contract, pins, releases
from placement_rpc.versions.seen_clients import SeenClients

RPC_VERSION = contract.RPC_VERSION


class Manager:
    """Answers the calls of contract 1.x.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    """

    def __init__(self, conf, database):
        self.conf = conf
        self.database = database
        # An operator may let it be as an older release.
        self.release = pins.fixed(conf.upgrade_levels.placement) or releases.CURRENT
        self.target = oslo_messaging.Target(version=self.release.contract)
        if self.release is not releases.CURRENT:
            # What it stores is read by processes of that release.
            database.versions = self.release.versions
        self.metrics = Metrics(conf.metrics.slow_call)
        self.group_commit = GroupCommit(
            database, conf.claims.max_settled_together, settled=self.metrics.settled)
        self.inventory_commit = GroupCommit(
            database, conf.claims.max_settled_together, inventory_batch.settle,
            method="set_inventory")
        self.candidates = get_candidates(conf, database)
        self.gate = InventoryGate(conf, database)
        self.callers = SeenClients()

    @functools.cached_property
    def policy(self):
        """:class:`placement_rpc.policy.Enforcer`; only what comes through the facade needs it"""
        from placement_rpc import policy
        return policy.Enforcer(self.conf)

    # -- providers ----------------------------------------------------------------------

    @exposed
    def create_provider(self, context, provider, request_id):
        require_fields(
            instance_of(resource_provider.ResourceProvider, "provider", provider), "uuid", "name")
        asked = Request.of(request_id, "create_provider", {"provider": provider})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.create(tx, outbox, provider))

    @exposed
    def update_provider(self, context, provider, request_id):
        require_fields(
            instance_of(resource_provider.ResourceProvider, "provider", provider), "uuid", "name")
        asked = Request.of(request_id, "update_provider", {"provider": provider})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.rename(tx, outbox, provider))

    @exposed
    def delete_provider(self, context, provider_uuid, request_id, generation=None):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        asked = Request.of(request_id, "delete_provider", {"uuid": uuid, "at": generation})
        return idempotency.run_once(context, asked, lambda tx, outbox: (
            providers.delete(tx, outbox, uuid, generation)))

    @exposed
    def get_provider(self, context, provider_uuid):
        return reads.provider(
            self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def list_providers(self, context, name=None, member_of=None, marker=None, limit=None):
        return reads.providers(
            self.database,
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
        given = require_fields(
            instance_of(inventory.InventoryList, "inventories", inventories), "objects")
        if len(given.objects) > self.conf.claims.max_resources:
            raise exception.BatchTooLarge(
                what="set of inventories", limit=self.conf.claims.max_resources,
                size=len(given.objects))
        asked = Request.of(request_id, "set_inventory", {
            "uuid": uuid, "inventories": given.objects, "at": generation})
        return InventoryReplacement(asked, uuid, given.objects, generation, context.deadline)

    @exposed
    def add_inventory(self, context, provider_uuid, given, request_id, generation=None):
        return self._change_inventory(
            context, "add_inventory", add, provider_uuid, given, request_id,
            generation)

    @exposed
    def update_inventory(self, context, provider_uuid, given, request_id, generation=None):
        return self._change_inventory(
            context, "update_inventory", update, provider_uuid, given,
            request_id, generation)

    def _change_inventory(self, context, method, change, provider_uuid, given, request_id,
                          generation):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        instance_of(inventory.Inventory, "given", given)
        asked = Request.of(request_id, method, {
            "uuid": uuid, "inventory": given, "at": generation})
        return idempotency.run_once(context, asked, lambda tx, outbox: change(
            tx, outbox, uuid, given, generation))

    @exposed
    def delete_inventory(self, context, provider_uuid, name, request_id, generation=None):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "delete_inventory", {
            "uuid": uuid, "class": name, "at": generation})
        return idempotency.run_once(context, asked, lambda tx, outbox: delete(
            tx, outbox, uuid, name, generation))

    @exposed
    def get_inventory(self, context, provider_uuid):
        return reads.inventories(self.database, as_uuid("provider_uuid", provider_uuid))

    # -- claims -------------------------------------------------------------------------

    def together(self):
        """Return which calls a server may settle in one transaction.

        :returns: dict of queue to :class:`placement_rpc.rpc.endpoint.BatchRule`
        """
        return {routing.CLAIMS: BatchRule(
            ("claim_allocations", "release_allocations"), self.group_commit),
                routing.FLEET: BatchRule(("set_inventory",), self.inventory_commit)}

    def settlement(self, context, method, arguments):
        """What a call asks for, not settled yet.

        :param method: str, one of those that :meth:`together` names
        :param arguments: dict, as of the call
        :returns: :class:`placement_rpc.accounting.batch.PendingRequest`
        :raises InvalidInput: and its kin
        """
        if context.rule is not None:
            self.policy.check_call(context, method)
        return {"claim_allocations": self._claim, "release_allocations": self._release,
                "set_inventory": self._set_inventory}[method](context, **arguments)

    def _claim(self, context, claim, request_id):
        instance_of(Claim, "claim", claim).check(self.conf.claims.max_resources)
        asked = Request.of(request_id, "claim_allocations", {"claim": claim})
        return ClaimChange(asked, claim, context.deadline)

    def _release(self, context, consumer_uuid, request_id, consumer_generation=None):
        uuid = as_uuid("consumer_uuid", consumer_uuid)
        generation = as_generation(consumer_generation)
        asked = Request.of(request_id, "release_allocations", {"uuid": uuid, "at": generation})
        return ReleaseChange(asked, uuid, generation, context.deadline)

    @exposed
    def claim_allocations(self, context, claim, request_id):
        return self._settle(self._claim(context, claim, request_id))

    @exposed
    def claim_batch(self, context, claims, request_id):
        claims = require_fields(instance_of(ClaimList, "claims", claims), "objects").objects
        limit = self.conf.claims.max_batch
        if len(claims) > limit:
            raise exception.BatchTooLarge(what="batch", limit=limit, size=len(claims))
        for number, claim in enumerate(claims):
            try:
                claim.check(self.conf.claims.max_resources)
            except exception.InvalidInput as error:
                raise exception.InvalidInput(
                    what=f"claims[{number}]", reason=error.text) from None
        told = [CanonicalForm(claim) for claim in claims]
        asked = Request.of(request_id, "claim_batch", {"claims": told})
        return ClaimResultList(objects=[_batch_result(settled) for settled in (
            self.group_commit.settle([
                ClaimChange(asked.part(number, {"claim": told[number]}), claim,
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
        return self._settle(MoveChange(asked, source, target, generation, context.deadline))

    @exposed
    def claim_by_request(self, context, wanted, claim, request_id):
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        instance_of(Claim, "claim", claim).check_owner()
        if claim.value("allocations"):
            raise exception.InvalidInput(
                what="allocations", reason="claim_by_request chooses the provider itself")
        asked = Request.of(request_id, "claim_by_request", {"wanted": wanted, "claim": claim})
        return ClaimResult.of_settled(find_and_claim.claim_by_request(
            context, self.candidates, self.group_commit, asked, wanted, claim))

    def _settle(self, settlement):
        settled, = self.group_commit.settle([settlement])
        return self.answer(settled)

    @staticmethod
    def answer(settled):
        """What a call that was settled returns.

        :param settled: :class:`placement_rpc.accounting.batch.Outcome`
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
        return reads.consumer_allocations(
            self.database, as_uuid("consumer_uuid", consumer_uuid))

    @exposed
    def get_provider_allocations(self, context, provider_uuid):
        return reads.provider_allocations(
            self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_usages(self, context, provider_uuid):
        return reads.usages(self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_by_request(self, context, wanted):
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        return resource_provider.ResourceProviderList.of_candidates(
            self.candidates.find(wanted))

    # -- aggregates ---------------------------------------------------------------------

    @exposed
    def get_aggregates(self, context, provider_uuid):
        return reads.aggregates(
            self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def set_aggregates(self, context, aggregates, request_id):
        require_fields(instance_of(aggregate.ProviderAggregates, "aggregates", aggregates),
                "provider_uuid", "aggregates")
        asked = Request.of(request_id, "set_aggregates", {"aggregates": aggregates})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: aggregate_rules.replace(tx, outbox, aggregates))

    # -- resource classes ---------------------------------------------------------------

    @exposed
    def resource_class_list(self, context, marker=None, limit=None):
        return reads.resource_class_page(self.database, marker, as_limit(limit))

    @exposed
    def resource_class_get(self, context, name):
        return reads.resource_class(self.database, name)

    @exposed
    def resource_class_create(self, context, given, request_id):
        require_fields(instance_of(resource_class.ResourceClass, "given", given), "name")
        asked = Request.of(request_id, "resource_class_create", {"class": given})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: resource_classes.create(tx, outbox, given.name))

    @exposed
    def resource_class_rename(self, context, name, given, request_id):
        require_fields(instance_of(resource_class.ResourceClass, "given", given), "name")
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_rename", {"class": given, "of": name})
        return idempotency.run_once(context, asked, lambda tx, outbox: resource_classes.rename(
            tx, outbox, name, given.name))

    @exposed
    def resource_class_delete(self, context, name, request_id):
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_delete", {"name": name})
        return idempotency.run_once(context, asked, lambda tx, outbox: (
            resource_classes.delete(tx, outbox, name)))

    # -- compute nodes ------------------------------------------------------------------

    @exposed
    def sync_compute_node(self, context, node, allocations, snapshot_at, request_id,
                          shares_disk=None, devices_in_use=None, heal=False):
        require_fields(instance_of(ComputeNode, "node", node), "host", "hypervisor_hostname")
        allocations = sync.allocations_of(allocations)
        said = TrackerReport(as_truth("shares_disk", shares_disk),
                    in_use(devices_in_use) if devices_in_use is not None else
                    sync.devices_of(allocations))
        asked = Request.of(request_id, "sync_compute_node", {
            "node": node, "allocations": allocations, "at": snapshot_at, "said": [
                said.shares_disk, said.devices_in_use], "heal": as_truth("heal", heal)})
        context.nodes = ComputeNodeStore(self.gate.settings)
        return sync.Sync(context, self.group_commit, asked, node, allocations, snapshot_at,
                              said, bool(heal)).run()

    @exposed
    def object_class_action_versions(self, context, objname, objmethod, object_versions, args,
                                     kwargs):
        context.receiver = releases.lower(context.receiver, versions_of(object_versions))
        context.nodes = ComputeNodeStore(self.gate.settings)
        return remotable.class_action(context, objname, objmethod, args, kwargs)

    @exposed
    def object_action(self, context, objinst, objmethod, args, kwargs, request_id=None):
        instance_of(NovaObject, "objinst", objinst)
        context.nodes = ComputeNodeStore(self.gate.settings)
        if request_id is None:
            # nova's own callers make none.
            return list(remotable.action(context, objinst, objmethod, args, kwargs))
        asked = Request.of(request_id, "object_action", {
            "object": objinst, "method": objmethod, "args": args, "kwargs": kwargs})

        def act(tx, outbox):
            context.transaction = tx, outbox
            try:
                return list(remotable.action(
                    context, objinst.obj_clone(), objmethod, args, kwargs))
            finally:
                context.transaction = None

        return idempotency.run_once(context, asked, act)

    @exposed
    def object_backport_versions(self, context, objinst, object_versions):
        if not hasattr(objinst, "obj_to_primitive"):
            raise exception.InvalidInput(what="objinst", reason="it is no object")
        return objinst.obj_to_primitive(version_manifest=versions_of(object_versions))

    # -- events and reasons -------------------------------------------------------------

    @exposed
    def explain(self, context, wanted, marker=None, limit=None):
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        return explanation.explain(wanted, self.candidates.look(
            wanted, as_uuid("marker", marker) if marker is not None else None, as_limit(limit)))

    @exposed
    def verify_index(self, context, after=0, limit=None):
        return self.candidates.verify(
            fields.WholeNumber(maximum=2 ** 62).coerce(None, "after", after),
            as_limit(limit))

    @exposed
    def get_event_positions(self, context):
        return reads.event_positions(self.database)

    @exposed
    def list_events(self, context, after=None, limit=None):
        if after is not None:
            after = fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, "after", after)
        return reads.events_after(self.database, after, as_limit(limit or MAX_PAGE))

    # -- the service itself -------------------------------------------------------------

    @exposed
    def get_request_result(self, context, settled_id):
        return reads.request_result(
            self.database, fields.RequestId(part=True).coerce(None, "settled_id", settled_id))

    @exposed
    def ping(self, context):
        """Answers without touching the store: the bus works and somebody listens."""
        return {"host": self.conf.conductor.host or socket.gethostname(), "pid": os.getpid(),
                "version": placement_rpc.__version__, "rpc_version": self.release.contract,
                "time": time.time()}

    @exposed
    def get_versions(self, context):
        return reads.services(self.database, self.conf.conductor.service_down_time)


def _batch_result(settled):
    error = settled.error
    if error is None:
        return ClaimResult.of_settled(settled)
    if not isinstance(error, exception.PlacementException) or error.retryable:
        # Nothing is known of this one: the whole call is to be made again, under the same id.
        raise error
    return ClaimResult(replayed=settled.replayed, error={
        "code": error.code, "kwargs": error.kwargs})
