# SPDX-License-Identifier: Apache-2.0
"""The listener kit, for programs such as billing that consume events.

From a durable queue of its own, which keeps events while the program does not run::

    listener = QueueListener(conf, "billing", handle, saved=SavedPosition("billing.position"))
    listener.run()

From the stream, at any position or time, without creating a queue::

    for event in StreamReader("rabbit://user:password@host/", "placement_events", 1).events():
        handle(event)
"""

from placement_rpc.notifications.event import (
    Event,
    NotAPlacementEvent,
    UnsupportedPayload,
)
from placement_rpc.notifications.queue import QueueListener
from placement_rpc.notifications.sequence import SavedPosition
from placement_rpc.notifications.stream import StreamReader
from placement_rpc.objects.codec import without_envelopes as plain

__all__ = ["Event", "NotAPlacementEvent", "QueueListener", "SavedPosition", "StreamReader",
           "UnsupportedPayload", "plain"]
