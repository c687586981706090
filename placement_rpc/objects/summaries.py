# SPDX-License-Identifier: Apache-2.0
"""Pages of the whole store, for programs that compare it with what other services know.

A page has what would otherwise take a call for each provider or consumer. The pages are in the
order of uuids, and each begins after the last uuid of the one before. What does not change while
the pages are read is therefore in exactly one of them, whatever else is created or deleted.
"""

from collections.abc import Callable, Iterator
from typing import Any

from placement_rpc.objects import base, fields

_GENERATION = fields.WholeNumber(maximum=2 ** 63 - 1)
_TIME = fields.Text(32)


def _page_of(name):
    """Return the fields of a page of objects of a class."""
    return {
        "objects": fields.ListOfObjectsField(name),
        "more": fields.BooleanField(),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
    }


@base.PlacementObjectRegistry.register
class ProviderSummary(base.PlacementObject):
    """A provider with its inventories, what is used of them, its traits and its aggregates.

    ``inventories`` maps each class to a mapping of ``total``, ``reserved``, ``min_unit``,
    ``max_unit``, ``step_size``, ``allocation_ratio``, ``capacity`` and ``used``. All of it is of
    the moment at which the provider was at ``generation``. The parent of a root is None, and its
    root is itself. ``updated_at`` is UTC in ISO 8601.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "uuid": fields.field(fields.Uuid()),
        "name": fields.field(fields.Name()),
        "generation": fields.field(_GENERATION),
        "parent_provider_uuid": fields.field(fields.Uuid(), nullable=True),
        "root_provider_uuid": fields.field(fields.Uuid()),
        "updated_at": fields.field(_TIME),
        "inventories": fields.field(fields.Json()),
        "traits": fields.field(fields.Several(fields.TraitName(), maximum=2000)),
        "aggregates": fields.field(fields.Several(fields.Uuid(), maximum=100_000)),
    }


@base.PlacementObjectRegistry.register
class ProviderSummaryList(base.PlacementObjectList):
    """A page of providers in the order of their uuids.

    ``more`` says that there are others after the last. ``position`` is the position of an event
    up to which the page is sure to include every change.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = _page_of("ProviderSummary")


@base.PlacementObjectRegistry.register
class ConsumerSummary(base.PlacementObject):
    """A consumer with all of its allocations.

    ``allocations`` maps provider uuid to a mapping of resource class to amount, as in a claim.
    ``consumer_type`` is None if it is not known. ``tag`` is as of a ``Consumer``: a claim or a
    release with it is refused if the consumer has changed since. ``created_at`` is the time of
    its first allocations, and ``updated_at`` that of the last change of them, UTC in ISO 8601.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "uuid": fields.field(fields.Uuid()),
        "generation": fields.field(_GENERATION),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "consumer_type": fields.field(fields.ConsumerType(), nullable=True),
        "tag": fields.field(fields.Text(64)),
        "created_at": fields.field(_TIME),
        "updated_at": fields.field(_TIME),
        "allocations": fields.field(fields.Mapping(fields.Amounts())),
    }


@base.PlacementObjectRegistry.register
class ConsumerSummaryList(base.PlacementObjectList):
    """A page of consumers in the order of their uuids.

    ``more`` and ``position`` are as of :class:`ProviderSummaryList`.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = _page_of("ConsumerSummary")


def all_objects(read: Callable[[str | None], Any]) -> Iterator[Any]:
    """Return a generator of the objects of all pages, which reads a page when it is needed.

    :param read: callable that returns the page after a uuid, or the first page for None
    """
    page = read(None)
    yield from page.objects
    while page.more:
        page = read(page.objects[-1].uuid)
        yield from page.objects
