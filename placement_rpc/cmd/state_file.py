# SPDX-License-Identifier: Apache-2.0
"""How the command line finds a service that runs here: a file in its state directory."""

import contextlib
import json
import os
import pathlib

NAME = "service.json"


def write(directory, **facts):
    """Say what runs. The bus's address holds a password, so only the owner may read it."""
    path = pathlib.Path(directory, NAME)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"pid": os.getpid(), **facts}, file)


def remove(directory):
    """Say that nothing runs any more."""
    with contextlib.suppress(FileNotFoundError):
        pathlib.Path(directory, NAME).unlink()


def read(directory):
    """:returns: dict of what was written by a process that still runs; None without one"""
    try:
        facts = json.loads(pathlib.Path(directory, NAME).read_text())
        os.kill(facts["pid"], 0)
    except (OSError, ValueError, KeyError):
        # No file, somebody else's, half written, or of a process that was killed.
        return None
    return facts
