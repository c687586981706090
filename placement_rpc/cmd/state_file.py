# SPDX-License-Identifier: Apache-2.0
"""The file in a state directory by which the command line finds a running service.

The store of a service that has stopped is found by its own name.
"""

import contextlib
import fcntl
import json
import os
import pathlib

from placement_rpc.cmd import config_sources

NAME = "service.json"
#: The file that a service keeps locked from before its start until its end.
LOCK = "service.lock"
#: The SQLite file of a service that has no other database.
STORE = "placement.sqlite"
#: The value of transport_url if none is configured.
NO_BUS = "rabbit://"


@contextlib.contextmanager
def locked(directory):
    """Let no other process run on a state directory during this context.

    :returns: True if no other process runs, starts or stops on the directory
    """
    descriptor = os.open(pathlib.Path(directory, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        # This releases the lock. The file stays: a process that has just opened it would lock a
        # removed file, which no later process sees.
        os.close(descriptor)


def write(directory, **facts):
    """Record the addresses of this service for as long as this process runs.

    The address of the bus contains a password, so only the owner may read the file. The process
    keeps the file locked while it runs; its pid alone could have been reused.
    """
    path = pathlib.Path(directory, NAME)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, json.dumps({"pid": os.getpid(), **facts}).encode())


def remove(directory):
    """Remove the file when the service stops."""
    with contextlib.suppress(FileNotFoundError):
        pathlib.Path(directory, NAME).unlink()


def read(directory):
    """Return what :func:`write` recorded, a dict, if that process still runs; else None."""
    try:
        with pathlib.Path(directory, NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _checked(json.load(file))
    except (OSError, ValueError):
        # There is no file, or it belongs to another user, or it is being written.
        return None
    return None


def _checked(facts):
    """Return the facts of a service.

    :raises ValueError: if they are not what :func:`write` records
    """
    if not isinstance(facts, dict) or not all(
            isinstance(facts.get(name), str) for name in ("transport_url", "database")):
        raise ValueError("it is not the state of a service")
    return facts


def store_of(directory, running):
    """Return the SQLAlchemy URL of a state directory's store, or None if it has none.

    It is that of the running service, or the SQLite file that a stopped one has left.

    :param running: what :func:`read` returned
    """
    if running:
        return running["database"]
    # A client is installed without SQLAlchemy, and has no need of this.
    from placement_rpc.db import urls

    path = pathlib.Path(directory, STORE).absolute()
    return urls.of_sqlite(path) if path.is_file() else None


def configure(conf, directory=None):
    """Set database and bus, unless configured, to those of the service in a state directory.

    If another database is configured than that of the service, its bus is not used either.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param directory: str; None for the configured one
    """
    directory = directory or conf.standalone.state_dir
    running = read(directory)
    store = store_of(directory, running)
    if conf.database.connection and conf.database.connection != store:
        return
    if store and not conf.database.connection:
        config_sources.override(conf, "connection", store, "database")
    if running and conf.transport_url == NO_BUS:
        config_sources.override(conf, "transport_url", running["transport_url"])
        if management_url := running.get("management_url"):
            config_sources.override(conf, "management_url", management_url, "queues")
