# SPDX-License-Identifier: Apache-2.0
"""What a resource tracker reports with its node: the allocations of its consumers, and a time."""

import collections
import datetime

from placement_rpc import exception
from placement_rpc.db.queries import bulk
from placement_rpc.nova.inventory import DEVICES
from placement_rpc.objects import fields

# The assumed maximum difference between the clocks of a compute host and of the database.
CLOCK_SKEW = datetime.timedelta(seconds=30)
_EARLIEST = datetime.datetime(2000, 1, 1)
_MAX_CONSUMERS = 5000
# A tracker may report amounts of 0, which no claim has.
_AMOUNTS = fields.Amounts(minimum=0)


def allocations_of(value):
    """Check the allocations that a tracker reports.

    :param value: dict of consumer uuid to dict of project_id, user_id and resources, a dict of
        class name to amount; amounts of 0 are dropped
    :returns: the same, with canonical names
    :raises InvalidInput: if it has another form
    :raises BatchTooLarge: for more than 5000 consumers
    """
    if not isinstance(value, dict):
        raise exception.InvalidInput(what="allocations", reason="they are not a mapping")
    if len(value) > _MAX_CONSUMERS:
        raise exception.BatchTooLarge(
            what="node", limit=_MAX_CONSUMERS, size=len(value))
    found = {fields.Uuid().coerce(None, "allocations", consumer): _allocation(consumer, report)
             for consumer, report in value.items()}
    if len(found) < len(value):
        raise exception.InvalidInput(
            what="allocations", reason="one consumer is in two spellings of its uuid")
    return found


def reported_devices(allocations):
    """Return the number of PCI devices in the reported allocations.

    :param allocations: as :func:`allocations_of` returned them
    :returns: dict of class name to int; None if no consumer has devices
    """
    found = collections.Counter()
    for report in allocations.values():
        found.update({name: amount for name, amount in report["resources"].items()
                      if name in DEVICES})
    return dict(found) or None


def _allocation(consumer, report):
    what = f"allocations[{consumer}]"
    if not isinstance(report, dict) or set(report) != {"project_id", "user_id", "resources"} or (
            not isinstance(report["resources"], dict)):
        raise exception.InvalidInput(
            what=what, reason="it is not a mapping of project_id, user_id and resources")
    return {
        "project_id": fields.Text(255).coerce(None, f"{what}.project_id", report["project_id"]),
        "user_id": fields.Text(255).coerce(None, f"{what}.user_id", report["user_id"]),
        "resources": _amounts(what, report["resources"])}


def _amounts(what, resources):
    """Return the amounts without those of 0, which are checked like the others."""
    found = _AMOUNTS.coerce(None, what, resources) if resources else {}
    return {name: amount for name, amount in found.items() if amount}


def time_of(seconds):
    """Return seconds since the epoch as a datetime in UTC without a zone.

    :raises InvalidInput: if it is not a time, or in the future
    """
    if type(seconds) not in (int, float):
        raise exception.InvalidInput(what="snapshot_at", reason="it is not a number of seconds")
    try:
        at = datetime.datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise exception.InvalidInput(
            what="snapshot_at", reason="it is not a number of seconds since the epoch") from None
    if at < _EARLIEST:
        raise exception.InvalidInput(
            what="snapshot_at", reason=f"it is before {_EARLIEST:%Y}, so not in seconds")
    if at > bulk.now() + CLOCK_SKEW:
        raise exception.InvalidInput(what="snapshot_at", reason="it is in the future")
    return at
