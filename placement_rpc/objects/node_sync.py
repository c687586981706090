# SPDX-License-Identifier: Apache-2.0
"""One call for each cycle of a resource tracker: its node, and who uses it.

A cycle in which nothing changed reads a little and writes nothing, not even its own outcome.
"""

import datetime

from placement_rpc import exception
from placement_rpc.db.queries import bulk, events, providers, requests
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import consumers as consumer_queries
from placement_rpc.db.queries import inventories as inventory_queries
from placement_rpc.objects import base, fields, node_changes, node_columns, outcome
from placement_rpc.objects.claim import Claim, ClaimSettlement, ReleaseSettlement
from placement_rpc.objects.journal import changing
from placement_rpc.objects.node_disagreements import (
    MISSING,
    Held,
    compare,
    healed,
    said_of,
)

# How far the clocks of a compute host and of the store may be apart.
_CLOCKS = datetime.timedelta(seconds=30)
# What a tracker saw this long ago is no reason to change what anybody holds.
_TOO_OLD = datetime.timedelta(hours=1)
_MOST_CONSUMERS = 5000


@base.PlacementObjectRegistry.register
class SyncResult(base.PlacementObject):
    """What a cycle changed, and what the tracker and the store do not agree on.

    ``changed`` names the columns of the node and the classes of its inventory that were written.
    ``provider_uuid`` is the node's, ``shared_disk_uuid`` the provider's whose disk it shares.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "shared_disk_uuid": fields.field(fields.Uuid(), nullable=True),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
        "changed": fields.field(fields.Several(fields.Text(64))),
        "disagreements": fields.ListOfObjectsField("Disagreement"),
    }


class Sync:
    """One cycle.

    :param context: :class:`placement_rpc.context.RequestContext` with a database
    :param group_commit: :class:`placement_rpc.objects.group_commit.GroupCommit`
    :param request: :class:`placement_rpc.objects.outcome.Request`
    :param node: :class:`placement_rpc.objects.compute_node.ComputeNode`
    :param allocations: dict of consumer uuid to dict of project_id, user_id, resources
    :param snapshot_at: float, seconds since the epoch, when the tracker looked
    :param said: :class:`placement_rpc.objects.node_changes.Said`
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
                differs = row is None or self._differs(tx, row)
                result = None if differs else self._compare(tx, row.uuid, [])
        if stored is not None:
            return outcome.recall(self._context.database, self._request)
        if not differs and not (self._heal and result.disagreements):
            return result
        return self._settle()

    def _settle(self):
        """Write the node, heal, and keep the outcome for whoever asks again."""
        self._context.check_deadline()
        uuid, changed = changing(
            self._context, self._write_node, self._request.request_id)
        with self._context.database.reader() as tx:
            result = self._compare(tx, uuid, changed)
        if self._heal:
            self._heal_all(result)
        outcome.keep(self._context.database, self._request, result)
        return result

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

    def _differs(self, tx, row):
        if row.uuid is None or (
                self._context.nodes.migrates and row.inventory_migrated_at is None):
            return True
        values, = node_columns.read(tx, [row])
        return bool(node_changes.plan(
            tx, row, values, self._node, self._said, self._context.nodes).changed)

    def _write_node(self, tx, journal):
        """:returns: tuple of the node's uuid and list of str, what was written"""
        row = self._find(tx)
        if row is None:
            if not self._node.value("uuid"):
                self._node.uuid = fields.new_uuid()
            node_changes.create(tx, journal, self._node, self._context.nodes, self._said)
            return self._node.uuid, ["compute_node"]
        if row.uuid is None:
            queries.set_uuids(tx, {row.id: self._node.value("uuid") or fields.new_uuid()})
        row, = queries.lock(tx, [row.id])
        return row.uuid, node_changes.save(
            tx, journal, row, self._node, self._context.nodes, self._said)

    # -- who uses it --------------------------------------------------------------------

    def _compare(self, tx, uuid, changed):
        provider = providers.get(tx, uuid)
        shared = self._shared_disk(tx, uuid)
        result = SyncResult(
            provider_uuid=uuid, shared_disk_uuid=shared, changed=changed, disagreements=[],
            generation=provider.generation if provider else None)
        if provider is None:
            # Its columns are all there is of it until the gate opens.
            return result
        has_disk = any(row.resource_class == "DISK_GB"
                       for row in inventory_queries.of_provider(tx, provider.id))
        said = {consumer: wants for consumer, values in self._allocations.items() if (
            wants := said_of(values["resources"], uuid, shared, has_disk))}
        self._held = _held(tx, provider.id, list(said))
        result.disagreements = compare(
            self._held, said, uuid, shared, self._seen_at - _CLOCKS)
        return result

    @staticmethod
    def _shared_disk(tx, uuid):
        """:returns: str, uuid of the provider whose disk a node shares; None for none"""
        found = queries.sharing(tx, [uuid])
        return max(found, key=lambda row: row.free).provider_uuid if found else None

    # -- healing ------------------------------------------------------------------------

    def _heal_all(self, result):
        young = self._released_since([each.consumer_uuid for each in result.disagreements
                                      if each.kind == MISSING])
        for number, each in enumerate(result.disagreements, 1):
            if bulk.now() - self._seen_at > _TOO_OLD:
                each.reason = "the tracker looked too long ago"
            elif each.consumer_uuid in young:
                each.reason = "it gave everything back after the tracker looked"
            else:
                self._heal_one(number, each, result)

    def _heal_one(self, number, each, result):
        holding = self._held.get(each.consumer_uuid)
        wanted = healed(holding, each, result.provider_uuid, result.shared_disk_uuid)
        settled, = self._group_commit.settle([self._settlement(number, each, holding, wanted)])
        if settled.error is None:
            each.healed = True
        elif isinstance(settled.error, exception.PlacementException) and (
                not settled.error.retryable):
            each.reason = settled.error.text[:1000]
        else:
            raise settled.error

    def _settlement(self, number, each, holding, wanted):
        """What makes the store say what the tracker says, if nobody changed it meanwhile."""
        consumer = each.consumer_uuid
        generation = holding.generation if holding else 0
        request = self._request.part(number, {"consumer": consumer, "holds": wanted})
        if not wanted:
            return ReleaseSettlement(request, consumer, generation, self._context.deadline)
        said = self._allocations.get(consumer, {})
        claim = Claim(
            consumer_uuid=consumer, consumer_generation=generation, allocations=wanted,
            project_id=said.get("project_id") or holding.project_id,
            user_id=said.get("user_id") or holding.user_id)
        return ClaimSettlement(request, claim, self._context.deadline)

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
    if at > bulk.now() + _CLOCKS:
        raise exception.InvalidInput(what="snapshot_at", reason="it is in the future")
    return at


def _held(tx, provider_id, consumers):
    """All that those hold who hold something of a provider, or are named.

    :returns: dict of consumer uuid to :class:`placement_rpc.objects.node_disagreements.Held`
    """
    held = {}
    for row in consumer_queries.holding(tx, provider_id, consumers):
        holding = held.setdefault(row.consumer_uuid, Held(
            row.project_id, row.user_id, row.generation, row.changed_at, {}))
        holding.allocations.setdefault(row.provider_uuid, {})[row.resource_class] = row.used
    return held
