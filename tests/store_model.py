# SPDX-License-Identifier: Apache-2.0
"""A simple model of the store: what each change must do to it, or why it must be refused.

It keeps providers and consumers in dicts, and copies all of them before each change. It knows no
database, no batches and no derived columns.
"""

import collections
import copy
import dataclasses
import fractions
import math

from placement_rpc import exception

_NOTHING = exception.ConsumerNotFound, exception.ConsumerConflict


class Refused(Exception):
    """A change must be refused, with an error of one of the classes in ``args``."""


def _refuse(**reasons):
    """Refuse a change for those of some reasons that hold; which is told first is not a rule.

    :param reasons: name of an error to whether it holds
    """
    found = [getattr(exception, name) for name, holds in reasons.items() if holds]
    if found:
        raise Refused(*found)


@dataclasses.dataclass
class Inventory:
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float

    @property
    def capacity(self):
        return math.floor((self.total - self.reserved) * fractions.Fraction(
            repr(self.allocation_ratio)))

    def can_be_allocated(self, amount, held):
        """Whether the units allow an amount; one that does not grow may be above max_unit."""
        return (amount >= self.min_unit and amount % self.step_size == 0
                and (amount <= held or amount <= self.max_unit))


@dataclasses.dataclass
class Provider:
    name: str
    parent: str | None
    generation: int = 0
    inventories: dict = dataclasses.field(default_factory=dict)
    traits: frozenset = frozenset()
    aggregates: frozenset = frozenset()


class StoreModel:
    """The model; ``providers`` and ``consumers`` by uuid.

    A consumer is a dict of ``generation`` and ``held``, which maps (provider, class) to an amount.
    The methods change the model, or raise :class:`Refused` and leave it as it was.
    """

    def __init__(self, traits):
        self.providers = {}
        self.consumers = {}
        self.traits = traits

    def attempt(self, name, *arguments):
        """Call a method on a copy, and keep the copy if the change is accepted."""
        changed = copy.deepcopy(self)
        getattr(changed, name)(*arguments)
        self.providers, self.consumers = changed.providers, changed.consumers

    # -- what follows from the rows -------------------------------------------------------

    def root(self, uuid):
        while self.providers[uuid].parent is not None:
            uuid = self.providers[uuid].parent
        return uuid

    def below(self, uuid):
        """Return a provider and all below it."""
        found = {uuid}
        while more := {each for each, provider in self.providers.items()
                       if provider.parent in found} - found:
            found |= more
        return found

    def held(self, consumer):
        return self.consumers.get(consumer, {"held": {}})["held"]

    def generation(self, consumer):
        return self.consumers.get(consumer, {"generation": 0})["generation"]

    def used(self, provider, name):
        return sum(each["held"].get((provider, name), 0) for each in self.consumers.values())

    def fits(self, uuid, resources):
        """Whether a provider has room for a dict of class to amount."""
        inventories = self.providers[uuid].inventories
        return all(
            name in inventories and inventories[name].can_be_allocated(amount, 0)
            and self.used(uuid, name) + amount <= inventories[name].capacity
            for name, amount in resources.items())

    # -- providers ------------------------------------------------------------------------

    def create(self, uuid, name, parent):
        _refuse(ProviderExists=uuid in self.providers, NameInUse=self._has_name(name),
                ParentNotFound=self._is_missing(parent))
        self.providers[uuid] = Provider(name, parent)

    def _has_name(self, name, but=None):
        return any(each.name == name for uuid, each in self.providers.items() if uuid != but)

    def _is_missing(self, parent):
        return parent is not None and parent not in self.providers

    def update(self, uuid, name, parent):
        below = self.below(uuid)
        _refuse(ProviderNotFound=uuid not in self.providers, NameInUse=self._has_name(name, uuid),
                ParentNotFound=self._is_missing(parent), TreeLoop=parent in below)
        provider = self.providers[uuid]
        if (name, parent) == (provider.name, provider.parent):
            return
        root = self.root(uuid)
        provider.name, provider.parent = name, parent
        for each in below if self.root(uuid) != root else {uuid}:
            self.providers[each].generation += 1

    def delete(self, uuid):
        _refuse(ProviderNotFound=uuid not in self.providers,
                ProviderIsParent=self.below(uuid) != {uuid},
                ProviderInUse=any(provider == uuid for each in self.consumers.values()
                                  for provider, _name in each["held"]))
        del self.providers[uuid]

    def set_traits(self, uuid, names, generation):
        self._set(uuid, "traits", names, generation)

    def set_aggregates(self, uuid, uuids, generation):
        self._set(uuid, "aggregates", uuids, generation)

    def _set(self, uuid, field, values, generation):
        self._check_provider(uuid, generation, TraitNotFound=(
            field == "traits" and not values <= self.traits))
        provider = self.providers[uuid]
        if getattr(provider, field) != values:
            setattr(provider, field, values)
            provider.generation += 1

    def _check_provider(self, uuid, generation, **reasons):
        provider = self.providers.get(uuid)
        _refuse(ProviderNotFound=provider is None, ConcurrentUpdate=provider is not None
                and generation not in (None, provider.generation), **reasons)

    # -- inventories ----------------------------------------------------------------------

    def set_inventory(self, uuid, inventories, generation):
        self._check_provider(uuid, generation)
        provider = self.providers[uuid]
        _refuse(InventoryInUse=any(
            self.used(uuid, name) for name in provider.inventories.keys() - inventories))
        if provider.inventories != inventories:
            provider.inventories = dict(inventories)
            provider.generation += 1

    # -- allocations ----------------------------------------------------------------------

    def claim(self, claims, as_new=False):
        """Replace what consumers hold, of all of them or of none.

        :param claims: dict of consumer to (dict of (provider, class) to amount, generation)
        :param as_new: whether the units are checked of what a consumer holds already, too
        """
        self._check(claims, as_new)
        touched = set()
        for consumer, (wanted, _generation) in claims.items():
            touched |= self._hold(consumer, wanted)
        for uuid in touched:
            self.providers[uuid].generation += 1

    def _check(self, claims, as_new):
        change, reasons = collections.Counter(), collections.Counter()
        for consumer, (wanted, generation) in claims.items():
            held = self.held(consumer)
            reasons["ConsumerConflict"] += generation not in (None, self.generation(consumer))
            for key, amount in wanted.items():
                reasons[self._reason(key, amount, held.get(key, 0), as_new)] += 1
            for key in wanted.keys() | held.keys():
                change[key] += wanted.get(key, 0) - held.get(key, 0)
        reasons["CapacityExceeded"] += sum(
            amount > 0 and not self._has_room(key, amount) for key, amount in change.items())
        del reasons[None]
        _refuse(**reasons)

    def _reason(self, key, amount, held, as_new):
        """Return the error with which an amount is refused for any consumers, or None."""
        uuid, name = key
        if uuid not in self.providers:
            return "ProviderNotFound"
        inventory = self.providers[uuid].inventories.get(name)
        if inventory is None:
            return "CapacityExceeded"
        if (as_new or amount != held) and not inventory.can_be_allocated(
                amount, 0 if as_new else held):
            return "ConstraintsViolated"
        return None

    def _has_room(self, key, amount):
        uuid, name = key
        inventory = uuid in self.providers and self.providers[uuid].inventories.get(name)
        return bool(inventory) and self.used(uuid, name) + amount <= inventory.capacity

    def _hold(self, consumer, wanted):
        """Let a consumer hold something else; return the providers of which it does."""
        held = self.held(consumer)
        touched = {provider for (provider, _name), _amount in wanted.items() ^ held.items()}
        if touched:
            self.consumers[consumer] = {"generation": self.generation(consumer) + 1,
                                        "held": dict(wanted)}
        if not wanted:
            self.consumers.pop(consumer, None)
        return touched

    def release(self, consumer):
        if not self.held(consumer):
            raise Refused(exception.ConsumerNotFound)
        self.claim({consumer: ({}, None)})

    def move(self, source, target):
        held = self.held(source)
        if source == target or not held or self.held(target):
            raise Refused(*_NOTHING)
        # A move is two changes of each provider.
        for uuid in [*self._hold(source, {}), *self._hold(target, held)]:
            self.providers[uuid].generation += 1

    # -- both -----------------------------------------------------------------------------

    def reshape(self, inventories, claims):
        """Add and change inventories, replace allocations, and then remove inventories.

        :param inventories: dict of provider to (dict of class to inventory, generation)
        """
        for uuid, (_wanted, generation) in inventories.items():
            self._check_provider(uuid, generation)
        for uuid, (wanted, _generation) in inventories.items():
            self.set_inventory(uuid, self.providers[uuid].inventories | wanted, None)
        self.claim(claims, as_new=True)
        for uuid, (wanted, _generation) in inventories.items():
            self.set_inventory(uuid, wanted, None)
