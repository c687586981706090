# SPDX-License-Identifier: Apache-2.0
"""Events as messages that any oslo.messaging listener reads as they are."""

import json
import secrets
from typing import Any

from placement_rpc import bodies, json_text, oslo_envelope

PRIORITY = "info"
PUBLISHER = "placement"

_NO_POSITION, _NO_EPOCH = '"position": null', '"epoch": null'


def message(row: Any) -> dict[str, Any]:
    """Return the notification of an event, as oslo.messaging's notifier makes it.

    ``message_id`` is the event's id, however often the event is sent, so that a second delivery
    can be recognised; the library would make a new one each time.

    :param row: row of event_id, event_type, occurred_at, payload, position, epoch
    """
    return {**_frame(row), "payload": json.loads(_positioned(row))}


def sealed(row: Any) -> str:
    """Return the notification of an event in envelope 2.0, for the wire.

    It has what :func:`message` returns, and the payload is not parsed.
    """
    frame = json_text.of_texts(_frame(row))
    return oslo_envelope.sealed(f'{frame[:-1]}, "payload": {_positioned(row)}}}')


def _positioned(row):
    payload = _with(row.payload, _NO_POSITION, f'"position": {row.position}')
    return payload if row.epoch is None else _with(payload, _NO_EPOCH, f'"epoch": "{row.epoch}"')


def _with(payload, old, new):
    """Return a payload with another text in place of the last occurrence of one.

    Within a JSON string a quotation mark is escaped, so this is a field and no value. The fields
    of the event itself come after those that objects within its payload have.
    """
    before, found, after = payload.rpartition(old)
    return f"{before}{new}{after}" if found else payload


def _frame(row):
    return {
        "message_id": row.event_id, "publisher_id": PUBLISHER, "event_type": row.event_type,
        "priority": PRIORITY.upper(), "timestamp": str(row.occurred_at),
        # Not the event's id: the library's listener leaves a message whose id it has seen
        # unacknowledged, and so in the queue for ever.
        "_unique_id": secrets.token_hex(16),
    }


def opened(body: str | bytes, compressed: object = None,
           limits: bodies.Limits = bodies.ANSWERS) -> dict[str, Any]:
    """Return the notification in an envelope.

    :param compressed: how the body is compressed, the message's header ``compression``
    :raises MessageTooLarge: if it exceeds the limits
    :raises ValueError: if the envelope contains no notification
    """
    found = oslo_envelope.opened(body, compressed, limits)
    if "event_type" not in found:
        raise ValueError("the message is not a notification")
    return found
