# SPDX-License-Identifier: Apache-2.0
"""A cloud that moves from OpenStack Placement to this service while its clients go on.

The clients know one address: that of a proxy, which is switched from one service to the other.
"""

import contextlib
import itertools
import json
import pathlib
import random
import subprocess
import sys
import threading
import time
import typing
import urllib.parse
import uuid

import fixtures
import requests

from tests.benchmarks import http_services
from tests.conformance import web
from tests.integration import proxy
from tests.placement_contents import uuid_of

_ROOT = pathlib.Path(__file__).parents[1]
_HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.38"}
_TIMEOUT = 60
# Seconds after which a client repeats a request, and which the time without answers is exact to.
_PAUSE = 0.1
# The import says it as soon as clients may use the new service.
_ACCEPTS = "the store accepts changes"
# So many are held before a client rather releases than claims.
_MOST_HELD = 50


class _Unknown(Exception):
    """A request has no answer that says whether it was done."""


class Client(threading.Thread):
    """Claims, changes and releases, and keeps what it was told.

    :param url: str, address of the service
    :param number: int, of the client
    :param providers: list of uuids of providers that have VCPU
    :param stop: :class:`threading.Event`
    :ivar held: dict of a consumer to its allocations: dict of provider to dict of class to amount
    :ivar answers: list of the times of accepted changes
    :ivar reads: list of the times of answers to reads
    :ivar failures: list of str, what was wrong
    :ivar repeated: int, requests that were sent again
    """

    def __init__(self, url, number, providers, stop):
        super().__init__(name=f"client {number}", daemon=True)
        self._url, self._providers, self._stop_event = url, providers, stop
        self._random = random.Random(number)
        self._session = requests.Session()
        self._session.headers.update(_HEADERS)
        self.held, self.answers, self.reads, self.failures = {}, [], [], []
        self.repeated = 0

    def run(self):
        while not (self._stop_event.is_set() or self.failures):
            try:
                self._change(*self._next())
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")

    def _next(self):
        """Return a consumer and the allocations that it shall have; none for a release."""
        wanted = {self._random.choice(self._providers): {"VCPU": self._random.randint(1, 4)}}
        chance = self._random.random()
        if not self.held or (chance < 0.5 and len(self.held) < _MOST_HELD):
            return str(uuid.uuid4()), wanted
        consumer = self._random.choice(sorted(self.held))
        return consumer, {} if chance < 0.75 else wanted

    def _change(self, consumer, wanted):
        """Change the allocations of a consumer, and repeat it until it is done."""
        held = self.held.get(consumer, {})
        is_unknown = False
        while True:
            found, generation = self.read(consumer)
            if is_unknown and found == wanted:
                break
            if found != held:
                raise AssertionError(f"{consumer} has {found}, and neither {held} nor {wanted}")
            try:
                if self._put(consumer, wanted, generation):
                    break
                is_unknown = False
            except _Unknown:
                is_unknown = True
            self.repeated += 1
        self.answers.append(time.monotonic())
        self.held[consumer] = wanted
        if not wanted:
            del self.held[consumer]

    def _put(self, consumer, wanted, generation):
        """Set allocations; return whether they are set, False after a conflict."""
        answer = self._ask("PUT", f"/allocations/{consumer}", {
            "allocations": {provider: {"resources": amounts}
                            for provider, amounts in wanted.items()},
            "project_id": "project of clients", "user_id": "user of clients",
            "consumer_generation": generation, "consumer_type": "INSTANCE"})
        if answer.status_code not in (204, 409):
            raise AssertionError(f"{answer.status_code} {answer.text}")
        return answer.status_code == 204

    def read(self, consumer):
        """Return the allocations of a consumer and its generation, None if it has none."""
        while True:
            try:
                document = self._ask("GET", f"/allocations/{consumer}").json()
            except _Unknown:
                continue
            self.reads.append(time.monotonic())
            return {provider: its["resources"]
                    for provider, its in document["allocations"].items()}, document.get(
                        "consumer_generation")

    def _ask(self, method, path, body=None):
        """Send a request.

        :raises _Unknown: if there is no answer, or one that says nothing; after a pause
        """
        try:
            answer = self._session.request(
                method, self._url + path, data=body and json.dumps(body), timeout=_TIMEOUT,
                headers={"content-type": "application/json"} if body else None)
            if answer.status_code < 500:
                return answer
            reason = answer.text
        except requests.RequestException as error:
            reason = str(error)
        time.sleep(_PAUSE)
        raise _Unknown(reason)


class Moved(typing.NamedTuple):
    """What a move has given.

    :ivar clients: list of :class:`Client`, which have ended
    :ivar url: str, address of the service that they used last
    :ivar silent: float, seconds without the answer to a change
    :ivar unread: float, seconds without the answer to a read
    :ivar passes: list of float, seconds of each import; the last one is with Placement stopped
    :ivar imports: list of str, what they printed
    """

    clients: list
    url: str
    silent: float
    unread: float
    passes: list
    imports: list


class _Import:
    """A running import.

    :param command: list of str
    :ivar process: :class:`subprocess.Popen`
    :ivar said: str, what it has printed so far
    :ivar seconds: float, that it has taken
    """

    def __init__(self, command):
        self._started = time.monotonic()
        self.said, self.seconds = "", None
        self.process = subprocess.Popen(
            command, cwd=_ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def await_line(self, text):
        """Read the output up to the line that contains a text.

        :raises AssertionError: if the output ends without it
        """
        for line in self.process.stdout:
            self.said += line
            if text in line:
                return
        raise AssertionError(f"The import never said {text!r}: {self.said}")

    def end(self):
        """Await its end.

        :raises AssertionError: if it has failed
        """
        self.said += self.process.stdout.read()
        if self.process.wait():
            raise AssertionError(f"The import failed: {self.said}")
        self.seconds = time.monotonic() - self._started


class UnderLoad(fixtures.Fixture):
    """Placement on a filled database, this service on an empty one, and clients of a proxy.

    :param cloud: :class:`tests.placement_cloud.PlacementCloud`
    :param store_url: str, SQLAlchemy URL of an empty database
    :param hosts: list of names of providers that have VCPU
    :param clients: int
    """

    def __init__(self, cloud, store_url, hosts, clients=4):
        super().__init__()
        self._cloud, self._store_url = cloud, store_url
        self._providers = [uuid_of(name) for name in hosts]
        self._count = clients

    def _setUp(self):
        self._old = self.useFixture(web.Upstream(self._cloud.url.replace(
            "postgresql+psycopg:", "postgresql+psycopg2:"), workers=2))
        self._new = self.useFixture(http_services.OurFacade(self._store_url))
        self._proxy = self.useFixture(proxy.Proxy(_port(self._old.url)))
        self._url = f"http://127.0.0.1:{self._proxy.port}"
        self._stop = threading.Event()
        self.addCleanup(self._stop.set)
        self.clients = [Client(self._url, number, self._providers, self._stop)
                        for number in range(self._count)]

    def _import(self, *arguments):
        """Return the seconds that an import has taken, and what it printed."""
        with self._begun_import(*arguments) as begun:
            pass
        return begun.seconds, begun.said

    @contextlib.contextmanager
    def _begun_import(self, *arguments):
        """Begin an import, which has ended after the block."""
        begun = _Import([
            sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", "--database",
            self._store_url, "placement", "import", "--from", self._cloud.url, *arguments])
        with begun.process:
            yield begun
            begun.end()

    def move(self, passes=2, changes=20):
        """Move over as ``docs/source/moving.rst`` says it; return :class:`Moved`.

        :param passes: int, imports while Placement serves
        :param changes: int, that each client makes before the first import, and after the switch
        """
        for client in self.clients:
            client.start()
        self._await_changes(changes)
        done = [self._import() for _ in range(passes)]
        stopped = time.monotonic()
        self._old.process.terminate()
        self._old.process.wait()
        with self._begun_import("--finish") as last:
            last.await_line(_ACCEPTS)
            self._proxy.switch(_port(self._new.url))
            self._await_changes(changes)
        done.append((last.seconds, last.said))
        self._stop.set()
        for client in self.clients:
            client.join(_TIMEOUT)
        return Moved(
            self.clients, self._url,
            _longest_gap(stopped, [time for each in self.clients for time in each.answers]),
            _longest_gap(stopped, [time for each in self.clients for time in each.reads]),
            [seconds for seconds, _ in done], [text for _, text in done])

    def _await_changes(self, number):
        """Wait until each client has made so many changes more."""
        wanted = [len(client.answers) + number for client in self.clients]
        deadline = time.monotonic() + _TIMEOUT
        while any(len(client.answers) < count
                  for client, count in zip(self.clients, wanted, strict=True)):
            failures = [failure for client in self.clients for failure in client.failures]
            if failures or time.monotonic() > deadline:
                raise AssertionError(f"The clients do not go on: {failures}")
            time.sleep(_PAUSE)


def check(test, moved, usages):
    """Check that no claim was lost and none doubled.

    :param moved: :class:`Moved`
    :param usages: dict of a provider's uuid to the VCPU that others than the clients use of it
    """
    test.assertEqual([], [failure for client in moved.clients for failure in client.failures])
    usages = dict(usages)
    for client in moved.clients:
        for consumer, held in client.held.items():
            test.assertEqual(held, client.read(consumer)[0])
            for provider, amounts in held.items():
                usages[provider] += amounts["VCPU"]
    for provider, used in usages.items():
        found = requests.get(f"{moved.url}/resource_providers/{provider}/usages",
                             headers=_HEADERS, timeout=_TIMEOUT).json()["usages"]
        test.assertEqual(used, found["VCPU"], provider)


def _port(url):
    return urllib.parse.urlsplit(url).port


def _longest_gap(moment, times):
    """Return the longest time between answers that has ended after a moment."""
    times = sorted(times)
    return max(later - earlier for earlier, later in itertools.pairwise(times)
               if later > moment)
