# SPDX-License-Identifier: Apache-2.0
"""Settling batches: many requests to change what consumers hold, in one transaction.

Each is accepted or refused on its own (DESIGN rule 6). One claim is a batch of one.
"""

import dataclasses
import json
import logging
import time

from placement_rpc import exception
from placement_rpc.accounting import idempotency
from placement_rpc.accounting.events import record
from placement_rpc.accounting.ledger import ConsumerEntry, InventoryEntry, Ledger, ProviderEntry
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.accounting.resource_classes import ids_of, names_of
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims as queries
from placement_rpc.db.queries import events, requests
from placement_rpc.objects import request_result

LOG = logging.getLogger(__name__)


class PendingRequest:
    """One request that is settled together with others.

    :param request: :class:`placement_rpc.accounting.idempotency.Request`
    :param deadline: float, seconds since the epoch after which nothing may be done any more;
        None for no deadline
    """

    #: Whether a refusal is the final answer, to be stored as the request's outcome.
    final = True

    def __init__(self, request, deadline=None):
        self.request = request
        self.deadline = deadline

    def refused(self, error):
        """The event of a refusal.

        :returns: tuple of event type and payload; None where there is none to tell
        """

    @property
    def is_late(self):
        """bool, whether the caller has stopped waiting"""
        return self.deadline is not None and time.time() > self.deadline

    def check_deadline(self):
        """:raises RequestExpired: when the caller has stopped waiting (DESIGN rule 5)"""
        if self.is_late:
            raise exception.RequestExpired(late=round(time.time() - self.deadline, 3))


class AllocationChange(PendingRequest):
    """One request to change what consumers hold; subclasses say how."""

    #: tuple of str, uuids of the consumers whose holding may change
    consumers = ()
    #: dict of provider uuid to dict of class name to amount: what is asked for
    allocations = {}

    def holdings(self, ledger):
        """What the consumers are to hold.

        :param ledger: :class:`placement_rpc.accounting.ledger.Ledger`
        :returns: list of :class:`placement_rpc.accounting.ledger.DesiredAllocations`
        :raises PlacementException: when the request can not be met
        """
        raise NotImplementedError

    def result(self, ledger, generations):
        """The result, once the holdings were accepted.

        :param generations: dict of provider uuid to generation
        :returns: a versioned object
        """
        raise NotImplementedError

    @property
    def weight(self):
        """int, how much of a transaction it takes: the number of amounts"""
        return sum(len(resources) for resources in self.allocations.values()) or 1


@dataclasses.dataclass(slots=True)
class Outcome:
    """What became of a settlement: ``result``, a versioned object, or ``error``."""

    result: object = None
    error: Exception | None = None
    replayed: bool = False


def settle(database, settlements):
    """Settle a batch in one transaction.

    :param database: :class:`placement_rpc.db.api.Database`
    :param settlements: list of :class:`Settlement`
    :returns: list of :class:`Settled`, in the same order
    :raises StoreUnavailable: :raises StoreBusy: nothing of the batch was done
    """
    return database.write(lambda tx: settle_once(tx, settlements, _settle_new), "claim")


def settle_once(tx, settlements, settle_new):
    """Settle what was not settled before, and answer the rest with what came out then.

    :param settlements: list of :class:`Unsettled`
    :param settle_new: callable of the connection and a list of settlements that are new, which
        gives a dict of the id of each to its :class:`Settled`
    :returns: list of :class:`Settled`
    """
    stored = requests.find(tx, {each.request.request_id for each in settlements})
    settled, waiting = {}, []
    for each in settlements:
        if each.request.request_id in stored:
            settled[id(each)] = _replay(each, stored[each.request.request_id])
        else:
            waiting.append(each)
    if waiting:
        settled.update(settle_new(tx, waiting))
    return [settled[id(each)] for each in settlements]


def _replay(settlement, row):
    """The stored outcome of a request that comes again."""
    try:
        settlement.request.check_same(row)
        return Outcome(
            result=request_result.outcome_result(json.loads(row.outcome)), replayed=True)
    except exception.PlacementException as error:
        return Outcome(error=error, replayed=True)


class BatchOutcomes:
    """What is decided in one transaction: outcomes, and events.

    :param tx: the connection
    """

    def __init__(self, tx):
        self._tx = tx
        self._decided, self._rows, self._outboxes = {}, [], []
        #: dict of the id of a settlement to :class:`Settled`
        self.settled = {}

    def decide(self, settlement, decision):
        """Decide one request, unless another of the same id was decided before.

        :param settlement: :class:`Unsettled`
        :param decision: callable of a :class:`placement_rpc.accounting.outbox.Outbox` that makes
            the change and returns the result, or raises the PlacementException of a refusal
        """
        before = self._decided.get(settlement.request.request_id)
        if before is not None:
            self.settled[id(settlement)] = _repeat(settlement, *before)
            return
        outbox = Outbox(settlement.request.request_id)
        try:
            settlement.check_deadline()
            done = Outcome(result=decision(outbox))
        except exception.PlacementException as error:
            # Its trace would keep all that was read alive for as long as the error is.
            done = Outcome(error=error.with_traceback(None))
        self.settled[id(settlement)] = done
        if done.error is None or (settlement.final and not isinstance(
                done.error, exception.RequestExpired)):
            self._keep(settlement, done, outbox)

    def _keep(self, settlement, done, outbox):
        self._decided[settlement.request.request_id] = (settlement.request, done)
        self._rows.append(settlement.request.row(
            idempotency.of_error(done.error) if done.error else
            idempotency.of_result(self._tx, done.result)))
        event = settlement.refused(done.error) if done.error else None
        if event:
            outbox.add(*event)
        self._outboxes.append(outbox)

    def rows(self, used=None):
        """What is to be written.

        :param used: as of ``Outbox.rows``
        :returns: tuple of the rows of events and those of outcomes
        """
        return Outbox().rows(self._tx, *self._outboxes, used=used), self._rows

    def write(self):
        """Write events and outcomes."""
        told, kept = self.rows()
        if told:
            events.insert(self._tx, told)
        if kept:
            requests.insert(self._tx, kept)


def _settle_new(tx, settlements):
    ledger, names = _read(tx, settlements)
    decisions = BatchOutcomes(tx)
    for each in settlements:
        decisions.decide(each, lambda outbox, each=each: _decide(ledger, each, names, outbox))
    _write(tx, ledger, *decisions.rows(ledger.left_used()))
    return decisions.settled


def _repeat(settlement, request, done):
    """The same request id twice in one batch: one delivery too many, or a mistake."""
    if request.fingerprint != settlement.request.fingerprint:
        return Outcome(error=exception.RequestIdReused(
            request_id=request.request_id, method=request.method))
    return Outcome(result=done.result, error=done.error, replayed=True)


def _decide(ledger, settlement, names, outbox):
    """:returns: the result; :raises PlacementException: when it is refused"""
    generations = {}
    for change in ledger.apply(settlement.holdings(ledger)):
        record(outbox, change, ledger.providers, names)
        generations.update((ledger.providers[id_].uuid, after)
                           for id_, (_, after) in change.generations.items())
    return settlement.result(ledger, generations)


def _read(tx, settlements):
    """Lock what the batch is about and read it, consumers first, then providers.

    :returns: the ledger, and a dict of class id to name
    """
    names = {name for each in settlements for resources in each.allocations.values()
             for name in resources}
    consumers = {uuid: ConsumerEntry(uuid) for each in settlements for uuid in each.consumers}
    for row in queries.lock_consumers(tx, consumers):
        consumers[row.uuid] = ConsumerEntry(
            row.uuid, row.id, row.generation, row.project_id, row.user_id,
            changed_at=row.updated_at)
    uuids = _read_held(tx, [entry for entry in consumers.values() if entry.id])
    uuids.update(uuid for each in settlements for uuid in each.allocations)
    providers = [ProviderEntry(row.id, row.uuid, row.generation, row.generation)
                 for row in queries.lock_providers(tx, uuids)]
    inventories = {
        (row.resource_provider_id, row.resource_class_id): InventoryEntry(
            row.id, row.capacity, row.used, row.min_unit, row.max_unit, row.step_size)
        for row in (queries.inventories_of(tx, [each.id for each in providers])
                    if providers else ())}
    ids = ids_of(tx, names)
    held = {class_id for entry in consumers.values() for _, class_id in entry.held}
    return Ledger(consumers, providers, inventories, ids), names_of(tx, ids, held)


def _read_held(tx, entries):
    """Fill in what the consumers hold; :returns: set of the providers' uuids"""
    by_id = {entry.id: entry for entry in entries}
    providers = set()
    for row in queries.held(tx, list(by_id)):
        key = row.resource_provider_id, row.resource_class_id
        by_id[row.consumer_id].held[key] = row.used
        providers.add(row.provider_uuid)
    for entry in entries:
        entry.read_held = dict(entry.held)
    return providers


def _write(tx, ledger, told, kept):
    """Write what changed, events and outcomes.

    :param told: list of rows of events
    :param kept: list of rows of outcomes
    """
    changed = [entry for entry in ledger.consumers.values() if entry.changed]
    queries.clear(tx, [entry.id for entry in changed if entry.read_held],
                  [entry.id for entry in changed if entry.id and not entry.held])
    held = [entry for entry in changed if entry.held]
    old = {entry.id: {"project_id": entry.project_id, "user_id": entry.user_id,
                      "generation": entry.generation} for entry in held if entry.id}
    if old:
        queries.update_consumers(tx, old)
    if not queries.write(tx, {
            "consumers": [(entry.uuid, entry.project_id, entry.user_id, entry.generation)
                          for entry in held if not entry.id],
            "allocations": [(entry.id, entry.uuid, *key, amount)
                            for entry in held for key, amount in entry.held.items()],
            "used": [(ledger.inventories[key].id, ledger.inventories[key].used)
                     for key in ledger.changed_inventories],
            "generations": [(each.id, each.read_generation, each.generation)
                            for each in ledger.providers.values()
                            if each.generation != each.read_generation],
            "events": told, "requests": kept}):
        raise db.Stale("a resource provider of a claim")
