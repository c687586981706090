# SPDX-License-Identifier: Apache-2.0
"""The server's end of the RPC contract; ``api.py`` is the client's.

Each method checks its arguments, makes one call into the rules, and returns. What a call is (since
which contract, in which queue, batched or not, under which policy rules) stands in
:mod:`placement_rpc.versions.contract`; every call comes through :meth:`Endpoint.enter
<placement_rpc.rpc.endpoint.Endpoint.enter>`.
"""

import functools
import os
import socket
import time
import types
from typing import Any

from oslo_config import cfg

import placement_rpc
from placement_rpc import exception
from placement_rpc.accounting import (
    aggregates as aggregate_rules,
)
from placement_rpc.accounting import (
    find_and_claim,
    idempotency,
    providers,
    reads,
    resource_classes,
    traits,
)
from placement_rpc.accounting import (
    inventories as inventory_rules,
)
from placement_rpc.accounting.claims import (
    ClaimChange,
    MoveChange,
    ReleaseChange,
    forms_of_claim,
    request_of_claim,
)
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.group_commit import GroupCommit
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventory_batch import InventoryReplacement
from placement_rpc.candidates import explanation
from placement_rpc.candidates.search import get_search
from placement_rpc.context import RequestContext, versions_of
from placement_rpc.db.api import Database
from placement_rpc.nova import remotable, sync
from placement_rpc.nova.changes import TrackerReport
from placement_rpc.nova.compute_node import ComputeNodeStore
from placement_rpc.nova.inventory import in_use
from placement_rpc.objects import fields, request, resource_class
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.allocation import AllocationList
from placement_rpc.objects.claim import (
    CONSUMER_TAGS,
    Claim,
    ClaimList,
    ClaimResult,
    ClaimResultList,
)
from placement_rpc.objects.event_page import EventPage, EventPositions
from placement_rpc.objects.explanation import ExplanationList
from placement_rpc.objects.inventory import Inventory, InventoryList
from placement_rpc.objects.nova.base import NovaObject
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.request_result import RequestResult
from placement_rpc.objects.resource_class import ResourceClass, ResourceClassList
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from placement_rpc.objects.service import ServiceList
from placement_rpc.objects.sync_result import SyncResult
from placement_rpc.objects.trait import ProviderTraits, Trait, TraitList
from placement_rpc.objects.usage import ProjectUsages, UsageList
from placement_rpc.rpc.endpoint import (
    MAX_PAGE,
    Endpoint,
    as_bool,
    as_generation,
    as_limit,
    as_name,
    as_uuid,
    exposed,
    instance_of,
    require_fields,
)
from placement_rpc.telemetry.metrics import Metrics
from placement_rpc.upgrade.gate import InventoryGate, LiveReleases
from placement_rpc.versions import contract, pins, releases
from placement_rpc.versions.seen_clients import SeenClients


class Manager(Endpoint):
    """Answers the calls of contract 1.x.

    :param conf: made by :mod:`placement_rpc.conf`
    :param database: the store; its owner closes it
    """

    def __init__(self, conf: cfg.ConfigOpts, database: Database) -> None:
        self.conf = conf
        self.database = database
        # An operator may pin it to an older release.
        self.release = pins.fixed(conf.upgrade_levels.placement) or releases.CURRENT
        self.metrics = Metrics(conf.metrics.slow_call)
        limit = conf.claims.max_settled_together
        self.group_commit = GroupCommit(
            database, limit, observe_batch_size=self.metrics.settled)
        self._group_commits: dict[str | None, GroupCommit] = {
            contract.CLAIMS: self.group_commit,
            contract.FLEET: GroupCommit(database, limit, method="set_inventory")}
        self.candidates = get_search(conf, database)
        self.gate = InventoryGate(conf, database)
        self._live_releases = LiveReleases(conf, database)
        # What it stores is read by processes of the release that it is pinned to, or of any that
        # is alive.
        database.versions = self._stored_versions
        self.seen_clients = SeenClients()

    @functools.cached_property
    def policy(self) -> Any:
        """:class:`placement_rpc.policy.Enforcer`, for calls that come through the HTTP facade."""
        from placement_rpc import policy
        return policy.Enforcer(self.conf)

    def check_policy(self, context: RequestContext, method: str, arguments: dict) -> None:
        from placement_rpc import policy
        call = contract.CALLS[method]
        read = None
        if call.consumer:
            read = functools.partial(self._owner, arguments.get(call.consumer))
        elif call.project:
            read = functools.partial(
                types.SimpleNamespace, project_id=arguments.get(call.project), user_id=None)
        self.policy.check_call(context, method, policy.Target(read))

    def _owner(self, consumer: Any) -> Any:
        """Return an object with the project_id and the user_id of a consumer, or None.

        :param consumer: its uuid, or a claim, which names the owner of a consumer that has no
            allocations yet
        """
        if not isinstance(consumer, Claim):
            return reads.consumer_owner(self.database, as_uuid("consumer_uuid", consumer))
        consumer.check_owner()
        return reads.consumer_owner(self.database, consumer.consumer_uuid) or consumer

    def _stored_versions(self):
        if self.release is not releases.CURRENT:
            return self.release.versions
        return self._live_releases.stored_versions()

    def check_everywhere(self, what: str, contract_version: str) -> None:
        self._live_releases.check(what, contract_version)

    def settle(self, queue: str | None, pending: list) -> list:
        return self._group_commits[queue].settle(pending)

    @staticmethod
    def answer(outcome: Any) -> Any:
        result = Endpoint.answer(outcome)
        return ClaimResult.of_settled(outcome) if isinstance(result, ClaimResult) else result

    def _settle_claim(self, change):
        outcome, = self.group_commit.settle([change])
        return self.answer(outcome)

    # -- providers ----------------------------------------------------------------------

    @exposed
    def create_provider(self, context: RequestContext, provider: ResourceProvider,
                        request_id: str) -> ResourceProvider:
        require_fields(instance_of(ResourceProvider, "provider", provider), "uuid", "name")
        if provider.value("parent_provider_uuid"):
            self.check_everywhere("the parent of a resource provider", "1.3")
        asked = Request.of(request_id, "create_provider", {"provider": provider})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.create(tx, outbox, provider))

    @exposed
    def update_provider(self, context: RequestContext, provider: ResourceProvider,
                        request_id: str, may_move: bool | None = None) -> ResourceProvider:
        require_fields(instance_of(ResourceProvider, "provider", provider), "uuid", "name")
        if provider.obj_attr_is_set("parent_provider_uuid"):
            self.check_everywhere("the parent of a resource provider", "1.3")
        may_move = as_bool("may_move", may_move) is not False
        form = CanonicalForm(provider)
        asked = Request.of(request_id, "update_provider", {"provider": form.without("generation")},
                            {"provider": form})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: providers.update(tx, outbox, provider, may_move))

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
            wanted = request.ResourceRequest(resources=resources)
            # Read before the index, which may not have what happens between the two.
            position = reads.event_positions(self.database).last
            among = {each.uuid for each in self.candidates.find(wanted, context.deadline)}
        return reads.providers(
            self.database,
            name=as_name(name) if name is not None else None,
            uuid=as_uuid("uuid", uuid) if uuid is not None else None,
            member_of=request.MEMBER_OF.coerce(None, "member_of", member_of or []),
            not_member_of=request.AGGREGATES.coerce(None, "not_member_of", not_member_of or []),
            in_tree=as_uuid("in_tree", in_tree) if in_tree is not None else None,
            required=request.TRAIT_SETS.coerce(None, "required", required or []),
            forbidden=request.TRAITS.coerce(None, "forbidden", forbidden or []),
            among=among, position=position,
            marker=as_uuid("marker", marker) if marker is not None else None,
            limit=as_limit(limit))

    # -- inventories --------------------------------------------------------------------

    @exposed
    def set_inventory(self, context: RequestContext, provider_uuid: str,
                      inventories: InventoryList, request_id: str,
                      generation: int | None = None) -> InventoryReplacement:
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        given = require_fields(
            instance_of(InventoryList, "inventories", inventories), "objects").objects
        limit = self.conf.claims.max_resources
        if len(given) > limit:
            raise exception.BatchTooLarge(
                what="set of inventories", limit=limit, size=len(given))
        asked = Request.of(request_id, "set_inventory", {
            "uuid": uuid, "inventories": given, "at": None}, {"at": generation})
        return InventoryReplacement(asked, uuid, given, generation, context.deadline)

    @exposed
    def add_inventory(self, context: RequestContext, provider_uuid: str, given: Inventory,
                      request_id: str, generation: int | None = None) -> InventoryList:
        return self._change_inventory(context, "add_inventory", inventory_rules.add,
                                      provider_uuid, given, request_id, generation)

    @exposed
    def update_inventory(self, context: RequestContext, provider_uuid: str, given: Inventory,
                         request_id: str, generation: int | None = None) -> InventoryList:
        return self._change_inventory(context, "update_inventory", inventory_rules.update,
                                      provider_uuid, given, request_id, generation)

    def _change_inventory(self, context, method, change, provider_uuid, given, request_id,
                          generation):
        uuid, generation = as_uuid("provider_uuid", provider_uuid), as_generation(generation)
        instance_of(Inventory, "given", given)
        asked = Request.of(request_id, method, {
            "uuid": uuid, "inventory": given, "at": None}, {"at": generation})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: change(tx, outbox, uuid, given, generation))

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

    # -- claims -------------------------------------------------------------------------

    @exposed
    def claim_allocations(self, context: RequestContext, claim: Claim,
                          request_id: str) -> ClaimChange:
        instance_of(Claim, "claim", claim).check(self.conf.claims.max_resources)
        return ClaimChange(request_of_claim(request_id, claim), claim, context.deadline)

    @exposed
    def claim_batch(self, context: RequestContext, claims: ClaimList,
                    request_id: str) -> ClaimResultList:
        wanted = require_fields(instance_of(ClaimList, "claims", claims), "objects").objects
        limit = self.conf.claims.max_batch
        if len(wanted) > limit:
            raise exception.BatchTooLarge(what="batch", limit=limit, size=len(wanted))
        for number, claim in enumerate(wanted):
            try:
                claim.check(self.conf.claims.max_resources)
            except exception.InvalidInput as error:
                raise exception.InvalidInput(
                    what=f"claims[{number}]", reason=error.text) from None
        forms = [forms_of_claim(claim) for claim in wanted]
        asked = Request.of(request_id, "claim_batch", {"claims": [form for form, _ in forms]},
                           {"claims": [whole for _, whole in forms]})
        outcomes = self.group_commit.settle([
            ClaimChange(asked.part(number, {"claim": form}, {"claim": whole}), claim,
                        context.deadline)
            for number, (claim, (form, whole)) in enumerate(zip(wanted, forms, strict=True))])
        return ClaimResultList(objects=[_batch_result(each) for each in outcomes])

    @exposed
    def release_allocations(self, context: RequestContext, consumer_uuid: str, request_id: str,
                            consumer_generation: int | None = None,
                            consumer_tags: list[str] | None = None) -> ReleaseChange:
        uuid = as_uuid("consumer_uuid", consumer_uuid)
        generation = as_generation(consumer_generation)
        if consumer_tags is not None:
            consumer_tags = CONSUMER_TAGS.coerce(None, "consumer_tags", consumer_tags)
        asked = Request.of(request_id, "release_allocations", {"uuid": uuid, "at": None},
                           {"at": generation})
        return ReleaseChange(asked, uuid, generation, context.deadline, consumer_tags)

    @exposed
    def move_allocations(self, context: RequestContext, source_uuid: str, target_uuid: str,
                         request_id: str, consumer_generation: int | None = None) -> ClaimResult:
        source, target = as_uuid("source_uuid", source_uuid), as_uuid("target_uuid", target_uuid)
        generation = as_generation(consumer_generation)
        asked = Request.of(request_id, "move_allocations", {
            "source": source, "target": target, "at": None}, {"at": generation})
        return self._settle_claim(MoveChange(asked, source, target, generation, context.deadline))

    @exposed
    def claim_by_request(self, context: RequestContext, wanted: request.ResourceRequest,
                         claim: Claim, request_id: str) -> ClaimResult:
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        instance_of(Claim, "claim", claim).check_owner()
        if claim.value("allocations"):
            raise exception.InvalidInput(
                what="allocations", reason="claim_by_request chooses the provider itself")
        form, whole = forms_of_claim(claim)
        asked = Request.of(request_id, "claim_by_request", {"wanted": wanted, "claim": form},
                           {"claim": whole})
        return ClaimResult.of_settled(find_and_claim.claim_by_request(
            context, self.candidates, self.group_commit, asked, wanted, claim))

    # -- reading ------------------------------------------------------------------------

    @exposed
    def get_allocations(self, context: RequestContext, consumer_uuid: str) -> AllocationList:
        return reads.consumer_allocations(
            self.database, as_uuid("consumer_uuid", consumer_uuid))

    @exposed
    def get_provider_allocations(self, context: RequestContext,
                                 provider_uuid: str) -> AllocationList:
        return reads.provider_allocations(
            self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_usages(self, context: RequestContext, provider_uuid: str) -> UsageList:
        return reads.usages(self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_project_usages(self, context: RequestContext, project_id: str,
                           user_id: str | None = None) -> ProjectUsages:
        text = fields.Text(255)
        return reads.project_usages(
            self.database, text.coerce(None, "project_id", project_id),
            None if user_id is None else text.coerce(None, "user_id", user_id))

    @exposed
    def get_by_request(self, context: RequestContext,
                       wanted: request.ResourceRequest) -> ResourceProviderList:
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        most = self.conf.candidates.max_found
        limit = min(wanted.value("limit") or most, most)
        # One more than is returned, to see whether there are more.
        found = self.candidates.find(wanted, context.deadline, limit + 1)
        return ResourceProviderList.of_candidates(found[:limit], len(found) > limit)

    # -- aggregates ---------------------------------------------------------------------

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

    # -- traits -------------------------------------------------------------------------

    @exposed
    def list_traits(self, context: RequestContext, names: list[str] | None = None,
                    prefix: str | None = None, associated: bool | None = None,
                    marker: str | None = None, limit: int | None = None) -> TraitList:
        return reads.trait_page(
            self.database,
            names=None if names is None else request.TRAITS.coerce(None, "names", names),
            prefix=None if prefix is None else fields.Text(255, 0).coerce(
                None, "prefix", prefix),
            associated=as_bool("associated", associated),
            marker=None if marker is None else fields.TraitName().coerce(None, "marker", marker),
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

    # -- resource classes ---------------------------------------------------------------

    @exposed
    def resource_class_list(self, context: RequestContext, marker: str | None = None,
                            limit: int | None = None) -> ResourceClassList:
        return reads.resource_class_page(self.database, marker, as_limit(limit))

    @exposed
    def resource_class_get(self, context: RequestContext, name: str) -> ResourceClass:
        return reads.resource_class(self.database, name)

    @exposed
    def resource_class_create(self, context: RequestContext, given: ResourceClass,
                              request_id: str) -> ResourceClass:
        require_fields(instance_of(ResourceClass, "given", given), "name")
        asked = Request.of(request_id, "resource_class_create", {"class": given})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: resource_classes.create(tx, outbox, given.name))

    @exposed
    def resource_class_rename(self, context: RequestContext, name: str, given: ResourceClass,
                              request_id: str) -> ResourceClass:
        require_fields(instance_of(ResourceClass, "given", given), "name")
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_rename", {"class": given, "of": name})
        return idempotency.run_once(
            context, asked,
            lambda tx, outbox: resource_classes.rename(tx, outbox, name, given.name))

    @exposed
    def resource_class_delete(self, context: RequestContext, name: str, request_id: str) -> None:
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_delete", {"name": name})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: resource_classes.delete(tx, outbox, name))

    # -- compute nodes ------------------------------------------------------------------

    @exposed
    def sync_compute_node(self, context: RequestContext, node: ComputeNode, allocations: dict,
                          snapshot_at: float, request_id: str, shares_disk: bool | None = None,
                          devices_in_use: dict | None = None, heal: bool = False) -> SyncResult:
        require_fields(instance_of(ComputeNode, "node", node), "host", "hypervisor_hostname")
        allocations = sync.allocations_of(allocations)
        report = TrackerReport(
            as_bool("shares_disk", shares_disk),
            in_use(devices_in_use) if devices_in_use is not None else
            sync.devices_of(allocations))
        asked = Request.of(request_id, "sync_compute_node", {
            "node": node, "allocations": allocations, "at": snapshot_at,
            "said": [report.shares_disk, report.devices_in_use],
            "heal": as_bool("heal", heal)})
        self._open_nodes(context)
        return sync.Sync(context, self.group_commit, asked, node, allocations, snapshot_at,
                         report, bool(heal)).run()

    def _open_nodes(self, context):
        context.nodes = ComputeNodeStore(self.gate.settings)

    @exposed
    def object_class_action_versions(self, context: RequestContext, objname: str, objmethod: str,
                                     object_versions: dict[str, str], args: list,
                                     kwargs: dict) -> Any:
        context.receiver = releases.lower(context.receiver, versions_of(object_versions))
        self._open_nodes(context)
        return remotable.class_action(context, objname, objmethod, args, kwargs)

    @exposed
    def object_action(self, context: RequestContext, objinst: NovaObject, objmethod: str,
                      args: list, kwargs: dict, request_id: str | None = None) -> list:
        instance_of(NovaObject, "objinst", objinst)
        self._open_nodes(context)
        if request_id is None:
            # nova's own callers send no request id.
            return list(remotable.action(context, objinst, objmethod, args, kwargs))
        asked = Request.of(request_id, "object_action", {
            "object": objinst, "method": objmethod, "args": args, "kwargs": kwargs})
        return idempotency.run_once(context, asked, lambda tx, outbox: list(remotable.action_in(
            tx, outbox, context, objinst.obj_clone(), objmethod, args, kwargs)))

    @exposed
    def object_backport_versions(self, context: RequestContext, objinst: Any,
                                 object_versions: dict[str, str]) -> dict:
        if not hasattr(objinst, "obj_to_primitive"):
            raise exception.InvalidInput(what="objinst", reason="it is not an object")
        return objinst.obj_to_primitive(version_manifest=versions_of(object_versions))

    # -- events and reasons -------------------------------------------------------------

    @exposed
    def explain(self, context: RequestContext, wanted: request.ResourceRequest,
                marker: str | None = None, limit: int | None = None) -> ExplanationList:
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        return explanation.explain(wanted, self.candidates.views(
            wanted, as_uuid("marker", marker) if marker is not None else None, as_limit(limit),
            context.deadline))

    @exposed
    def verify_index(self, context: RequestContext, after: int = 0,
                     limit: int | None = None) -> dict | None:
        return self.candidates.index.verify(
            fields.WholeNumber(maximum=2 ** 62).coerce(None, "after", after), as_limit(limit))

    @exposed
    def get_event_positions(self, context: RequestContext) -> EventPositions:
        return reads.event_positions(self.database)

    @exposed
    def list_events(self, context: RequestContext, after: int | None = None,
                    limit: int | None = None) -> EventPage:
        if after is not None:
            after = fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, "after", after)
        return reads.events_after(
            self.database, after, as_limit(limit or MAX_PAGE), context.receiver)

    # -- the service itself -------------------------------------------------------------

    @exposed
    def get_request_result(self, context: RequestContext, settled_id: str) -> RequestResult:
        return reads.request_result(
            self.database, fields.RequestId(part=True).coerce(None, "settled_id", settled_id))

    @exposed
    def ping(self, context: RequestContext) -> dict:
        """Answer without the store, to show that the bus works and a server listens."""
        return {"host": self.conf.conductor.host or socket.gethostname(), "pid": os.getpid(),
                "version": placement_rpc.__version__, "rpc_version": self.release.contract,
                "time": time.time()}

    @exposed
    def get_versions(self, context: RequestContext) -> ServiceList:
        return reads.services(self.database, self.conf.conductor.service_down_time)


def _batch_result(outcome):
    error = outcome.error
    if error is None:
        return ClaimResult.of_settled(outcome)
    if not isinstance(error, exception.PlacementException) or error.retryable:
        # Its outcome is unknown: the client repeats the whole call under the same id.
        raise error
    return ClaimResult(replayed=outcome.replayed, error={
        "code": error.code, "kwargs": error.kwargs})
