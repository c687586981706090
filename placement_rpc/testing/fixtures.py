# SPDX-License-Identifier: Apache-2.0
"""Fixtures with a running placement service, for tests of this project and of others."""

import functools
import pathlib
import shutil
import tempfile
import uuid

import fixtures

from placement_rpc import api, exception, manager
from placement_rpc.conf import facade as configuration
from placement_rpc.db import api as db
from placement_rpc.service import conductor


@functools.cache
def _prepared_directory():
    # Removed when the process ends.
    return tempfile.TemporaryDirectory(prefix="placement-rpc-")


@functools.cache
def _prepared_sqlite():
    """Return the path of a prepared SQLite file: a copy takes 1 ms, the migrations take 40."""
    path = pathlib.Path(_prepared_directory().name, "prepared.sqlite")
    conductor.prepare_store(configuration.new_config(
        config_files=[], database__connection=f"sqlite:///{path}"))
    return path


class Store(fixtures.Fixture):
    """A database with the schema and the standard resource classes.

    Using the fixture sets ``conf`` and ``database``.

    :param url: str, SQLAlchemy URL of a database that is empty or has an earlier schema; None for
        a SQLite file of its own
    :param overrides: further options, see :func:`placement_rpc.conf.new_config`
    """

    def __init__(self, url=None, **overrides):
        super().__init__()
        self._url = url
        self._overrides = overrides

    def _setUp(self):
        url = self._url
        if url is None:
            path = self.useFixture(fixtures.TempDir()).join("placement.sqlite")
            shutil.copyfile(_prepared_sqlite(), path)
            url = f"sqlite:///{path}"
        self.conf = configuration.new_config(
            config_files=[], database__connection=url, **self._overrides)
        if self._url is not None:
            conductor.prepare_store(self.conf)
        self.database = db.Database(self.conf)
        self.addCleanup(self.database.close)


class RunningService(fixtures.Fixture):
    """A placement service, and a client of it.

    Using the fixture sets ``api``, a :class:`placement_rpc.api.PlacementAPI`, and ``conf``,
    ``database``, ``manager``, ``conductor`` and ``topic``.

    :param transport: str, ``bus`` for a conductor; ``local`` for a manager alone, without
        the relay and other threads of a conductor: ``conductor`` is None, and events are recorded
        but not published
    :param transport_url: str, the RabbitMQ that ``api`` calls the conductor over; None for a
        conductor that ``api`` calls directly and whose events
        ``conductor.publisher.read()`` returns
    :param database_url: str, as for :class:`Store`
    :param topic: str, the topic that the conductor listens on; None for a new one
    :param overrides: further options, see :func:`placement_rpc.conf.new_config`
    """

    def __init__(self, transport="bus", transport_url=None, database_url=None, topic=None,
                 **overrides):
        super().__init__()
        self._transport = transport
        self._database_url = database_url
        self._embedded = transport == "local" or transport_url is None
        self._overrides = {
            "transport_url": transport_url or "inprocess://tests/",
            # Durability costs time, and no test cuts the power.
            "database__sqlite_synchronous": False,
            "placement_client__deadline": 40.0, "conductor__threads": 8, **overrides}
        # Services that share a broker have a topic each.
        self.topic = topic or f"placement-{uuid.uuid4().hex}"

    def _setUp(self):
        store = self.useFixture(Store(self._database_url, **self._overrides))
        self.conf, self.database = store.conf, store.database
        self.conductor = None
        if self._transport == "local":
            self.manager = manager.Manager(self.conf, self.database)
            self.manager.candidates.index.wait_until_ready()
        else:
            self.conductor = conductor.Conductor(self.conf, topic=self.topic)
            self.addCleanup(self.conductor.stop)
            self.conductor.start()
            self.manager = self.conductor.manager
        self.api = (
            api.PlacementAPI("local", self.conf, manager=self.manager) if self._embedded
            else api.PlacementAPI(conf=self.conf, topic=self.topic))
        self.addCleanup(self.api.close)


class FaultyCaller(fixtures.Fixture):
    """Makes a client's attempts fail as they can on a bus.

    ``attempts`` lists the request ids of the attempts.

    :param client: :class:`placement_rpc.api.PlacementAPI`
    :param faults: iterable with an entry for each attempt: ``"lost"`` (the call never arrives),
        ``"unanswered"`` (it is done, and its answer is lost), ``"twice"`` (it is delivered two
        times) or None (no fault); attempts after the last entry have no fault
    """

    def __init__(self, client, faults):
        super().__init__()
        self._client = client
        self._faults = iter(faults)
        self.attempts = []

    def _setUp(self):
        sender = self._client.sender
        self._deliver = sender.call
        sender.call = self._call
        self.addCleanup(sender.__dict__.pop, "call")

    def _call(self, context, method, arguments, timeout):
        self.attempts.append(arguments.get("request_id"))
        fault = next(self._faults, None)
        if fault == "lost":
            raise exception.ServiceUnavailable(reason="lost on the way")
        answer = self._deliver(context, method, arguments, timeout)
        if fault == "twice":
            answer = self._deliver(context, method, arguments, timeout)
        if fault == "unanswered":
            raise exception.ServiceUnavailable(reason="the answer was lost")
        return answer
