# SPDX-License-Identifier: Apache-2.0
"""Real servers, one of each kind for a test process, started when the first test wants one.

A test that stops or restarts a server starts its own instead.
"""

import atexit
import functools

from placement_rpc.testing import servers

DATABASES = ("sqlite", "postgresql", "mariadb")


def _shared(fixture):
    fixture.setUp()
    atexit.register(fixture.cleanUp)
    return fixture


@functools.cache
def rabbitmq():
    return _shared(servers.RabbitMQ())


@functools.cache
def postgresql():
    return _shared(servers.PostgreSQL())


@functools.cache
def mariadb():
    return _shared(servers.MariaDB())


def new_database(kind):
    """:returns: str, SQLAlchemy URL of an empty database; None for SQLite, see Store"""
    if kind == "sqlite":
        return None
    return {"postgresql": postgresql, "mariadb": mariadb}[kind]().create_database()
