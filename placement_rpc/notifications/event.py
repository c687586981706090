# SPDX-License-Identifier: Apache-2.0
"""An event as a listener receives it."""

import dataclasses
import datetime
import json
from typing import Any, Self

from placement_rpc import bodies
from placement_rpc.notifications import envelope, payload_check
from placement_rpc.objects import catalog
from placement_rpc.objects.codec import without_envelopes

# Times outside of these years cannot be converted between all time zones.
_FIRST_YEAR, _LAST_YEAR = 1970, 9998


class NotAPlacementEvent(ValueError):
    """A message that is not an event of this service."""


class UnsupportedPayload(ValueError):
    """An event whose payload is of a later major version than this release knows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event as it was received.

    ``payload`` is plain data, without the envelopes of versioned objects. A payload of a later
    minor version may have fields that this release does not know, and lacks none that it knows.
    The fields of a type that this release knows are there, and their values of the right kind.
    """

    event_id: str
    event_type: str
    position: int
    occurred_at: str
    payload: dict

    @classmethod
    def of_message(cls, body: bytes | str, compressed: object = None,
                   limits: bodies.Limits = bodies.ANSWERS) -> Self:
        """Return the event in a message.

        :param compressed: how the body is compressed, the message's header ``compression``
        :param limits: what the message may be
        :raises NotAPlacementEvent: if the message is not an event of this service
        :raises UnsupportedPayload: if its payload is of a later major version
        """
        try:
            message = envelope.opened(body, compressed, limits)
        except (ValueError, RecursionError, MemoryError) as error:
            raise NotAPlacementEvent(str(error)) from None
        event_type, payload = message.get("event_type"), message.get("payload")
        known = catalog.EVENTS.get(event_type) if isinstance(event_type, str) else None
        if known is None:
            return cls._of(event_type, without_envelopes(payload))
        _check_version(event_type, known.payload.VERSION, payload)
        try:
            data = payload_check.opened(known.payload, payload)
        except ValueError as error:
            raise NotAPlacementEvent(f"its payload cannot be used: {error}") from None
        return cls._of(event_type, data)

    @classmethod
    def of_row(cls, row: Any) -> Self:
        """Return the event in a row of the outbox that has a position."""
        payload = {**without_envelopes(json.loads(row.payload)), "position": row.position}
        if "epoch" in payload:
            payload["epoch"] = row.epoch
        return cls._of(row.event_type, payload)

    @classmethod
    def _of(cls, event_type, payload):
        if not payload_check.is_text(event_type):
            raise NotAPlacementEvent("its type is not a text")
        if not isinstance(payload, dict):
            raise NotAPlacementEvent("its payload is not a mapping")
        try:
            event = cls(payload["event_id"], event_type, payload["position"],
                        payload["occurred_at"], payload)
            time = event.time
            if time.tzinfo is None or not _FIRST_YEAR <= time.year <= _LAST_YEAR:
                raise ValueError
        except KeyError as error:
            raise NotAPlacementEvent(f"its payload has no {error}") from None
        except (TypeError, ValueError):
            raise NotAPlacementEvent(
                "its time is not in ISO 8601 with an offset from UTC, from 1970 to 9998") from None
        if type(event.position) is not int or not payload_check.is_text(event.event_id):
            raise NotAPlacementEvent("its position is not a number, or its id is not a text")
        return event

    @property
    def epoch(self) -> str | None:
        """The numbering that its position belongs to; None if it is not known"""
        found = self.payload.get("epoch")
        return found if isinstance(found, str) else None

    @property
    def known(self) -> bool:
        """Whether this release knows its type"""
        return self.event_type in catalog.EVENTS

    @property
    def time(self) -> datetime.datetime:
        """When it happened, in UTC"""
        return datetime.datetime.fromisoformat(self.occurred_at)

    @property
    def providers(self) -> set[str]:
        """The uuids of the providers that it is about"""
        # The payload of an unknown type may contain anything.
        several, amounts = self.payload.get("providers"), self.payload.get("allocations")
        found = [each.get("provider_uuid") for each in several if isinstance(each, dict)] if (
            isinstance(several, list)) else []
        found += amounts if isinstance(amounts, dict) else ()
        return {each for each in [*found, self.payload.get("provider_uuid")]
                if isinstance(each, str)}


def _check_version(event_type, known_version, payload):
    """Check that a payload is of the major version that this release knows.

    :raises UnsupportedPayload: if it is of another one
    """
    version = payload.get("placement_object.version") if isinstance(payload, dict) else None
    major = known_version.partition(".")[0]
    if version is not None and str(version).partition(".")[0] != major:
        raise UnsupportedPayload(
            f"the payload of {event_type} is of version {str(version)[:16]}; this release knows "
            f"{known_version}")
