# SPDX-License-Identifier: Apache-2.0
"""Events as messages that any oslo.messaging listener reads as they are."""

import json
import uuid

PRIORITY = "info"
PUBLISHER = "placement"

_DATA = "placement_object.data"


def message(row):
    """The notification of an event.

    ``message_id`` is the event's id, whenever and however often it is sent, so that a second
    delivery can be recognised; the library would make a new one for each.

    :param row: row of event_id, event_type, occurred_at, payload, position
    :returns: dict, a message as oslo.messaging's notifier makes it
    """
    payload = json.loads(row.payload)
    payload[_DATA]["position"] = row.position
    return {
        "message_id": row.event_id, "publisher_id": PUBLISHER, "event_type": row.event_type,
        "priority": PRIORITY.upper(), "payload": payload, "timestamp": str(row.occurred_at),
        # Not the event's: the library's listener leaves a message whose id it has seen
        # unacknowledged, and so in the queue for ever.
        "_unique_id": uuid.uuid4().hex,
    }


def sealed(body):
    """:returns: str, the message in envelope 2.0"""
    return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(body)})


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
