# SPDX-License-Identifier: Apache-2.0
"""Clients of a fairness measurement, with JSON lines: ``python -m tests.benchmarks.fair_client``.

The first line says how the service is reached; each further one is a piece of work that all
clients of this process do at the same time, and is answered with one line.
"""

import json
import os
import sys
import threading
import time

import requests

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.objects.request import ResourceRequest
from tests import base

_PATIENCE = 60


class BusClient:
    """A client on the message bus.

    :param address: str, the transport URL
    :param provider: uuid of the provider that it claims from
    """

    def __init__(self, address, provider, _name):
        self._provider = provider
        self._api = api.PlacementAPI(
            conf=configuration.new_config(config_files=[], transport_url=address))

    def claim(self):
        """Claim one unit; return whether it was done."""
        return self._is_done(lambda: self._api.claim_allocations(
            None, base.claim({self._provider: {"VCPU": 1}}), timeout=_PATIENCE))

    def find(self):
        """Find all providers with room; return whether it was done."""
        return self._is_done(lambda: self._api.get_by_request(
            None, ResourceRequest(resources={"VCPU": 1}, limit=None), timeout=_PATIENCE))

    @staticmethod
    def _is_done(call):
        try:
            call()
        except exception.PlacementException:
            return False
        return True


class HTTPClient:
    """A client over HTTP, which makes each request once and at once, whatever the answer is.

    :param address: str
    :param provider: uuid of the provider that it claims from
    :param name: str, its project
    """

    def __init__(self, address, provider, name):
        self._address, self._provider = address, provider
        self._headers = {"X-Auth-Token": f"admin:{name}",
                         "OpenStack-API-Version": "placement 1.36"}
        self._sessions = threading.local()

    def claim(self):
        """Claim one unit; return whether it was done."""
        return self._is_done("PUT", f"/allocations/{base.new_uuid()}", {
            "allocations": {self._provider: {"resources": {"VCPU": 1}}},
            "project_id": "project", "user_id": "user", "consumer_generation": None})

    def find(self):
        """Find all providers with room; return whether it was done."""
        return self._is_done("GET", "/allocation_candidates?resources=VCPU:1")

    def _is_done(self, method, path, body=None):
        session = self._sessions.__dict__.setdefault("session", requests.Session())
        try:
            return session.request(method, self._address + path, json=body, timeout=_PATIENCE,
                                   headers=self._headers).status_code < 300
        except requests.RequestException:
            return False


def work(clients, order):
    """Have each client work with a number of threads.

    :returns: dict of ``calls``, a list of when each call that was done began and ended, in seconds
        since the epoch, and ``refused``, how many were not done
    """
    calls, refused, ends = [], [], time.monotonic() + order["seconds"]

    def run(call):
        while time.monotonic() < ends:
            began = time.time()
            if call():
                calls.append((began, time.time()))
            else:
                refused.append(began)
            time.sleep(order["pause"])

    threads = [threading.Thread(target=run, args=(getattr(client, order["work"]),))
               for client in clients for _ in range(order["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"calls": calls, "refused": len(refused)}


def main():
    given = json.loads(sys.stdin.readline())
    os.nice(given["nice"])
    kind = {"bus": BusClient, "http": HTTPClient}[given["road"]]
    clients = [kind(given["address"], given["provider"], f"{given['name']}{number}")
               for number in range(given["clients"])]
    for line in sys.stdin:
        print(json.dumps(work(clients, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
