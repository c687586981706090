# SPDX-License-Identifier: Apache-2.0
"""A running placement service for somebody's tests."""

import uuid

import fixtures

from placement_rpc import api, exception, manager
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.service import conductor


class Store(fixtures.Fixture):
    """A database with the schema and the standard resource classes.

    ``conf`` and ``database`` are set once it is used.

    :param url: str, SQLAlchemy URL of an empty database; None for a SQLite file of its own
    :param overrides: further options, see :func:`placement_rpc.conf.new_config`
    """

    def __init__(self, url=None, **overrides):
        super().__init__()
        self._url = url
        self._overrides = overrides

    def _setUp(self):
        url = self._url
        if url is None:
            url = f"sqlite:///{self.useFixture(fixtures.TempDir()).join('placement.sqlite')}"
        self.conf = configuration.new_config(
            config_files=[], database__connection=url, **self._overrides)
        conductor.prepare_store(self.conf)
        self.database = db.Database(self.conf)
        self.addCleanup(self.database.close)


class RunningService(fixtures.Fixture):
    """A placement service, and a client of it.

    ``api`` is a :class:`placement_rpc.api.PlacementAPI`; ``conf``, ``database``, ``conductor``
    and ``topic`` are set too.

    :param transport: str, ``local`` for calls within the process, ``bus`` for calls over
        ``transport_url``
    :param transport_url: str; None for an in-process bus of its own
    :param database_url: str, as for :class:`Store`
    :param topic: str, where it listens; None for a topic of its own
    :param overrides: further options, see :func:`placement_rpc.conf.new_config`
    """

    def __init__(self, transport="bus", transport_url=None, database_url=None, topic=None,
                 **overrides):
        super().__init__()
        self._transport = transport
        self._database_url = database_url
        self._overrides = {
            "transport_url": transport_url or f"inprocess://{uuid.uuid4().hex}/",
            # What a power cut would take is of no concern here.
            "database__sqlite_synchronous": False,
            "placement_client__deadline": 40.0, "conductor__threads": 8, **overrides}
        # Services that share a broker keep to a topic of their own.
        self.topic = topic or f"placement-{uuid.uuid4().hex}"

    def _setUp(self):
        store = self.useFixture(Store(self._database_url, **self._overrides))
        self.conf, self.database = store.conf, store.database
        self.conductor = None
        if self._transport == "local":
            local = manager.Manager(self.conf, self.database)
            local.candidates.index.wait_until_ready()
            self.api = api.PlacementAPI("local", self.conf, manager=local)
        else:
            self.conductor = conductor.Conductor(self.conf, topic=self.topic)
            self.addCleanup(self.conductor.stop)
            self.conductor.start()
            self.api = api.PlacementAPI(conf=self.conf, topic=self.topic)
        self.addCleanup(self.api.close)


class FaultyCaller(fixtures.Fixture):
    """Makes a client's attempts go wrong as a bus can: lost on the way, or the answer lost.

    :param client: :class:`placement_rpc.api.PlacementAPI`
    :param faults: iterable of ``"lost"`` (the call never arrives), ``"unanswered"`` (it is
        done, and its answer is lost), ``"twice"`` (it is delivered two times) and ``None``
        (all is well), one for each attempt; what comes after the last is well
    """

    def __init__(self, client, faults):
        super().__init__()
        self._client = client
        self._faults = iter(faults)
        self.attempts = []

    def _setUp(self):
        self._caller = self._client._caller
        self._well = self._caller.call
        self._caller.call = self._call
        self.addCleanup(self._caller.__dict__.pop, "call")

    def _call(self, context, method, arguments, timeout):
        self.attempts.append(arguments.get("request_id"))
        fault = next(self._faults, None)
        if fault == "lost":
            raise exception.ServiceUnavailable(reason="lost on the way")
        answer = self._well(context, method, arguments, timeout)
        if fault == "twice":
            answer = self._well(context, method, arguments, timeout)
        if fault == "unanswered":
            raise exception.ServiceUnavailable(reason="the answer was lost")
        return answer
