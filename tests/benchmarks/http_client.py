# SPDX-License-Identifier: Apache-2.0
"""A client process of the HTTP benchmark: ``python -m tests.benchmarks.http_client``.

It reads JSON lines. The first has the URL and the providers; each further one is a piece of work,
and is answered with one line. Requests are built by hand, to keep the client's own time small.
"""

import collections
import itertools
import json
import re
import socket
import sys
import threading
import time
import urllib.parse
import uuid

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_WANTED = "VCPU:2,MEMORY_MB:1024,DISK_GB:10"
#: The project that has a thousand consumers, and the traits that providers are given.
PROJECT = "project-of-many"
TRAITS = ("CUSTOM_BENCH_A", "CUSTOM_BENCH_B", "HW_CPU_X86_AVX2", "COMPUTE_NODE")
#: A trait that few providers have.
RARE = "CUSTOM_BENCH_RARE"
_GENERATION = re.compile(rb'"(?:resource_provider_)?generation": ?(\d+)')


class Connection:
    """A connection that is kept.

    :param url: str
    """

    def __init__(self, url):
        address = urllib.parse.urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = (f" HTTP/1.1\r\nHost: {address.netloc}\r\nX-Auth-Token: admin\r\n"
                         "Accept: application/json\r\n")

    def ask(self, method, path, body=None, version=None):
        """Send a request; return the status (int) and the body (bytes) of the answer."""
        request = f"{method} {path}{self._headers}"
        if version is not None:
            request += f"OpenStack-API-Version: placement {version}\r\n"
        if body is not None:
            request += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._socket.sendall(f"{request}\r\n{body or ''}".encode())
        answer = b""
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self._more()
        found = _LENGTH.search(answer, 0, end)
        size = end + 4 + (int(found[1]) if found else 0)
        while len(answer) < size:
            answer += self._more()
        return int(answer[9:12]), answer[end + 4:size]

    def _more(self):
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionError("the server has closed the connection")
        return received


class Client:
    """The client of one thread, with providers that no other client changes.

    :param url: str
    :param own: list of uuids of the providers whose inventories it changes
    :param shared: list of uuids of the providers from which all clients claim
    """

    def __init__(self, url, own, shared):
        self._connection = Connection(url)
        self._own, self._shared = itertools.cycle(own), itertools.cycle(shared)
        self._generations = {}
        self._turn = 0

    def show(self):
        return self._connection.ask("GET", f"/resource_providers/{next(self._shared)}")[0]

    def inventories(self):
        provider = next(self._own)
        status, answer = self._connection.ask(
            "PUT", f"/resource_providers/{provider}/inventories", inventories(
                self._generation(provider), 1_000_000 + time.monotonic_ns() % 1_000_000))
        if status == 200:
            self._generations[provider] = int(_GENERATION.search(answer)[1])
        elif status == 409:
            del self._generations[provider]
        return status

    def _generation(self, provider):
        if provider not in self._generations:
            answer = self._connection.ask("GET", f"/resource_providers/{provider}")[1]
            self._generations[provider] = int(_GENERATION.search(answer)[1])
        return self._generations[provider]

    def candidates(self):
        return self._connection.ask(
            "GET", f"/allocation_candidates?limit=100&resources={_WANTED}", version="1.36")[0]

    def providers(self):
        return self._connection.ask(
            "GET", f"/resource_providers?resources={_WANTED}", version="1.4")[0]

    def allocations(self):
        return self._connection.ask("PUT", f"/allocations/{uuid.uuid4()}", json.dumps(
            _claim(next(self._shared))), version="1.28")[0]

    def sets(self):
        return self._connection.ask("POST", "/allocations", claims(
            next(self._shared) for _ in range(10)), version="1.28")[0]

    def usages(self):
        return self._connection.ask(
            "GET", f"/usages?project_id={PROJECT}", version="1.9")[0]

    def traits(self):
        provider = next(self._own)
        # Another set each time: the same one would be no change.
        self._turn = (self._turn + 1) % len(TRAITS)
        status, answer = self._connection.ask(
            "PUT", f"/resource_providers/{provider}/traits", json.dumps({
                "resource_provider_generation": self._generation(provider),
                "traits": [*TRAITS[:self._turn], *TRAITS[self._turn + 1:]]}), version="1.6")
        if status == 200:
            self._generations[provider] = int(_GENERATION.search(answer)[1])
        elif status == 409:
            del self._generations[provider]
        return status

    def with_trait(self):
        return self._connection.ask(
            "GET", f"/resource_providers?required={RARE}", version="1.18")[0]

    def in_tree(self):
        return self._connection.ask(
            "GET", f"/resource_providers?in_tree={next(self._shared)}&required={RARE}",
            version="1.18")[0]


def _claim(provider, project="project"):
    return {"allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 64}}},
            "project_id": project, "user_id": "user", "consumer_generation": None}


def claims(providers, project="project"):
    """Return the body that sets allocations of new consumers, one on each of some providers."""
    return json.dumps({str(uuid.uuid4()): _claim(provider, project) for provider in providers})


def inventories(generation, total):
    """Return the body that sets a provider's inventories."""
    return json.dumps({"resource_provider_generation": generation, "inventories": {
        name: {"total": total, "max_unit": total} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}})


def work(clients, name, seconds):
    """Have clients do one kind of work for a time.

    :returns: dict of ``took`` (each call's seconds), ``failed`` (how often each other status than
        2xx) and ``seconds``
    """
    took, statuses = [[] for _ in clients], [collections.Counter() for _ in clients]
    began = time.monotonic()

    def run(number):
        call = getattr(clients[number], name)
        while (start := time.perf_counter()) and time.monotonic() < began + seconds:
            status = call()
            if 200 <= status < 300:
                took[number].append(time.perf_counter() - start)
            else:
                statuses[number][status] += 1

    workers = [threading.Thread(target=run, args=(number,)) for number in range(len(clients))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"took": [each for times in took for each in times], "seconds":
            time.monotonic() - began, "failed": sum(statuses, collections.Counter())}


def main():
    where = json.loads(sys.stdin.readline())
    clients = [Client(where["url"], own, shared)
               for own, shared in zip(where["own"], where["shared"], strict=True)]
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(work(clients[:order["clients"]], order["work"], order["seconds"])),
              flush=True)


if __name__ == "__main__":
    main()
