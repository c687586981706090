# SPDX-License-Identifier: Apache-2.0
"""The audit log: a file with a line of JSON for each change, which says who made it.

It is made of the events alone, so a change that was committed has its line, whichever process
made it and however its request arrived. Users and projects are those that the HTTP facade or
the bus authenticated; a change that the service makes itself has no initiator.
"""

import contextlib
import errno
import json
import os
import stat
from typing import Any

from placement_rpc.notifications.event import Event

# Events that report what is stored, and change nothing.
_REPORTS = {"allocation.exists", "allocation.snapshot.begin", "allocation.snapshot.end"}
# Events of requests that were refused.
_FAILURES = {"allocation.claim.refused"}
# Fields of a payload that a line has at its top, or that only a reader of the stream needs.
_NO_DETAILS = {"event_id", "position", "epoch", "occurred_at", "request_id", "initiator", "reason"}


def record(event: Event) -> dict[str, Any] | None:
    """Return the line of an event as JSON values; None if the event reports no change."""
    if event.event_type in _REPORTS:
        return None
    payload = event.payload
    initiator = payload.get("initiator")
    initiator = initiator if isinstance(initiator, dict) else {}
    target_type, target = _target(event)
    return {
        "time": event.occurred_at, "action": event.event_type,
        "outcome": "failure" if event.event_type in _FAILURES else "success",
        "user_id": initiator.get("user_id"), "project_id": initiator.get("project_id"),
        "target_type": target_type, "target": target,
        "request_id": payload.get("request_id"), "reason": payload.get("reason"),
        "event_id": event.event_id, "position": event.position, "epoch": event.epoch,
        "details": {name: value for name, value in payload.items() if name not in _NO_DETAILS}}


def _target(event):
    """Return the kind of what an event is about and its uuid or name; None for both if unclear."""
    for kind in ("consumer", "provider"):
        if event.payload.get(f"{kind}_uuid"):
            return kind, event.payload[f"{kind}_uuid"]
    name = event.payload.get("name")
    # Such as resource_class.create.
    return (event.event_type.partition(".")[0], name) if name else (None, None)


class AuditLog:
    """A handler of events that appends their lines to a file.

    A line is on the disk when the handler returns, and the event is acknowledged after that: no
    line is lost. After a crash a line may be there twice; ``event_id`` tells. The file is opened
    for each line, so that it can be rotated by renaming it.

    :param path: of the file, which is created with permissions for its owner and group only
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def check(self) -> None:
        """Check that the file can be written, and create it if it is missing.

        :raises OSError: if it cannot, or if it is no regular file: a line in a pipe is not on a
            disk
        """
        with self._opened() as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "Not a regular file", self._path)

    def __call__(self, event: Event) -> None:
        """Append the line of an event.

        :raises OSError: if it cannot be written
        """
        found = record(event)
        if found is None:
            return
        line = json.dumps(found).encode() + b"\n"
        with self._opened() as descriptor:
            size = os.fstat(descriptor).st_size
            # What an earlier process did not finish is no line of ours.
            if not _ends_a_line(descriptor):
                line = b"\n" + line
            try:
                _write_all(descriptor, line)
                os.fsync(descriptor)
            except OSError:
                # Another attempt writes the whole line.
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise

    @contextlib.contextmanager
    def _opened(self):
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _ends_a_line(descriptor):
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"


def _write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]
