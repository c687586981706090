# SPDX-License-Identifier: Apache-2.0
"""Events as messages that any oslo.messaging listener reads as they are."""

import json
import uuid

PRIORITY = "info"
PUBLISHER = "placement"

_NO_POSITION = '"position": null'


def message(row):
    """The notification of an event.

    ``message_id`` is the event's id, whenever and however often it is sent, so that a second
    delivery can be recognised; the library would make a new one for each.

    :param row: row of event_id, event_type, occurred_at, payload, position
    :returns: dict, a message as oslo.messaging's notifier makes it
    """
    return {**_frame(row), "payload": json.loads(_positioned(row))}


def sealed(row):
    """The notification of an event in envelope 2.0, for the wire.

    :returns: str; the same as of :func:`message`, but the payload is not taken apart
    """
    frame = json.dumps(_frame(row))
    return json.dumps({
        "oslo.version": "2.0",
        "oslo.message": f'{frame[:-1]}, "payload": {_positioned(row)}}}'})


def _positioned(row):
    # Within a text of JSON a quotation mark is escaped, so this is the field and no value.
    return row.payload.replace(_NO_POSITION, f'"position": {row.position}', 1)


def _frame(row):
    return {
        "message_id": row.event_id, "publisher_id": PUBLISHER, "event_type": row.event_type,
        "priority": PRIORITY.upper(), "timestamp": str(row.occurred_at),
        # Not the event's: the library's listener leaves a message whose id it has seen
        # unacknowledged, and so in the queue for ever.
        "_unique_id": uuid.uuid4().hex,
    }


def opened(text):
    """The message in an envelope.

    :param text: str or bytes
    :returns: dict
    :raises ValueError: when there is none in it
    """
    outer = json.loads(text)
    if not isinstance(outer, dict):
        raise ValueError("the message is not a mapping")
    inner = json.loads(outer["oslo.message"]) if "oslo.message" in outer else outer
    if not isinstance(inner, dict) or "event_type" not in inner:
        raise ValueError("the message is no notification")
    return inner
