# SPDX-License-Identifier: Apache-2.0
"""One call for each cycle of a resource tracker: its node, and who uses it.

A cycle in which nothing changed reads a little and writes nothing, not even its own outcome.
"""

import collections
import datetime
import uuid as uuids

from placement_rpc import exception
from placement_rpc.accounting import idempotency
from placement_rpc.accounting.claims import ClaimChange, ReleaseChange
from placement_rpc.accounting.outbox import changing
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk, events, requests
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import consumers as consumer_queries
from placement_rpc.nova import changes, store
from placement_rpc.nova.drift import MISSING, Held, compare, healed, said_of
from placement_rpc.nova.inventory import DEVICES
from placement_rpc.objects import fields
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.sync_result import SyncResult

# How far the clocks of a compute host and of the store may be apart.
_CLOCKS = datetime.timedelta(seconds=30)
# What a tracker saw this long ago is no reason to change what anybody holds.
_TOO_OLD = datetime.timedelta(hours=1)
_EARLIEST = datetime.datetime(2000, 1, 1)
_MOST_CONSUMERS = 5000
# Of how many parts a request may have, as its id writes them.
_PARTS = 999_999_999


class _Untouched:
    """A settlement that heals: only what is still as the tracker's cycle read it.

    Generations alone do not tell: a consumer that was given up and came again has the same.
    """

    changed_at = None

    def desired_allocations(self, ledger):
        consumer = ledger.consumers[self.consumers[0]]
        if consumer.changed_at != self.changed_at:
            raise exception.ConsumerConflict(
                consumer=consumer.uuid, reason="it changed meanwhile")
        return super().desired_allocations(ledger)


class HealingClaim(_Untouched, ClaimChange):
    """A consumer holds what the tracker says.

    :param changed_at: datetime at which the consumer changed last; None for one that holds nothing
    """

    def __init__(self, request, claim, deadline, changed_at):
        super().__init__(request, claim, deadline)
        self.changed_at = changed_at


class HealingRelease(_Untouched, ReleaseChange):
    """A consumer that the tracker does not know gives everything back."""

    def __init__(self, request, consumer_uuid, generation, deadline, changed_at):
        super().__init__(request, consumer_uuid, generation, deadline)
        self.changed_at = changed_at


class Sync:
    """One cycle.

    :param context: :class:`placement_rpc.context.RequestContext` with a database
    :param group_commit: :class:`placement_rpc.accounting.group_commit.GroupCommit`
    :param request: :class:`placement_rpc.accounting.idempotency.Request`
    :param node: :class:`placement_rpc.objects.nova.compute_node.ComputeNode`
    :param allocations: dict of consumer uuid to dict of project_id, user_id, resources
    :param snapshot_at: float, seconds since the epoch, when the tracker looked
    :param said: :class:`placement_rpc.nova.changes.TrackerReport`
    :param heal: bool, whether the store is to have what the tracker says
    """

    def __init__(self, context, group_commit, request, node, allocations, snapshot_at, said,
                 heal):
        self._context = context
        self._group_commit = group_commit
        self._request = request
        self._node = node
        self._allocations = allocations
        self._seen_at = _time(snapshot_at)
        self._said = said
        self._heal = heal
        self._held = {}

    def run(self):
        """Compare, write what differs, heal what disagrees.

        :returns: :class:`SyncResult`
        :raises RequestIdReused: :raises CapacityConflict: :raises InventoryInUse:
        :raises NameInUse: :raises InvalidInput: :raises ComputeNodeExists:
        """
        with self._context.database.reader() as tx:
            stored = requests.find(tx, [self._request.request_id]).get(self._request.request_id)
            if stored is None:
                row = self._find(tx)
                view = None if row is None else store.stored_node(tx, row)
                differs = view is None or self._differs(tx, view)
                result = None if differs else self._compare(tx, view, [])
        if stored is not None:
            return idempotency.stored_outcome(self._context.database, self._request)
        if not differs and not (self._heal and result.disagreements):
            return result
        return self._settle(view)

    def _settle(self, view):
        """Write the node, heal, and keep the outcome for whoever asks again."""
        self._context.check_deadline()
        healed = []
        try:
            uuid, changed = self._write()
        except (exception.CapacityConflict, exception.InventoryInUse):
            if not self._heal or view is None:
                raise
            # What is in the way may be what nobody uses any more.
            with self._context.database.reader() as tx:
                before = self._compare(tx, view, [])
            self._heal_all(before)
            healed = [each for each in before.disagreements if each.healed]
            uuid, changed = self._write()
        with self._context.database.reader() as tx:
            result = self._compare(tx, self._view(tx, uuid), changed)
        if self._heal:
            self._heal_all(result)
        result.disagreements = healed + result.disagreements
        idempotency.store_outcome(self._context.database, self._request, result)
        return result

    def _write(self):
        return changing(self._context, self._write_node, self._request.request_id)

    @staticmethod
    def _view(tx, uuid):
        rows = queries.of_uuids(tx, [uuid])
        if not rows:
            raise exception.ComputeNodeNotFound(node=uuid)
        return store.stored_node(tx, rows[0])

    # -- the node -----------------------------------------------------------------------

    def _find(self, tx):
        """:returns: the node's row; None where it is new"""
        node = self._node
        if node.value("uuid"):
            rows = queries.of_uuids(tx, [node.uuid])
            if rows:
                return rows[0]
        row = queries.named(tx, node.value("host"), node.value("hypervisor_hostname"))
        if row is not None and row.uuid and node.value("uuid"):
            # Another node under the same name: the one that was there has to go first.
            raise exception.ComputeNodeExists(node=node.label)
        return row

    def _differs(self, tx, view):
        row = view.row
        if row.uuid is None or (
                self._context.nodes.settings.migrates and row.inventory_migrated_at is None) or (
                    view.provider is None and row.inventory_migrated_at is not None):
            return True
        return bool(changes.plan(
            tx, view, self._node, self._said, self._context.nodes.settings).changed)

    def _write_node(self, tx, outbox):
        """:returns: tuple of the node's uuid and list of str, what was written"""
        row = self._find(tx)
        if row is None:
            node = self._node
            if not node.value("uuid"):
                node = node.obj_clone()
                node.uuid = fields.new_uuid()
            changes.create(tx, outbox, node, self._context.nodes.settings, self._said)
            return node.uuid, ["compute_node"]
        if row.uuid is None:
            queries.set_uuids(tx, {row.id: self._node.value("uuid") or fields.new_uuid()})
        rows = queries.lock(tx, [row.id])
        if not rows:
            raise db.Stale(f"compute node {row.id}")
        row, = rows
        return row.uuid, changes.save(
            tx, outbox, row, self._node, self._context.nodes.settings, self._said)

    # -- who uses it --------------------------------------------------------------------

    def _compare(self, tx, view, changed):
        uuid, provider = view.row.uuid, view.provider
        result = SyncResult(
            provider_uuid=uuid, shared_disk_uuid=view.shared_disk, changed=changed,
            disagreements=[], generation=provider.generation if provider else None)
        if provider is None:
            # Its columns are all there is of it until the gate opens.
            return result
        shared = {row.provider_uuid for row in view.shared}
        self._held = _held(tx, provider.id, list(self._allocations))
        said = {consumer: wants for consumer, values in self._allocations.items() if (
            wants := said_of(values["resources"], uuid, self._disk_of(consumer, view, shared)))}
        result.disagreements = compare(
            self._held, said, uuid, shared, self._seen_at - _CLOCKS)
        return result

    def _disk_of(self, consumer, view, shared):
        """:returns: str, uuid of the provider that a consumer's disk is of; None for none"""
        if shared:
            # What it has it keeps, whichever has the most room by now.
            holding = self._held.get(consumer)
            has = sorted(shared & holding.allocations.keys()) if holding else []
            return has[0] if has else view.shared_disk
        has_disk = any(row.resource_class == "DISK_GB" for row in view.inventories)
        return view.row.uuid if has_disk else None

    # -- healing ------------------------------------------------------------------------

    def _heal_all(self, result):
        young = self._released_since([each.consumer_uuid for each in result.disagreements
                                      if each.kind == MISSING])
        for each in result.disagreements:
            if bulk.now() - self._seen_at > _TOO_OLD:
                each.reason = "the tracker looked too long ago"
            elif each.consumer_uuid in young:
                each.reason = "it gave everything back after the tracker looked"
            else:
                self._heal_one(each)

    def _heal_one(self, each):
        holding = self._held.get(each.consumer_uuid)
        settled, = self._group_commit.settle([
            self._settlement(each, holding, healed(holding, each))])
        error = settled.error
        if error is None:
            each.healed = True
        elif isinstance(error, exception.PlacementException) and not error.retryable and (
                not isinstance(error, exception.RequestExpired)):
            each.reason = error.text[:1000]
        else:
            raise error

    def _settlement(self, each, holding, wanted):
        """What makes the store say what the tracker says, if nobody changed it meanwhile."""
        consumer = each.consumer_uuid
        generation = holding.generation if holding else 0
        # The same in every attempt, whatever was healed by the ones before.
        request = self._request.part(
            uuids.UUID(consumer).int % _PARTS + 1, {"consumer": consumer, "holds": wanted})
        changed_at = holding.changed_at if holding else None
        if not wanted:
            return HealingRelease(
                request, consumer, generation, self._context.deadline, changed_at)
        said = self._allocations.get(consumer, {})
        claim = Claim(
            consumer_uuid=consumer, consumer_generation=generation, allocations=wanted,
            project_id=said.get("project_id") or holding.project_id,
            user_id=said.get("user_id") or holding.user_id)
        return HealingClaim(request, claim, self._context.deadline, changed_at)

    def _released_since(self, consumers):
        """:returns: set of the consumers that gave everything back since the tracker looked"""
        if not consumers:
            return set()
        with self._context.database.reader() as tx:
            payloads = events.payloads_since(tx, "allocation.delete", self._seen_at - _CLOCKS)
        return {uuid for uuid in consumers if any(uuid in payload for payload in payloads)}


def allocations_of(value):
    """What a caller says of who uses its node, checked.

    :param value: dict of consumer uuid to dict of project_id, user_id and resources, a dict of
        class to amount; amounts of 0 say nothing
    :raises InvalidInput: :raises BatchTooLarge:
    """
    if not isinstance(value, dict):
        raise exception.InvalidInput(what="allocations", reason="they are not a mapping")
    if len(value) > _MOST_CONSUMERS:
        raise exception.BatchTooLarge(
            what="node", limit=_MOST_CONSUMERS, size=len(value))
    return {fields.Uuid().coerce(None, "allocations", consumer): _allocation(consumer, said)
            for consumer, said in value.items()}


def devices_of(allocations):
    """How many devices a tracker says are in use, by who uses them.

    :param allocations: as :func:`allocations_of` returned them
    :returns: dict of class to number; None where it names no class of devices
    """
    found = collections.Counter()
    for said in allocations.values():
        found.update({name: amount for name, amount in said["resources"].items()
                      if name in DEVICES})
    return dict(found) or None


def _allocation(consumer, said):
    what = f"allocations[{consumer}]"
    if not isinstance(said, dict) or set(said) != {"project_id", "user_id", "resources"} or (
            not isinstance(said["resources"], dict)):
        raise exception.InvalidInput(
            what=what, reason="it is not a mapping of project_id, user_id and resources")
    resources = {name: amount for name, amount in said["resources"].items() if amount != 0}
    return {
        "project_id": fields.Text(255).coerce(None, f"{what}.project_id", said["project_id"]),
        "user_id": fields.Text(255).coerce(None, f"{what}.user_id", said["user_id"]),
        "resources": fields.Amounts().coerce(None, what, resources) if resources else {}}


def _time(seconds):
    """:returns: datetime in UTC without a zone

    :raises InvalidInput: for what is none, or in the future
    """
    if type(seconds) not in (int, float):
        raise exception.InvalidInput(what="snapshot_at", reason="it is not a number of seconds")
    try:
        at = datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise exception.InvalidInput(what="snapshot_at", reason="it is no time") from None
    if at < _EARLIEST:
        raise exception.InvalidInput(what="snapshot_at", reason="it is no time")
    if at > bulk.now() + _CLOCKS:
        raise exception.InvalidInput(what="snapshot_at", reason="it is in the future")
    return at


def _held(tx, provider_id, consumers):
    """All that those hold who hold something of a provider, or are named.

    :returns: dict of consumer uuid to :class:`placement_rpc.nova.drift.Held`
    """
    held = {}
    for row in consumer_queries.holding(tx, provider_id, consumers):
        holding = held.setdefault(row.consumer_uuid, Held(
            row.project_id, row.user_id, row.generation, row.changed_at, {}))
        holding.allocations.setdefault(row.provider_uuid, {})[row.resource_class] = row.used
    return held
