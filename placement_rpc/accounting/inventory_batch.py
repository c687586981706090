# SPDX-License-Identifier: Apache-2.0
"""Setting the inventories of many providers in one transaction: the morning of a fleet.

Each request is accepted or refused on its own. One request is a batch of one.
"""

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.accounting.inventories import columns_of, read, write
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims


class InventoryReplacement(batch.PendingRequest):
    """All inventories of a provider, to be these and no others.

    :param request: :class:`placement_rpc.accounting.idempotency.Request`
    :param provider_uuid: str
    :param inventories: list of :class:`placement_rpc.objects.inventory.Inventory`
    :param generation: int, the provider's, as the caller read it; None for whatever it is
    :param deadline: as of :class:`placement_rpc.accounting.batch.PendingRequest`
    """

    def __init__(self, request, provider_uuid, inventories, generation=None, deadline=None):
        super().__init__(request, deadline)
        self.provider_uuid = provider_uuid
        self.inventories = inventories
        self.generation = generation

    @property
    def weight(self):
        """int, how much of a transaction it takes: the number of inventories"""
        return len(self.inventories) or 1


def settle(database, settlements):
    """Settle a batch in one transaction.

    :param database: :class:`placement_rpc.db.api.Database`
    :param settlements: list of :class:`InventoriesSettlement`
    :returns: list of :class:`placement_rpc.accounting.batch.Outcome`, in the same order; the
        results are :class:`placement_rpc.objects.inventory.InventoryList`
    :raises StoreUnavailable: :raises StoreBusy: nothing of the batch was done
    """
    return database.write(lambda tx: batch.settle_once(
        tx, settlements, _settle_new), "set_inventory")


def _settle_new(tx, settlements):
    # Who does not wait any more does not hold up others with the locks of his.
    in_time = [each for each in settlements if not each.is_late]
    rows = claims.lock_providers(tx, {each.provider_uuid for each in in_time}) if in_time else ()
    shelves, class_ids = read(tx, rows, {
        name for each in in_time for name in (
            inventory.value("resource_class") for inventory in each.inventories) if name})
    may_overfill = tx.info.get(db.MAY_OVERFILL)
    decisions = batch.BatchOutcomes(tx)
    for each in settlements:
        decisions.decide(each, lambda outbox, each=each: _decide(
            each, shelves.get(each.provider_uuid), class_ids, outbox, may_overfill))
    write(tx, list(shelves.values()))
    decisions.write()
    return decisions.settled


def _decide(asked, shelf, class_ids, outbox, may_overfill):
    wanted = columns_of(asked.inventories)
    if shelf is None:
        raise exception.ProviderNotFound(provider=asked.provider_uuid)
    if asked.generation is not None and asked.generation != shelf.generation:
        raise exception.ConcurrentUpdate(
            provider=shelf.uuid, current=shelf.generation, given=asked.generation)
    shelf.change(wanted, shelf.rows.keys() - wanted.keys(), class_ids, outbox, may_overfill)
    return shelf.inventories()
