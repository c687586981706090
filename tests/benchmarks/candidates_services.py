# SPDX-License-Identifier: Apache-2.0
"""The services that the benchmark of allocation candidates asks, each on a filled store."""

import dataclasses
import http.client
import json
import pathlib
import statistics
import time
import urllib.parse

import fixtures
import psutil

from placement_rpc.conf import service as configuration
from placement_rpc.service import conductor
from tests.benchmarks import candidates_fleet, processor_time
from tests.conformance import web
from tests.integration import processes

# One process for each, so that the processor time of a request does not depend on which of them
# gets it.
SERVING = {"workers": 1, "threads": 8}
_START_TIMEOUT = 600
_VERSION = "1.36"


@dataclasses.dataclass(frozen=True)
class Sample:
    """One request.

    :param spent: dict of the part to its processor time in ms
    :param wall: ms until the whole answer was received
    """

    spent: dict
    wall: float
    status: int
    body: bytes

    @property
    def total(self):
        """Processor time of all parts in ms."""
        return sum(self.spent.values())


class Service(fixtures.Fixture):
    """A service on a store that is filled already.

    :param postgresql: the server of the store, see :mod:`placement_rpc.testing.servers`
    """

    #: str, by which the benchmark names it
    name = ""

    def __init__(self, postgresql):
        super().__init__()
        self._parts = {"database": [postgresql.process.pid]}

    def _serve(self, application, environment, **serving):
        return self.useFixture(web.Gunicorn(application, environment, **serving or SERVING))

    def _begin(self, server):
        self._parts["service"] = [server.process.pid]
        self.url, self._process = server.url, server.process
        self.meter = processor_time.Meter(self._parts)
        address = urllib.parse.urlsplit(server.url)
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=3600)
        self.addCleanup(self._connection.close)

    def ask(self, path, method="GET", body=None, version=_VERSION):
        """Send one request; return a :class:`Sample`."""
        headers = {"X-Auth-Token": "admin", "Accept": "application/json",
                   "OpenStack-API-Version": f"placement {version}"}
        if body is not None:
            headers["Content-Type"], body = "application/json", json.dumps(body)
        before, began = self.meter.read(), time.perf_counter()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        received = answer.read()
        wall = time.perf_counter() - began
        return Sample({part: 1000 * seconds for part, seconds in self.meter.since(before).items()},
                      1000 * wall, answer.status, received)

    def wait_until_ready(self):
        """Wait until the service answers searches.

        :raises RuntimeError: if it does not in time
        """
        ends = time.monotonic() + _START_TIMEOUT
        while (answer := self.ask(
                "/allocation_candidates?resources=VCPU:1&limit=1")).status != 200:
            if answer.status != 503 or time.monotonic() > ends:
                raise RuntimeError(f"{self.name}: {answer.status} {answer.body[:2000]!r}")
            time.sleep(0.5)

    def measure(self, path, count, method="GET", body=None):
        """Send the same request several times; return a list of samples."""
        return [self.ask(path, method, body) for _ in range(count)]

    def resident(self):
        """Return the resident memory of the largest process of the service, in bytes."""
        found = [psutil.Process(pid) for pid in self._parts["service"]]
        return max(each.memory_info().rss for process in found
                   for each in (process, *process.children(recursive=True)))


class Local(Service):
    """The facade with the service in its process."""

    name = "placement_rpc"

    def __init__(self, postgresql, url):
        super().__init__(postgresql)
        self._url = url

    def _setUp(self):
        self._begin(self._serve("placement_rpc.http.wsgi:application", {
            "PLACEMENT_RPC_CONF": _configuration(
                self, f"[database]\nconnection = {self._url}\n"
                      "[api]\nauth_strategy = noauth2\ntransport = local\n")}))


class Remote(Service):
    """The facade, which calls a conductor over RabbitMQ."""

    name = "placement_rpc over rpc"

    def __init__(self, postgresql, url, broker, workers=1):
        super().__init__(postgresql)
        self._url, self._broker, self._workers = url, broker, workers

    def _setUp(self):
        self.conductor = self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": self._broker.url},
            "database": {"connection": self._url}, "conductor": {"workers": self._workers}}))
        self._parts["conductor"] = [self.conductor.process.pid]
        self._parts["broker"] = [self._broker.process.pid]
        self._begin(self._serve("placement_rpc.http.wsgi:application", {
            "PLACEMENT_RPC_CONF": _configuration(
                self, f"[DEFAULT]\ntransport_url = {self._broker.url}\n"
                      "[api]\nauth_strategy = noauth2\ntransport = rpc\n")}))


class Peer(Service):
    """openstack-placement, whose tables are filled after it has put its classes into them.

    :param fleet: :class:`tests.benchmarks.candidates_fleet.Fleet`
    """

    name = "openstack-placement"

    def __init__(self, postgresql, url, fleet, **serving):
        super().__init__(postgresql)
        # It uses an attribute of cursors that psycopg 3 lacks.
        self._url = url.replace("+psycopg:", "+psycopg2:")
        self._fleet, self._serving = fleet, serving or SERVING

    def _setUp(self):
        server = self.useFixture(web.Upstream(self._url, **self._serving))
        candidates_fleet.write(self._url, self._fleet, is_peer=True)
        self._begin(server)


def _configuration(fixture, text):
    path = pathlib.Path(fixture.useFixture(fixtures.TempDir()).path, "placement-rpc.conf")
    path.write_text(text)
    return str(path)


def filled_store(postgresql, fleet):
    """Return the URL of a new store with a fleet."""
    url = postgresql.create_database()
    conductor.prepare_store(configuration.new_config(config_files=[], database__connection=url))
    candidates_fleet.write(url, fleet, is_peer=False)
    return url


def median(samples):
    """Return the median processor time of samples, in ms."""
    return statistics.median(each.total for each in samples)


def shares(samples):
    """Return the median processor time of each part, as text."""
    return ", ".join(f"{part} {statistics.median(each.spent[part] for each in samples):.1f}"
                     for part in samples[0].spent)


def contents(sample):
    """Return the numbers of requests and of summaries of an answer."""
    answer = json.loads(sample.body)
    return len(answer["allocation_requests"]), len(answer["provider_summaries"])
