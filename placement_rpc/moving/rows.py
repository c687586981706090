# SPDX-License-Identifier: Apache-2.0
"""The rows that OpenStack Placement and this service have in common.

Both stores are read as streams of these rows, a stream for each kind, in ascending order of keys.
A key is made of uuids and names, which both stores share, and never of ids of rows. A row is a
plain tuple: its key, its values, and the times of its creation and of its last change. The times
are carried over, and not compared.

Resource classes and traits that this release knows as standard ones are no rows: each store has
them of its own.
"""

import datetime
from collections.abc import Collection
from typing import NamedTuple

from placement_rpc.accounting import traits
from placement_rpc.objects import class_names

Times = datetime.datetime | None


class _Parts:
    """What all kinds of rows have; ``_KEY`` is the number of fields of the key."""

    __slots__ = ()
    _KEY = 1

    @classmethod
    def key_size(cls) -> int:
        """Return the number of fields of the key, with which a row begins."""
        return cls._KEY

    @classmethod
    def compared_size(cls) -> int:
        """Return the number of fields that are compared: those of the key and the values."""
        return len(cls._fields) - 2                                   # type: ignore[attr-defined]

    @property
    def key(self) -> tuple[str, ...]:
        """The fields that identify the row in both stores."""
        return self[:self._KEY]                                       # type: ignore[index]

    @property
    def values(self) -> tuple:
        """The fields that are compared."""
        return self[self._KEY:self.compared_size()]                   # type: ignore[index]


class _ResourceClass(NamedTuple):
    name: str
    created_at: Times = None
    updated_at: Times = None


class ResourceClassRow(_Parts, _ResourceClass):
    """A custom resource class, or a standard one that this release does not know."""

    __slots__ = ()


class _Trait(NamedTuple):
    name: str
    created_at: Times = None
    updated_at: Times = None


class TraitRow(_Parts, _Trait):
    """A custom trait, or a standard one that this release does not know."""

    __slots__ = ()


class _ConsumerType(NamedTuple):
    name: str
    created_at: Times = None
    updated_at: Times = None


class ConsumerTypeRow(_Parts, _ConsumerType):
    """A type of consumers."""

    __slots__ = ()


class _Provider(NamedTuple):
    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    created_at: Times = None
    updated_at: Times = None


class ProviderRow(_Parts, _Provider):
    """A resource provider; ``parent`` and ``root`` are uuids, that of a root is its own root."""

    __slots__ = ()


class _Inventory(NamedTuple):
    provider: str
    resource_class: str
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    created_at: Times = None
    updated_at: Times = None


class InventoryRow(_Parts, _Inventory):
    """What a provider has of a resource class."""

    __slots__ = ()
    _KEY = 2


class _ProviderTrait(NamedTuple):
    provider: str
    trait: str
    created_at: Times = None
    updated_at: Times = None


class ProviderTraitRow(_Parts, _ProviderTrait):
    """A trait of a provider."""

    __slots__ = ()
    _KEY = 2


class _ProviderAggregate(NamedTuple):
    provider: str
    aggregate: str
    created_at: Times = None
    updated_at: Times = None


class ProviderAggregateRow(_Parts, _ProviderAggregate):
    """The membership of a provider in an aggregate."""

    __slots__ = ()
    _KEY = 2


class _Consumer(NamedTuple):
    uuid: str
    project: str
    user: str
    consumer_type: str | None
    generation: int
    created_at: Times = None
    updated_at: Times = None


class ConsumerRow(_Parts, _Consumer):
    """A consumer that has allocations; ``project`` and ``user`` are the ids of keystone."""

    __slots__ = ()


class _Allocation(NamedTuple):
    consumer: str
    provider: str
    resource_class: str
    used: int
    created_at: Times = None
    updated_at: Times = None


class AllocationRow(_Parts, _Allocation):
    """What a consumer uses of an inventory."""

    __slots__ = ()
    _KEY = 3


Row = (ResourceClassRow | TraitRow | ConsumerTypeRow | ProviderRow | InventoryRow
       | ProviderTraitRow | ProviderAggregateRow | ConsumerRow | AllocationRow)

#: The kinds whose standard names are no rows, and these names
STANDARD: dict[str, Collection[str]] = {
    "resource_classes": class_names.STANDARD_IDS, "traits": traits.STANDARD,
    "consumer_types": frozenset()}
#: Dict of the name of each kind to its class of rows, in order of dependency: a row refers only
#: to rows of its own kind and of kinds before it.
KINDS: dict[str, type[_Parts]] = {
    "resource_classes": ResourceClassRow,
    "traits": TraitRow,
    "consumer_types": ConsumerTypeRow,
    "providers": ProviderRow,
    "inventories": InventoryRow,
    "provider_traits": ProviderTraitRow,
    "provider_aggregates": ProviderAggregateRow,
    "consumers": ConsumerRow,
    "allocations": AllocationRow,
}
