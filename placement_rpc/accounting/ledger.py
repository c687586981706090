# SPDX-License-Identifier: Apache-2.0
"""The rules of claims (DESIGN rules 1 to 3), applied to a locked state.

Claims are applied to a :class:`Ledger` one after the other. Each is either accepted, which
changes the state, or refused, which leaves the state as it was. Nothing here uses the database.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from placement_rpc import exception
from placement_rpc.accounting import consumer_tags
from placement_rpc.accounting.locked_state import (
    ConsumerEntry,
    InventoryEntry,
    InventoryKey,
    LockedState,
)
from placement_rpc.candidates import capacity


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredAllocations:
    """The allocations that a consumer is to have, in place of all that it has now.

    :param consumer: uuid
    :param allocations: dict of provider uuid to dict of class to amount; a class is given by its
        name, or by its id if it was read from the ledger
    :param generation: the generation that the consumer must be at, 0 for one that holds nothing;
        None for any
    :param tags: entity tags, of which the consumer must have one; None for any
    :param consumer_type: name of a type; None to keep the consumer's
    :param mappings: the groups of a request for which the providers were chosen, kept with the
        event; None for none
    :param skip_unit_checks: whether the amounts are exempt from min_unit, max_unit and step_size,
        since another consumer holds them and they were checked when it claimed them
    :param as_new: whether min_unit, max_unit and step_size hold for the amounts that the consumer
        has already, too, since the same request changes the inventories
    :param raise_generation: whether the generation of a consumer rises even if nothing changes
    """

    consumer: str
    allocations: Mapping[str, Mapping[str, int] | Mapping[int, int]]
    project_id: str = ""
    user_id: str = ""
    generation: int | None = None
    tags: Sequence[str] | None = None
    consumer_type: str | None = None
    mappings: Mapping[str, Sequence[str]] | None = None
    skip_unit_checks: bool = False
    as_new: bool = False
    raise_generation: bool = False


class Owner(NamedTuple):
    """The project and the user of a consumer, and its type, None if that is not known."""

    project_id: str | None
    user_id: str | None
    consumer_type: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerChange:
    """The change of one consumer's allocations.

    ``before`` and ``after`` map provider id and class id to an amount; ``generations`` maps the
    id of each provider concerned to its generation before and after.
    """

    consumer: str
    generation: int
    previous_generation: int
    owner: Owner
    previous_owner: Owner
    before: dict[InventoryKey, int]
    after: dict[InventoryKey, int]
    generations: dict[int, tuple[int, int]]
    mappings: Mapping[str, Sequence[str]] | None = None


class Ledger:
    """The view of a locked state to which allocations are applied."""

    def __init__(self, state: LockedState):
        self.consumers = state.consumers
        self.providers = state.providers
        self._state = state

    def apply(self, desired: Sequence[DesiredAllocations], one_step: bool = True,
              ) -> list[ConsumerChange]:
        """Replace the allocations of consumers: of all of them or of none.

        :param desired: of different consumers
        :param one_step: whether the generation of a provider is raised by one only, however many
            of the consumers hold something else of it now
        :returns: a change for every consumer, also for those that hold the same as before
        :raises ConsumerConflict: if a consumer is not at the generation that was given
        :raises PreconditionFailed: if a consumer has none of the tags that were given
        :raises ProviderNotFound: if there is no provider of a uuid
        :raises ResourceClassNotFound: if there is no class of a name
        :raises CapacityExceeded: if an inventory has no room, or a provider has no such inventory
        :raises ConstraintsViolated: if an amount breaks min_unit, max_unit or step_size
        """
        self.check_consumers(desired)
        wanted = [self._resolve(each) for each in desired]
        changes: dict[InventoryKey, int] = {}
        for each, amounts in zip(desired, wanted, strict=True):
            held = self.consumers[each.consumer].held
            self._check_units(each, amounts, held)
            for key, amount in amounts.items():
                if amount != held.get(key):
                    changes[key] = changes.get(key, 0) + amount - held.get(key, 0)
            for key, amount in held.items():
                if key not in amounts:
                    changes[key] = changes.get(key, 0) - amount
        self._check_capacity(changes, wanted)
        return self._commit(desired, wanted, changes, one_step)

    def allocations_of(self, consumer: ConsumerEntry) -> dict[str, dict[int, int]]:
        """Return the allocations of a consumer.

        :returns: dict of provider uuid to dict of class id to amount
        """
        result: dict[str, dict[int, int]] = {}
        for (provider_id, class_id), amount in consumer.held.items():
            result.setdefault(self.providers[provider_id].uuid, {})[class_id] = amount
        return result

    @staticmethod
    def check_tags(consumer: ConsumerEntry, tags: Sequence[str] | None) -> None:
        """Check that a consumer has one of some entity tags.

        :param tags: None if it may have any
        :raises PreconditionFailed: if it has none of them
        """
        if tags is not None and not consumer_tags.is_current(
                consumer.tag, bool(consumer.held), tags):
            raise exception.PreconditionFailed(
                reason=f"Consumer {consumer.uuid} has changed since the given tag was read"
                if consumer.held else f"Consumer {consumer.uuid} has no allocations")

    def check_consumers(self, desired: Sequence[DesiredAllocations]) -> None:
        """Check the preconditions of consumers, and whether the named providers exist.

        :raises ConsumerConflict: if a consumer is not at the generation that was given
        :raises PreconditionFailed: if a consumer has none of the tags that were given
        :raises ProviderNotFound: if there is no provider of a uuid
        """
        for each in desired:
            entry = self.consumers[each.consumer]
            self.check_tags(entry, each.tags)
            if each.generation is not None and each.generation != entry.generation:
                raise exception.ConsumerConflict(
                    consumer=entry.uuid, current=entry.generation, given=each.generation,
                    reason=f"it is at generation {entry.generation}, not at {each.generation}")
        for each in desired:
            for uuid in each.allocations:
                if uuid not in self._state.providers_by_uuid:
                    raise exception.ProviderNotFound(provider=uuid)
        for each in desired:
            for resources in each.allocations.values():
                for name in resources:
                    if not isinstance(name, int) and name not in self._state.class_ids:
                        raise exception.ResourceClassNotFound(resource_class=name)

    def _resolve(self, desired):
        """Return a dict of (provider id, class id) to amount."""
        amounts = {}
        for uuid, resources in desired.allocations.items():
            provider = self._state.providers_by_uuid[uuid]
            for name, amount in resources.items():
                class_id = name if isinstance(name, int) else self._state.class_ids[name]
                if class_id not in provider.inventories:
                    raise exception.CapacityExceeded(
                        provider=uuid, resource_class=self._class_name(class_id),
                        requested=amount, free=0, capacity=0)
                amounts[provider.id, class_id] = amount
        return amounts

    def _inventory(self, key) -> InventoryEntry:
        provider_id, class_id = key
        return self.providers[provider_id].inventories[class_id]

    def _check_units(self, desired, amounts, held):
        """Check amounts, of those that the consumer has already only if the claim says so.

        :raises ConstraintsViolated: if one of them cannot be allocated at once
        """
        for key, amount in amounts.items():
            if desired.as_new:
                self._check_unit(key, amount, 0)
            elif amount != held.get(key) and not desired.skip_unit_checks:
                self._check_unit(key, amount, held.get(key, 0))

    def _check_unit(self, key, amount, held):
        """Check whether an amount can be allocated at once.

        An amount that does not grow is not held to max_unit: a maximum that was lowered since
        must not keep a consumer from releasing a part.

        :raises ConstraintsViolated: if it cannot
        """
        inventory = self._inventory(key)
        if not capacity.reaches_min_unit(amount, inventory.min_unit):
            reason = f"min_unit is {inventory.min_unit}"
        elif amount > held and not capacity.within_max_unit(amount, inventory.max_unit):
            reason = f"max_unit is {inventory.max_unit}"
        elif not capacity.is_on_step(amount, inventory.step_size):
            reason = f"step_size is {inventory.step_size}"
        else:
            return
        raise exception.ConstraintsViolated(
            provider=self.providers[key[0]].uuid, resource_class=self._class_name(key[1]),
            requested=amount, reason=reason)

    def _check_capacity(self, changes, wanted):
        for key, change in changes.items():
            inventory = self._inventory(key)
            if change > 0 and not capacity.has_room(inventory.capacity, inventory.used, change):
                requested = sum(amounts.get(key, 0) for amounts in wanted)
                raise exception.CapacityExceeded(
                    provider=self.providers[key[0]].uuid,
                    resource_class=self._class_name(key[1]), requested=requested,
                    free=max(0, capacity.free_of(inventory.capacity, inventory.used)
                             - change + requested),
                    capacity=inventory.capacity)

    def _class_name(self, class_id):
        return self._state.class_names[class_id]

    def _commit(self, desired, wanted, changes, one_step):
        for key, change in changes.items():
            if change:
                self._state.use(key, change)
        # The generations of the providers that were raised already, before and after.
        raised = {} if one_step else None
        return [self._replace(each, amounts, raised)
                for each, amounts in zip(desired, wanted, strict=True)]

    def _replace(self, desired, amounts, raised):
        """Set the allocations of a consumer.

        The generation of each provider of which it now holds something else is raised, and the
        consumer's if anything changes, or if that is desired.
        """
        entry = self.consumers[desired.consumer]
        before, previous_generation = entry.held, entry.generation
        previous_owner = Owner(entry.project_id, entry.user_id, entry.consumer_type)
        owner = Owner(desired.project_id, desired.user_id,
                      desired.consumer_type or entry.consumer_type) if amounts else previous_owner
        generations = self._raised(amounts, before, raised)
        is_raised = desired.raise_generation and amounts
        if amounts != before or owner != previous_owner or is_raised:
            entry.held, entry.changed = amounts, True
            entry.project_id, entry.user_id, entry.consumer_type = owner
            entry.generation = entry.generation + 1 if amounts else 0
            if not amounts:
                # Its row is deleted. Later allocations, of the same transaction too, get another
                # one, or they would have the tag of these.
                entry.id = entry.created_at = entry.consumer_type = None
        return ConsumerChange(
            entry.uuid, entry.generation, previous_generation, owner, previous_owner, before,
            amounts, generations, desired.mappings)

    def _raised(self, amounts, before, raised):
        """Raise the generations of the providers of which a consumer holds something else now.

        :param raised: dict of the id of each provider that was raised already to its generations
            before and after; None to raise it again
        :returns: the same, for each provider of which it holds something or did
        """
        touched = {key[0] for key, _ in amounts.items() ^ before.items()}
        generations = {}
        for provider_id in sorted({key[0] for key in (*amounts, *before)}):
            provider = self.providers[provider_id]
            if provider_id not in touched:
                # In a set the step may have been made for a consumer before this one. All that
                # follow share it, or the generations of their events would go back.
                generations[provider_id] = (raised or {}).get(
                    provider_id, (provider.generation, provider.generation))
            elif raised is None:
                generations[provider_id] = provider.raise_generation()
            else:
                if provider_id not in raised:
                    raised[provider_id] = provider.raise_generation()
                generations[provider_id] = raised[provider_id]
        return generations
