# SPDX-License-Identifier: Apache-2.0
"""What clients asked and were answered, and when: a file with a JSON object a line.

A line describes a provider (:class:`Provider`) or an operation of a client (:class:`Operation`).
Times are those of :func:`time.monotonic`, which all processes of a Linux machine share.
"""

import contextlib
import gc
import json
import sys
import threading
from typing import Any, NamedTuple

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"


class Provider(NamedTuple):
    """A provider before the first operation; ``capacity`` is a dict of class name to amount."""

    provider: str
    generation: int
    capacity: dict


class Read(NamedTuple):
    """The state of a provider that a client was shown.

    ``used`` is a dict of class name to amount; ``held``, if not None, one of consumer to dict of
    class name to amount, of all consumers.
    """

    generation: int
    used: dict
    held: dict | None = None


class Operation(NamedTuple):
    """One request and its answer.

    ``writes`` says what consumers hold of a provider once the request is accepted: a dict of
    provider to dict of consumer to dict of class name to amount, which is empty for nothing.
    ``generations`` are those that the providers have then, ``steps`` is by how much it raised each
    of them. ``end`` is None if the outcome is unknown: it may have happened at any time after
    ``start``, or never. ``reads`` is a dict of provider to :class:`Read`.
    """

    kind: str
    outcome: str
    start: float
    end: float | None
    writes: dict
    generations: dict
    steps: int = 1
    reads: dict | None = None
    client: str = ""


class Recorder:
    """Appends to a history; thread-safe.

    :param path: of the file
    """

    def __init__(self, path):
        # Line buffered: what is recorded survives the death of the process.
        self._file = open(path, "a", buffering=1)  # noqa: SIM115
        self._lock = threading.Lock()

    def provider(self, provider):
        """Append a :class:`Provider`."""
        self._append(provider._asdict())

    def operation(self, operation):
        """Append an :class:`Operation`."""
        line = operation._asdict()
        line["reads"] = operation.reads and {
            provider: read._asdict() for provider, read in operation.reads.items()}
        self._append({name: value for name, value in line.items() if value not in (None, {}, "")})

    def _append(self, line: dict[str, Any]):
        text = json.dumps(line, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(text)

    def close(self):
        """Close the file."""
        self._file.close()


def load(*paths):
    """Read histories.

    :returns: tuple of a list of :class:`Provider` and a list of :class:`Operation`
    """
    providers, operations = [], []
    with without_garbage_collection():
        for path in paths:
            with open(path) as file:
                for text in file:
                    line = json.loads(text)
                    if "capacity" in line:
                        providers.append(Provider(**line))
                    else:
                        operations.append(_operation(line))
    return providers, operations


def _operation(line):
    reads, field = line.get("reads"), line.get
    return Operation(
        sys.intern(line["kind"]), sys.intern(line["outcome"]), line["start"], field("end"),
        field("writes") or {}, field("generations") or {}, field("steps", 1),
        reads and {provider: Read(**read) for provider, read in reads.items()},
        field("client", ""))


@contextlib.contextmanager
def without_garbage_collection():
    """Make millions of objects, none of them in a cycle, in half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
