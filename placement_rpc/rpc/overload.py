# SPDX-License-Identifier: Apache-2.0
"""Which client a call is of, and when a client has too many calls waiting."""

import time
from collections.abc import Hashable, Iterable

from placement_rpc.rpc import envelope
from placement_rpc.rpc.fair_queue import FairQueue

# A client with no more calls than these is not refused any because they would be late.
_FEW = 4
# Seconds after which a client that is refused may return.
_SOONEST, _LATEST = 0.05, 5.0
_LONGEST_NAME = 255


def client_of(call: envelope.Call) -> Hashable:
    """Return the client that takes its turn with a call.

    That is the client's queue of answers, of which each PlacementAPI has one. The HTTP facade
    makes the calls of many users, who take turns like clients: by project and user.
    """
    if call.context.get("rule") is None:
        return call.reply_to
    return (call.reply_to, *(_text(call.context.get(name)) for name in ("project_id", "user_id")))


def retry_after(queue: FairQueue, client: Hashable, call: envelope.Call, limit: int,
                queues: Iterable[FairQueue]) -> float | None:
    """Return after how many seconds a client may repeat a call that is refused.

    A call is refused if its client has as many calls here as one may have while other clients make
    calls, or if it would not be answered before its deadline.

    :param queue: the queue of calls of this kind
    :param limit: how many calls of one client to hold in it; 0 refuses none
    :param queues: all queues of the server: calls of another kind may wait behind these
    :returns: None if the call is accepted
    """
    held = queue.held(client)
    # A call without an answer would be lost.
    if not limit or held < min(limit, _FEW) or call.reply_to is None:
        return None
    seconds = queue.wait(client)
    if (held >= limit and any(each.has_others(client) for each in queues)) or (
            held >= _FEW and _is_late(call.context.get("deadline"), seconds)):
        return round(min(_LATEST, max(_SOONEST, seconds)), 2)
    return None


def _is_late(deadline, seconds):
    return type(deadline) in (int, float) and time.time() + seconds > deadline


def _text(value):
    return value[:_LONGEST_NAME] if isinstance(value, str) else None
