# SPDX-License-Identifier: Apache-2.0
"""The rules of claims, on what a transaction has locked (DESIGN rules 1 to 3).

A :class:`Ledger` holds the consumers, providers and inventories that a batch of claims is
about. Claims are applied to it one after the other: each is accepted, which changes the
ledger, or refused, which leaves it as it was. What changed in the end is written by
:mod:`placement_rpc.accounting.batch`. Nothing here talks to a database.
"""

import dataclasses

from placement_rpc import exception
from placement_rpc.candidates import capacity


@dataclasses.dataclass(slots=True)
class InventoryEntry:
    """An inventory: ``used`` changes, the rest are its rules."""

    id: int
    capacity: int
    used: int
    min_unit: int = 1
    max_unit: int = 2 ** 31 - 1
    step_size: int = 1


@dataclasses.dataclass(slots=True)
class ProviderEntry:
    """A provider; ``read_generation`` is the one in the database."""

    id: int
    uuid: str
    generation: int
    read_generation: int


@dataclasses.dataclass(slots=True)
class ConsumerEntry:
    """A consumer. ``id`` is None, and its generation 0, where it holds nothing yet.

    ``changed_at`` is when the database says that it changed last.

    ``held`` maps provider id and class id to an amount; ``read_held`` is what the database has.
    """

    uuid: str
    id: int | None = None
    generation: int = 0
    project_id: str = ""
    user_id: str = ""
    held: dict = dataclasses.field(default_factory=dict)
    read_held: dict = dataclasses.field(default_factory=dict)
    changed: bool = False
    changed_at: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredAllocations:
    """What a consumer is to hold from now on, in place of what it held.

    :param consumer: str, uuid
    :param allocations: dict of provider uuid to dict of class to amount; a class by its name,
        or by its id where it was read from the ledger
    :param generation: int the consumer must be at, 0 for one that holds nothing; None for any
    :param carried: bool, whether the amounts were another consumer's, so that the rules about
        single amounts were settled when they were claimed
    """

    consumer: str
    allocations: dict
    project_id: str = ""
    user_id: str = ""
    generation: int | None = None
    carried: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerChange:
    """What became of one consumer.

    ``before`` and ``after`` map provider id and class id to an amount; ``generations`` maps the
    id of each provider concerned to its generation before and after.
    """

    consumer: str
    generation: int
    previous_generation: int
    owner: tuple
    previous_owner: tuple
    before: dict
    after: dict
    generations: dict


class Ledger:
    """What a transaction has locked, and what becomes of it.

    :param consumers: dict of uuid to :class:`ConsumerEntry`, one for every consumer named
    :param providers: iterable of :class:`ProviderEntry`
    :param inventories: dict of (provider id, class id) to :class:`InventoryEntry`
    :param class_ids: dict of class name to id
    """

    def __init__(self, consumers, providers, inventories, class_ids):
        self.consumers = consumers
        self.providers = {entry.id: entry for entry in providers}
        self.inventories = inventories
        self.changed_inventories = set()
        self._provider_ids = {entry.uuid: entry.id for entry in self.providers.values()}
        self._class_ids = class_ids

    def apply(self, holdings):
        """Let consumers hold something else, all of them or none.

        :param holdings: list of :class:`Holding`, of different consumers
        :returns: list of :class:`HoldingChange`, of every consumer whether it changed or not
        :raises ConsumerConflict: :raises ProviderNotFound: :raises ResourceClassNotFound:
        :raises CapacityExceeded: :raises ConstraintsViolated: the ledger is as it was
        """
        wanted = [self._resolve(holding) for holding in holdings]
        changes = {}
        for holding, amounts in zip(holdings, wanted, strict=True):
            held = self._consumer(holding).held
            for key, amount in amounts.items():
                if amount != held.get(key):
                    if not holding.carried:
                        self._check_unit(key, amount, held.get(key, 0))
                    changes[key] = changes.get(key, 0) + amount - held.get(key, 0)
            for key, amount in held.items():
                if key not in amounts:
                    changes[key] = changes.get(key, 0) - amount
        self._check_capacity(changes, wanted)
        return self._commit(holdings, wanted, changes)

    def left_used(self):
        """What is used now of the providers that changed, for the candidate indexes.

        :returns: list of provider id, its generation as read, its generation now, and a list of
            class ids, each followed by what is used of it
        """
        used = {}
        for provider_id, class_id in self.changed_inventories:
            used.setdefault(provider_id, []).extend(
                (class_id, self.inventories[provider_id, class_id].used))
        return [[entry.id, entry.read_generation, entry.generation, used.get(entry.id, [])]
                for entry in self.providers.values()
                if entry.generation != entry.read_generation]

    def allocations_of(self, consumer):
        """What a consumer holds, by names.

        :param consumer: :class:`ConsumerEntry`
        :returns: dict of provider uuid to dict of class id to amount
        """
        result = {}
        for (provider_id, class_id), amount in consumer.held.items():
            result.setdefault(self.providers[provider_id].uuid, {})[class_id] = amount
        return result

    def _consumer(self, holding):
        entry = self.consumers[holding.consumer]
        if holding.generation is not None and holding.generation != entry.generation:
            raise exception.ConsumerConflict(
                consumer=entry.uuid, current=entry.generation, given=holding.generation,
                reason=f"it is at generation {entry.generation}, not at {holding.generation}")
        return entry

    def _resolve(self, holding):
        """:returns: dict of (provider id, class id) to amount"""
        amounts = {}
        for provider, resources in holding.allocations.items():
            provider_id = self._provider_ids.get(provider)
            if provider_id is None:
                raise exception.ProviderNotFound(provider=provider)
            for name, amount in resources.items():
                class_id = name if isinstance(name, int) else self._class_ids.get(name)
                if class_id is None:
                    raise exception.ResourceClassNotFound(resource_class=name)
                if (provider_id, class_id) not in self.inventories:
                    raise exception.CapacityExceeded(
                        provider=provider, resource_class=name, requested=amount, free=0,
                        capacity=0)
                amounts[provider_id, class_id] = amount
        return amounts

    def _check_unit(self, key, amount, held):
        """Check whether an amount can be allocated at once.

        An amount that does not grow is not held to max_unit: a maximum that was lowered since
        must not keep a consumer from releasing a part.

        :raises ConstraintsViolated: if it cannot
        """
        inventory = self.inventories[key]
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
            inventory = self.inventories[key]
            if change > 0 and not capacity.has_room(inventory.capacity, inventory.used, change):
                requested = sum(amounts.get(key, 0) for amounts in wanted)
                raise exception.CapacityExceeded(
                    provider=self.providers[key[0]].uuid,
                    resource_class=self._class_name(key[1]), requested=requested,
                    free=max(0, capacity.free_of(inventory.capacity, inventory.used)
                             - change + requested),
                    capacity=inventory.capacity)

    def _class_name(self, class_id):
        return next(name for name, id_ in self._class_ids.items() if id_ == class_id)

    def _commit(self, holdings, wanted, changes):
        for key, change in changes.items():
            if change:
                self.inventories[key].used += change
                self.changed_inventories.add(key)
        return [self._hold(holding, amounts)
                for holding, amounts in zip(holdings, wanted, strict=True)]

    def _hold(self, holding, amounts):
        """Give a consumer its new holding; the same one changes nothing.

        Each provider of which it holds something else now has changed once more, so that no two
        changes are of the same generation.
        """
        entry = self.consumers[holding.consumer]
        before, owner = entry.held, (entry.project_id, entry.user_id)
        previous_generation = entry.generation
        touched = {key[0] for key, _ in amounts.items() ^ before.items()}
        generations = {}
        for provider_id in sorted({key[0] for key in (*amounts, *before)}):
            provider = self.providers[provider_id]
            generations[provider_id] = (
                provider.generation, provider.generation + (provider_id in touched))
            provider.generation = generations[provider_id][1]
        if amounts != before or (amounts and owner != (holding.project_id, holding.user_id)):
            entry.held, entry.changed = amounts, True
            if amounts:
                entry.project_id, entry.user_id = holding.project_id, holding.user_id
            entry.generation = entry.generation + 1 if amounts else 0
        return ConsumerChange(
            entry.uuid, entry.generation, previous_generation,
            (entry.project_id, entry.user_id), owner, before, amounts, generations)
