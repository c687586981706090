# SPDX-License-Identifier: Apache-2.0
"""How the command line finds a service that runs here: a file in its state directory."""

import contextlib
import fcntl
import json
import os
import pathlib

NAME = "service.json"


def write(directory, **facts):
    """Say what runs, for as long as this process does.

    The bus's address holds a password, so only the owner may read it. The file is locked while
    the process runs: a number in it alone could be another process's by now.
    """
    path = pathlib.Path(directory, NAME)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, json.dumps({"pid": os.getpid(), **facts}).encode())


def remove(directory):
    """Say that nothing runs any more."""
    with contextlib.suppress(FileNotFoundError):
        pathlib.Path(directory, NAME).unlink()


def read(directory):
    """:returns: dict of what was written by a process that still runs; None without one"""
    try:
        with pathlib.Path(directory, NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return json.load(file)
    except (OSError, ValueError):
        # No file, somebody else's, or half written.
        return None
    return None


def configure(conf, directory=None):
    """Take what is not configured from a service that runs in a state directory.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param directory: str; None for the configured one
    """
    running = read(directory or conf.standalone.state_dir) or {}
    if running and not conf.database.connection:
        conf.set_override("connection", running["database"], group="database")
        if conf.transport_url == "rabbit://":
            conf.set_override("transport_url", running["transport_url"])
            conf.set_override("management_url", running.get("management_url"), group="queues")
