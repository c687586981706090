# SPDX-License-Identifier: Apache-2.0
"""The events of allocations."""

from placement_rpc.accounting.outbox import primitive
from placement_rpc.objects.payloads import (
    AllocationPayload,
    ClaimRefusedPayload,
    ProviderAllocation,
)


def record(outbox, change, providers, names):
    """Note what became of a consumer; nothing where nothing did.

    :param outbox: :class:`placement_rpc.accounting.outbox.Outbox`
    :param change: :class:`placement_rpc.accounting.ledger.ConsumerChange`
    :param providers: dict of provider id to :class:`placement_rpc.accounting.ledger.ProviderEntry`
    :param names: dict of class id to name
    """
    if change.generation == change.previous_generation:
        return
    kind = "create" if not change.before else "update" if change.after else "delete"
    before, after = (_by_provider(amounts, names) for amounts in (change.before, change.after))
    project_id, user_id = change.owner
    previous_project_id, previous_user_id = change.previous_owner if change.before else (
        None, None)
    outbox.add_plain(
        f"allocation.{kind}", AllocationPayload,
        consumer_uuid=change.consumer, consumer_generation=change.generation,
        previous_consumer_generation=change.previous_generation,
        project_id=project_id, user_id=user_id, previous_project_id=previous_project_id,
        previous_user_id=previous_user_id,
        providers=[
            primitive(
                ProviderAllocation, provider_uuid=providers[id_].uuid,
                previous_generation=previous, generation=generation,
                before=before.get(id_, {}), after=after.get(id_, {}))
            for id_, (previous, generation) in change.generations.items()])


def exists(outbox, consumer, held):
    """Note what a consumer holds, in a snapshot.

    :param consumer: row of uuid, project_id, user_id, generation
    :param held: dict of provider uuid to its generation and a dict of class to amount
    """
    outbox.add_plain(
        "allocation.exists", AllocationPayload,
        consumer_uuid=consumer.uuid, consumer_generation=consumer.generation,
        previous_consumer_generation=consumer.generation,
        project_id=consumer.project_id, user_id=consumer.user_id,
        previous_project_id=consumer.project_id, previous_user_id=consumer.user_id,
        providers=[
            primitive(ProviderAllocation, provider_uuid=uuid, previous_generation=generation,
                      generation=generation, before=amounts, after=amounts)
            for uuid, (generation, amounts) in held.items()])


def _by_provider(amounts, names):
    result = {}
    for (provider_id, class_id), amount in amounts.items():
        result.setdefault(provider_id, {})[names[class_id]] = amount
    return result


def refused(claim, allocations, error):
    """The event of a claim that was not granted.

    :param claim: :class:`placement_rpc.objects.claim.Claim`
    :param allocations: dict of provider uuid to dict of class to amount; empty where no provider
        was found
    :param error: the PlacementException
    :returns: tuple of event type and payload
    """
    return "allocation.claim.refused", ClaimRefusedPayload(
        consumer_uuid=claim.consumer_uuid, project_id=claim.project_id, user_id=claim.user_id,
        allocations=allocations,
        error={"code": error.code, "message": error.text, "kwargs": error.kwargs})
