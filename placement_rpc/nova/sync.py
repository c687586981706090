# SPDX-License-Identifier: Apache-2.0
"""The cycle of a resource tracker in one call: its node, and the allocations of its consumers.

A cycle without changes reads little and writes nothing, not even its own outcome.
"""

import dataclasses
import datetime

from placement_rpc import exception
from placement_rpc.accounting import idempotency
from placement_rpc.accounting.claims import ClaimChange, ReleaseChange
from placement_rpc.accounting.fingerprint import exact
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventories import BelowUse
from placement_rpc.accounting.outbox import changing
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk, events, requests
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import consumers as consumer_queries
from placement_rpc.nova import changes, store
from placement_rpc.nova.drift import MISSING, Held, compare, healed, reported
from placement_rpc.nova.report import CLOCK_SKEW, time_of
from placement_rpc.objects import fields
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.sync_result import SyncResult

# Allocations are not changed to agree with a snapshot that is older than this.
_TOO_OLD = datetime.timedelta(hours=1)


class _IfUnchanged:
    """A change of allocations that is refused if the consumer changed since the cycle read it.

    The generation does not suffice: a consumer that was deleted and created again may have the
    same one.
    """

    changed_at = None

    def desired_allocations(self, ledger):
        consumer = ledger.consumers[self.consumers[0]]
        if consumer.changed_at != self.changed_at:
            raise exception.ConsumerConflict(
                consumer=consumer.uuid, reason="it changed since the tracker's cycle read it")
        return super().desired_allocations(ledger)


class HealingClaim(_IfUnchanged, ClaimChange):
    """Set the allocations of a consumer to those that the tracker reports.

    :param changed_at: datetime of the consumer's last change; None if it has no allocations
    """

    def __init__(self, request, claim, deadline, changed_at):
        super().__init__(request, claim, deadline)
        self.changed_at = changed_at


class HealingRelease(_IfUnchanged, ReleaseChange):
    """Delete the allocations of a consumer that the tracker does not know."""

    def __init__(self, request, consumer_uuid, generation, deadline, changed_at):
        super().__init__(request, consumer_uuid, generation, deadline)
        self.changed_at = changed_at


@dataclasses.dataclass(frozen=True, slots=True)
class Cycle:
    """What a resource tracker reports in one cycle.

    :param request_id: made by the client
    :param node: :class:`placement_rpc.objects.nova.compute_node.ComputeNode`
    :param allocations: dict of consumer uuid to dict of project_id, user_id, resources
    :param snapshot_at: time of the tracker's snapshot in seconds since the epoch
    :param report: :class:`placement_rpc.nova.changes.TrackerReport`
    :param heal: whether to change stored allocations to those that the tracker reports
    :param below_use: whether a capacity may fall below what is used; see
        :meth:`placement_rpc.accounting.inventories.LockedInventories.change`
    """

    request_id: str
    node: ComputeNode
    allocations: dict
    snapshot_at: float
    report: changes.TrackerReport
    heal: bool | None
    below_use: BelowUse

    def request(self) -> Request:
        """Return the request, which has one outcome."""
        return Request.of(self.request_id, "sync_compute_node", {
            "node": self.node, "allocations": self.allocations, "at": self.snapshot_at,
            "said": [self.report.shares_disk, self.report.devices_in_use], "heal": self.heal})

    def fingerprint(self) -> str:
        """Return a digest of the report without its time."""
        return exact([self.node, self.allocations, self.report.shares_disk,
                      self.report.devices_in_use])


class PendingCycle:
    """A cycle that may be the same as the last one of its node, which is answered from memory.

    :param context: :class:`placement_rpc.context.RequestContext` with a database
    :param group_commit: :class:`placement_rpc.accounting.group_commit.GroupCommit`
    :param cycle: :class:`Cycle`
    :param unchanged: :class:`placement_rpc.nova.unchanged.UnchangedCycles`
    :ivar fingerprint: of the report; None for a cycle that is not remembered
    :raises InvalidInput: if the time of the snapshot is not valid
    """

    def __init__(self, context, group_commit, cycle, unchanged):
        self._arguments = context, group_commit, cycle, time_of(cycle.snapshot_at)
        self._unchanged = unchanged
        self.request_id, self.node_uuid = cycle.request_id, cycle.node.value("uuid")
        # While the gate is closed, the store has columns that are not compared with memory.
        self.fingerprint = cycle.fingerprint() if (
            self.node_uuid and context.nodes.settings.migrates) else None

    def run(self):
        """Do the cycle, which is not in memory; as :meth:`Sync.run`."""
        sync = Sync(*self._arguments)
        result = sync.run()
        if self.fingerprint is not None:
            if sync.rows is None:
                self._unchanged.forget(self.node_uuid)
            else:
                self._unchanged.remember(self.fingerprint, *sync.rows)
        return result


class Sync:
    """One cycle of a resource tracker.

    :param context: :class:`placement_rpc.context.RequestContext` with a database
    :param group_commit: :class:`placement_rpc.accounting.group_commit.GroupCommit`
    :param cycle: :class:`Cycle`
    :param seen_at: datetime of the tracker's snapshot, of :mod:`placement_rpc.nova.report`
    :ivar rows: the rows of the node and of its provider, if the same report has the same result
        for as long as both stay as they are; None if not. They are read before all else
    """

    def __init__(self, context, group_commit, cycle, seen_at):
        self._context = context
        self._group_commit = group_commit
        self._request = cycle.request()
        self._cycle = cycle
        self._seen_at = seen_at
        self._held, self._reports = {}, {}
        self.rows = None

    def run(self):
        """Compare the report with the store, write the differences, and heal disagreements.

        :returns: :class:`SyncResult`
        :raises RequestIdReused: if the request id was used for another request
        :raises CapacityConflict: if an inventory would shrink below its allocations, and may not
        :raises UpgradeInProgress: the same, if it may not yet
        :raises InventoryInUse: if an inventory with allocations would be removed
        :raises NameInUse: if another provider has the node's name
        :raises InvalidInput: if a value of the node cannot be stored or makes no valid inventory
        :raises ComputeNodeExists: if another node has the node's host and name
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
        if not differs and not (self._cycle.heal and result.disagreements):
            if self._stays_the_same(view):
                self.rows = view.row, view.provider
            return result
        return self._settle(view)

    def _settle(self, view):
        """Write the node, heal, and store the outcome for a repeated request."""
        self._context.check_deadline()
        healed_before = []
        try:
            uuid, changed = self._write()
        except (exception.CapacityConflict, exception.InventoryInUse,
                exception.UpgradeInProgress):
            if not self._cycle.heal or view is None:
                raise
            # The conflicting allocations may be orphaned: heal first, and write again.
            with self._context.database.reader() as tx:
                before = self._compare(tx, view, [])
            self._heal_all(before)
            healed_before = [each for each in before.disagreements if each.healed]
            uuid, changed = self._write()
        with self._context.database.reader() as tx:
            result = self._compare(tx, self._view(tx, uuid), changed)
        if self._cycle.heal:
            self._heal_all(result)
        result.disagreements = healed_before + result.disagreements
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
        """Return the node's row; None if the node is new.

        :raises ComputeNodeExists: if another node has its host and name
        :raises InvalidInput: if its uuid or its names cannot be stored
        """
        node = self._cycle.node
        store.check_names(node)
        if node.value("uuid"):
            rows = queries.of_uuids(tx, [node.uuid])
            if rows:
                return rows[0]
        row = queries.named(tx, node.value("host"), node.value("hypervisor_hostname"))
        if row is not None and row.uuid and node.value("uuid") not in (None, row.uuid):
            # Another node with the same name: the existing one has to be deleted first. The same
            # node may have been made since it was looked for by its uuid.
            raise exception.ComputeNodeExists(node=node.label)
        return row

    def _differs(self, tx, view):
        row = view.row
        if row.uuid is None or (
                self._context.nodes.settings.migrates and row.inventory_migrated_at is None) or (
                    view.provider is None and row.inventory_migrated_at is not None):
            return True
        return bool(changes.plan(
            tx, view, self._cycle.node, self._cycle.report, self._context.nodes.settings).changed)

    def _write_node(self, tx, outbox):
        """Write the node; return its uuid and the list of columns and classes written."""
        row = self._find(tx)
        if row is None:
            node = self._cycle.node
            if not node.value("uuid"):
                node = node.obj_clone()
                node.uuid = fields.new_uuid()
            try:
                changes.create(
                    tx, outbox, node, self._context.nodes.settings, self._cycle.report)
            except exception.ComputeNodeExists as error:
                # Another transaction made it since it was looked for.
                raise db.Stale(f"compute node {node.uuid}") from error
            return node.uuid, ["compute_node"]
        if row.uuid is None:
            queries.set_uuids(tx, {row.id: self._cycle.node.value("uuid") or fields.new_uuid()})
        rows = queries.lock(tx, [row.id])
        if not rows:
            raise db.Stale(f"compute node {row.id}")
        row, = rows
        return row.uuid, changes.save(
            tx, outbox, row, self._cycle.node, self._context.nodes.settings, self._cycle.report,
            self._cycle.below_use)

    # -- comparing allocations ----------------------------------------------------------

    def _compare(self, tx, view, changed):
        uuid, provider = view.row.uuid, view.provider
        result = SyncResult(
            provider_uuid=uuid, shared_disk_uuid=view.shared_disk, changed=changed,
            disagreements=[], generation=provider.generation if provider else None)
        if provider is None:
            # Until the gate opens, the node has columns only.
            return result
        shared = {row.provider_uuid for row in view.shared}
        self._held = _held(tx, provider.id, list(self._cycle.allocations))
        reports = {consumer: wants for consumer, values in self._cycle.allocations.items() if (
            wants := reported(values["resources"], uuid, self._disk_of(consumer, view, shared)))}
        self._reports = reports
        result.disagreements = compare(
            self._held, reports, uuid, shared, self._seen_at - CLOCK_SKEW)
        return result

    def _stays_the_same(self, view):
        """Whether a later cycle with the same report finds no disagreement either.

        A consumer that changed just now is compared by a later cycle only.
        """
        # The disk of another provider may change without a change of this one.
        return view.provider is not None and not view.shared and not compare(
            self._held, self._reports, view.row.uuid, set(), datetime.datetime.max)

    def _disk_of(self, consumer, view, shared):
        """Return the uuid of the provider of a consumer's disk; None if there is none."""
        if shared:
            # A consumer keeps its disk even if another provider has more room by now.
            holding = self._held.get(consumer)
            has = sorted(shared & holding.allocations.keys()) if holding else []
            return has[0] if has else view.shared_disk
        has_disk = any(row.resource_class == "DISK_GB" for row in view.inventories)
        return view.row.uuid if has_disk else None

    # -- healing ------------------------------------------------------------------------

    def _heal_all(self, result):
        if bulk.now() - self._seen_at > _TOO_OLD:
            for each in result.disagreements:
                each.reason = "the tracker's snapshot is too old"
            return
        released = self._released_since([each.consumer_uuid for each in result.disagreements
                                         if each.kind == MISSING])
        for each in result.disagreements:
            if each.consumer_uuid in released:
                each.reason = "its allocations were released after the tracker's snapshot"
            else:
                self._heal_one(each)

    def _heal_one(self, each):
        holding = self._held.get(each.consumer_uuid)
        settled, = self._group_commit.settle([
            self._healing_change(each, holding, healed(holding, each))])
        error = settled.error
        if error is None:
            each.healed = True
        elif isinstance(error, exception.PlacementException) and not error.retryable and (
                not isinstance(error, exception.RequestExpired)):
            each.reason = error.text[:1000]
        else:
            raise error

    def _healing_change(self, each, holding, wanted):
        """Return the change that makes the store agree, refused if the consumer changed since."""
        consumer = each.consumer_uuid
        generation = holding.generation if holding else 0
        # The same part in every attempt, even if earlier attempts have healed some of it.
        request = self._request.named_part(consumer, {"consumer": consumer, "holds": wanted})
        changed_at = holding.changed_at if holding else None
        if not wanted:
            return HealingRelease(
                request, consumer, generation, self._context.deadline, changed_at)
        report = self._cycle.allocations.get(consumer, {})
        claim = Claim(
            consumer_uuid=consumer, consumer_generation=generation, allocations=wanted,
            project_id=report.get("project_id") or holding.project_id,
            user_id=report.get("user_id") or holding.user_id)
        return HealingClaim(request, claim, self._context.deadline, changed_at)

    def _released_since(self, consumers):
        """Return the set of consumers whose allocations were released since the snapshot."""
        if not consumers:
            return set()
        with self._context.database.reader() as tx:
            return events.released_since(tx, consumers, self._seen_at - CLOCK_SKEW)


def _held(tx, provider_id, consumers):
    """Return all allocations of the consumers of a provider, and of those that are named.

    :returns: dict of consumer uuid to :class:`placement_rpc.nova.drift.Held`
    """
    held = {}
    for row in consumer_queries.holding(tx, provider_id, consumers):
        holding = held.setdefault(row.consumer_uuid, Held(
            row.project_id, row.user_id, row.generation, row.changed_at, {}))
        holding.allocations.setdefault(row.provider_uuid, {})[row.resource_class] = row.used
    return held
