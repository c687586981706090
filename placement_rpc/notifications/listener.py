# SPDX-License-Identifier: Apache-2.0
"""The listener kit: what a billing program imports.

From a queue of one's own, which keeps events while the program is away::

    listener = QueueListener(conf, "billing", handle, saved=SavedPosition("billing.position"))
    listener.run()

From the stream, at any position or time, without leaving anything behind::

    for event in StreamReader("rabbit://user:password@host/", "placement_events", 1).events():
        handle(event)
"""

from placement_rpc.notifications.event import Event, Foreign, TooNew, plain
from placement_rpc.notifications.queue import QueueListener
from placement_rpc.notifications.sequence import SavedPosition
from placement_rpc.notifications.stream import StreamReader

__all__ = ["Event", "Foreign", "QueueListener", "SavedPosition", "StreamReader", "TooNew", "plain"]
