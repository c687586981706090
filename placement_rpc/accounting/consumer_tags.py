# SPDX-License-Identifier: Apache-2.0
"""Entity tags of consumers.

A consumer is deleted with its last allocation, and its generation begins again at 1 when the
same uuid holds something again. A tag therefore names the row of the consumer and its generation.
A row is named by its id and the time at which it was inserted, since SQLite gives the id of a
deleted row again.
"""

import datetime
from collections.abc import Collection

#: The tag that every consumer with allocations has.
ANY = "*"

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def consumer_tag(row_id: int, created_at: datetime.datetime, generation: int) -> str:
    """Return the tag of a consumer; its last part is the generation.

    :param created_at: when the row was inserted, in UTC without a zone
    """
    return f"{row_id:x}-{(created_at - _EPOCH) // _MICROSECOND:x}-{generation}"


def is_current(current: str | None, holds: bool, tags: Collection[str]) -> bool:
    """Return whether a consumer has one of some tags.

    :param current: its tag; None if it is not stored yet, so that no caller can have read a tag
    :param holds: whether it has allocations
    """
    return holds and (ANY in tags or current in tags)
