# SPDX-License-Identifier: Apache-2.0
"""An event as a listener receives it."""

import dataclasses
import datetime
import json
from typing import Any, Self

from placement_rpc import bodies
from placement_rpc.notifications import envelope
from placement_rpc.objects import catalog
from placement_rpc.objects.codec import without_envelopes


class NotAPlacementEvent(ValueError):
    """A message that is not an event of this service."""


class UnsupportedPayload(ValueError):
    """An event whose payload is of a later major version than this release knows."""


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event as it was received.

    ``payload`` is plain data, without the envelopes of versioned objects. A payload of a later
    minor version may have fields that this release does not know, and lacks none that it knows.
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
        _check_version(message.get("event_type"), message.get("payload"))
        return cls._of(message["event_type"], without_envelopes(message.get("payload")))

    @classmethod
    def of_row(cls, row: Any) -> Self:
        """Return the event in a row of the outbox that has a position."""
        return cls._of(row.event_type, {**without_envelopes(json.loads(row.payload)),
                                        "position": row.position})

    @classmethod
    def _of(cls, event_type, payload):
        if not isinstance(event_type, str):
            raise NotAPlacementEvent("its type is not a string")
        if not isinstance(payload, dict):
            raise NotAPlacementEvent("its payload is not a mapping")
        try:
            event = cls(payload["event_id"], event_type, payload["position"],
                        payload["occurred_at"], payload)
            if datetime.datetime.fromisoformat(event.occurred_at).tzinfo is None:
                raise ValueError
        except KeyError as error:
            raise NotAPlacementEvent(f"its payload has no {error}") from None
        except (TypeError, ValueError):
            raise NotAPlacementEvent(
                "its time is not in ISO 8601, with an offset from UTC") from None
        if type(event.position) is not int or not isinstance(event.event_id, str):
            raise NotAPlacementEvent("its position is not a number, or its id is not a string")
        return event

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
        found = {each["provider_uuid"] for each in self.payload.get("providers", ())}
        found.update(self.payload.get("allocations", ()))
        return found | {self.payload[name] for name in ("provider_uuid",) if name in self.payload}


def _check_version(event_type, payload):
    """Raise if a payload is of another major version than this release knows.

    :raises UnsupportedPayload: if the major versions differ
    """
    known = catalog.EVENTS.get(event_type) if isinstance(event_type, str) else None
    version = payload.get("placement_object.version") if isinstance(payload, dict) else None
    if known is None or version is None:
        return
    newest = known.payload.VERSION
    if str(version).partition(".")[0] != newest.partition(".")[0]:
        raise UnsupportedPayload(
            f"the payload of {event_type} is of version {str(version)[:16]}; this release knows "
            f"{newest}")
