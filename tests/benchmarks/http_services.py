# SPDX-License-Identifier: Apache-2.0
"""The two services of the HTTP benchmark, served in the same way, and their clients."""

import json
import pathlib
import uuid

import fixtures
import psutil

from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.notifications import publishers, relay
from placement_rpc.service import conductor
from tests.benchmarks import fleet, http_client, upstream_store
from tests.benchmarks.module_process import ModuleProcess
from tests.conformance import web

_ROOT = pathlib.Path(__file__).parents[2]
CLIENTS = 16
_PROCESSES = 2


class OurFacade(fixtures.Fixture):
    """The facade behind gunicorn, with the store in its own processes; ``url``, ``process``.

    ``database_url`` is that of its store.

    A relay gives events their positions, as one of a conductor does.

    :param database_url: str, SQLAlchemy URL of an empty database; None for a SQLite file
    :param fleet_size: int, providers that the store has at the start
    :param options: of ``[api]``, str
    :param serving: of :class:`tests.conformance.web.Gunicorn`
    """

    def __init__(self, database_url=None, fleet_size=0, options="", **serving):
        super().__init__()
        self._database_url, self._fleet_size = database_url, fleet_size
        self._options, self._serving = options, serving

    def _setUp(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        url = self._database_url or f"sqlite:///{directory}/placement.sqlite"
        self.database_url = url
        path = directory / "placement-rpc.conf"
        path.write_text(f"[database]\nconnection = {url}\n"
                        f"[api]\nauth_strategy = noauth2\ntransport = local\n{self._options}\n")
        conf = configuration.new_config(config_files=[str(path)])
        conductor.prepare_store(conf)
        database = db.Database(conf)
        self.addCleanup(database.close)
        if self._fleet_size:
            fleet.grow(database, self._fleet_size)
        relayed = relay.Relay(conf, database, publishers.MemoryPublisher(), "benchmark")
        relayed.start()
        self.addCleanup(relayed.stop)
        server = self.useFixture(web.Gunicorn(
            "placement_rpc.http.wsgi:application", {"PLACEMENT_RPC_CONF": str(path)},
            **self._serving))
        self.url, self.process, self.said = server.url, server.process, server.said


class Upstream(web.Upstream):
    """openstack-placement; the parameters are those of :class:`OurFacade`."""

    def __init__(self, database_url=None, fleet_size=0, **serving):
        super().__init__(database_url, **serving)
        self._url, self._fleet_size = database_url, fleet_size

    def _setUp(self):
        super()._setUp()
        if self._fleet_size:
            # It writes its classes into the store when it starts.
            upstream_store.grow(self._url, self._fleet_size, fleet.AMOUNTS)


SERVICES = {"placement_rpc": OurFacade, "openstack-placement": Upstream}
# Of the shared providers, one of so many has the rare trait.
_RARE = 10
_CONSUMERS = 1000


class Loaded(fixtures.Fixture):
    """A service with providers in it, and client processes that are connected to it.

    :param name: str, of SERVICES
    :param providers: int, number of providers whose inventories change; the same number is made
        for the other requests
    :param database: process of the database server; None for SQLite
    """

    def __init__(self, name, providers, database=None, **how):
        super().__init__()
        self.name = name
        self._providers, self._database, self._how = providers, database, how

    def _setUp(self):
        self.service = self.useFixture(SERVICES[self.name](**self._how))
        connection = http_client.Connection(self.service.url)
        own, shared = ([self._create(connection) for _ in range(self._providers)]
                       for _ in range(2))
        self._prepare(connection, shared)
        self._clients = []
        for number in range(_PROCESSES):
            client = self.useFixture(ModuleProcess("http_client"))
            self._clients.append(client)
            numbers = range(number, CLIENTS, _PROCESSES)
            # Each client begins at another one of the shared providers.
            client.tell({"url": self.service.url, "own": [
                own[each::CLIENTS] for each in numbers], "shared": [
                shared[each * 7 % len(shared):] + shared[:each * 7 % len(shared)]
                for each in numbers]})

    def _create(self, connection):
        provider = str(uuid.uuid4())
        self._ask(connection, "POST", "/resource_providers", json.dumps(
            {"name": provider, "uuid": provider}))
        self._ask(connection, "PUT", f"/resource_providers/{provider}/inventories",
                  http_client.inventories(0, 10 ** 9))
        return provider

    def _prepare(self, connection, providers):
        """Make the traits, give the rare one to some providers, and make a project's consumers."""
        for name in (*http_client.TRAITS, http_client.RARE):
            if name.startswith("CUSTOM_"):
                self._ask(connection, "PUT", f"/traits/{name}", "", "1.6")
        for provider in providers[::_RARE]:
            self._ask(connection, "PUT", f"/resource_providers/{provider}/traits", json.dumps(
                {"resource_provider_generation": 1, "traits": [http_client.RARE]}), "1.6")
        for _ in range(_CONSUMERS // 100):
            self._ask(connection, "POST", "/allocations", http_client.claims(
                (providers[number % len(providers)] for number in range(100)),
                http_client.PROJECT), "1.28")

    def _ask(self, connection, method, path, body, version=None):
        status, answer = connection.ask(method, path, body, version)
        if status >= 300:
            raise RuntimeError(
                f"{method} {path}: {status} {answer}\n{self.service.said()[-4000:]}")

    def measure(self, work, clients, seconds):
        """Do one kind of work; return a dict of rate, took, failed and processor time."""
        before = self._processor_times()
        each = -(-clients // _PROCESSES)
        at_work = self._clients[:clients]
        for client in at_work:
            client.tell({"work": work, "clients": each, "seconds": seconds})
        answers = [client.hear() for client in at_work]
        after = self._processor_times()
        took = sorted(time for answer in answers for time in answer["took"])
        failed = {}
        for answer in answers:
            for status, count in answer["failed"].items():
                failed[status] = failed.get(status, 0) + count
        requests = len(took) + sum(failed.values())
        return {"rate": len(took) / max(answer["seconds"] for answer in answers), "took": took,
                "failed": failed, "ms": {
                    part: 1000 * (after[part] - before[part]) / requests for part in after}}

    def _processor_times(self):
        parts = {"server": self.service.process.pid}
        if self._database is not None:
            parts["database"] = self._database.pid
        found = {part: _spent(pid) for part, pid in parts.items()}
        found["clients"] = sum(_spent(client.pid) for client in self._clients)
        return found


def _spent(pid):
    """Return the processor time of a process and its children, including ended ones."""
    process = psutil.Process(pid)
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += sum(each.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue  # Its time is now included in its parent's.
    return total
