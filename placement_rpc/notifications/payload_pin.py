# SPDX-License-Identifier: Apache-2.0
"""Events as listeners of an older release know them."""

import dataclasses
import datetime
import json

from placement_rpc.objects import base
from placement_rpc.versions import pins


@dataclasses.dataclass(frozen=True, slots=True)
class PinnedRow:
    """A row of the outbox whose payload is of another version."""

    event_id: str
    event_type: str
    occurred_at: datetime.datetime
    payload: str
    position: int
    epoch: str | None


def release_of(options):
    """Return the release whose listeners the events are for; None for this one.

    :param options: ``conf.notifications``
    :returns: :class:`placement_rpc.versions.releases.Release`
    :raises InvalidInput: if there is no such release
    """
    return pins.fixed(options.payload_pin or pins.AUTO)


def all_pinned(rows, release):
    """Return events at the versions of a release; without a release they are not changed."""
    return [pinned(row, release) for row in rows] if release else rows


def pinned(row, release):
    """An event at a release's versions.

    A payload that the release does not have is left as it is: a listener passes over types of
    events that it does not know, and a position must not be missing.

    :param row: row of the outbox
    :param release: :class:`placement_rpc.versions.releases.Release`
    :returns: :class:`PinnedRow`
    """
    payload = base.backported(json.loads(row.payload), release.versions)
    return PinnedRow(
        row.event_id, row.event_type, row.occurred_at, json.dumps(payload), row.position,
        row.epoch)
