# SPDX-License-Identifier: Apache-2.0
"""The events of allocations."""

from collections.abc import Mapping
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting.ledger import ConsumerChange, Owner
from placement_rpc.accounting.locked_state import ProviderEntry
from placement_rpc.accounting.outbox import Outbox, primitive
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.payloads import (
    AllocationPayload,
    ClaimRefusedPayload,
    ConsumerPayload,
    ProviderAllocation,
)


def record(outbox: Outbox, change: ConsumerChange, providers: Mapping[int, ProviderEntry],
           names: Mapping[int, str]) -> None:
    """Record the change of a consumer; without a change there is no event.

    A change of its owner has an event of its own, in addition to that of the allocations, by
    which listeners bill.

    :param providers: entries by provider id
    :param names: class names by class id
    """
    if change.generation == change.previous_generation and change.before == change.after:
        # A consumer that an older release brought over can be at generation 0 and hold something.
        return
    kind = "create" if not change.before else "update" if change.after else "delete"
    before, after = (_by_provider(amounts, names) for amounts in (change.before, change.after))
    consumer = _consumer(change)
    outbox.add_plain(
        f"allocation.{kind}", AllocationPayload, **consumer,
        mappings=None if change.mappings is None else dict(change.mappings),
        providers=[
            primitive(
                ProviderAllocation, provider_uuid=providers[id_].uuid,
                previous_generation=previous, generation=generation,
                before=before.get(id_, {}), after=after.get(id_, {}))
            for id_, (previous, generation) in change.generations.items()])
    if kind == "update" and change.owner != change.previous_owner:
        outbox.add_plain("consumer.update", ConsumerPayload, **consumer)


def _consumer(change):
    """Return the fields of a payload that say whose a consumer is, and whose it was."""
    previous = change.previous_owner if change.before else Owner(None, None)
    return {"consumer_uuid": change.consumer, "consumer_generation": change.generation,
            "previous_consumer_generation": change.previous_generation,
            **change.owner._asdict(),
            **{f"previous_{name}": value for name, value in previous._asdict().items()}}


def exists(outbox: Outbox, consumer: Any, held: Mapping[str, tuple[int, dict[str, int]]]) -> None:
    """Record the allocations of a consumer, in a snapshot.

    :param consumer: row of uuid, project_id, user_id, generation, consumer_type
    :param held: dict of provider uuid to its generation and a dict of class name to amount
    """
    outbox.add_plain(
        "allocation.exists", AllocationPayload,
        consumer_uuid=consumer.uuid, consumer_generation=consumer.generation,
        previous_consumer_generation=consumer.generation,
        project_id=consumer.project_id, user_id=consumer.user_id,
        consumer_type=consumer.consumer_type,
        previous_project_id=consumer.project_id, previous_user_id=consumer.user_id,
        previous_consumer_type=consumer.consumer_type, mappings=None,
        providers=[
            primitive(ProviderAllocation, provider_uuid=uuid, previous_generation=generation,
                      generation=generation, before=amounts, after=amounts)
            for uuid, (generation, amounts) in held.items()])


def _by_provider(amounts, names):
    result = {}
    for (provider_id, class_id), amount in amounts.items():
        result.setdefault(provider_id, {})[names[class_id]] = amount
    return result


def refused(claim: Claim, allocations: Mapping[str, Mapping[str, int]],
            error: exception.PlacementException) -> tuple[str, ClaimRefusedPayload]:
    """Return the type and the payload of the event of a refused claim.

    :param allocations: dict of provider uuid to dict of class name to amount; empty if no
        provider was found
    """
    return "allocation.claim.refused", ClaimRefusedPayload(
        consumer_uuid=claim.consumer_uuid, project_id=claim.project_id, user_id=claim.user_id,
        allocations=allocations,
        error={"code": error.code, "message": error.text, "kwargs": error.kwargs})
