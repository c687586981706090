# SPDX-License-Identifier: Apache-2.0
"""A process of schedulers: ``python -m tests.benchmarks.scheduler``.

It reads one JSON line with the service to use, says that it is ready, waits for another line, and
claims until there is no room or the time is over. It writes its report as a JSON line.
"""

import json
import random
import sys
import threading
import time

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.objects.candidates import CandidateGroup, CandidatesRequest
from tests import base
from tests.benchmarks import candidates_fleet, http_client
from tests.benchmarks.candidates_fleet import NearlyFull

_QUERY = "&".join((
    "limit=1000", "resources=" + ",".join(
        f"{name}:{amount}" for name, amount in sorted(NearlyFull.wanted.items())),
    "root_required=!COMPUTE_STATUS_DISABLED"))
_VERSION = "1.36"


class OverBus:
    """A scheduler that finds and claims with one call.

    :param client: api.PlacementAPI
    """

    refused = 0

    def __init__(self, client):
        self._api = client
        self._wanted = CandidatesRequest(
            groups=[CandidateGroup(resources=NearlyFull.wanted)],
            root_forbidden=["COMPUTE_STATUS_DISABLED"])

    def schedule(self):
        """Claim for one server; return False if there is no room."""
        claim = base.claim(None)
        del claim.allocations
        try:
            self._api.claim_by_request(None, self._wanted, claim)
        except exception.NoCandidates:
            return False
        return True


class OverHTTP:
    """A scheduler that asks for candidates and claims one of them, and the next if it is refused.

    :param url: str
    """

    def __init__(self, url):
        self._connection = http_client.Connection(url)
        #: Claims that were refused because another scheduler was faster.
        self.refused = 0

    def schedule(self):
        """Claim for one server; return False if there is no room."""
        while True:
            status, answer = self._connection.ask(
                "GET", f"/allocation_candidates?{_QUERY}", version=_VERSION)
            if status != 200:
                raise RuntimeError(f"GET allocation_candidates: {status} {answer[:500]!r}")
            requests = json.loads(answer)["allocation_requests"]
            if not requests:
                return False
            random.shuffle(requests)
            # As nova's scheduler does: the chosen host, then a few alternates.
            for request in requests[:3]:
                status, answer = self._claim(request)
                if status == 204:
                    return True
                if status != 409:
                    raise RuntimeError(f"PUT allocations: {status} {answer[:500]!r}")
                self.refused += 1

    def _claim(self, request):
        return self._connection.ask("PUT", f"/allocations/{base.new_uuid()}", json.dumps({
            **request, "project_id": candidates_fleet.PROJECT,
            "user_id": candidates_fleet.PROJECT,
            "consumer_generation": None}), _VERSION)


def _run(scheduler, ends, took):
    """Claim again and again, and add the seconds of each claim to a list."""
    while (began := time.monotonic()) < ends and scheduler.schedule():
        took.append(time.monotonic() - began)


def main():
    order = json.loads(sys.stdin.readline())
    if "url" in order:
        schedulers = [OverHTTP(order["url"]) for _ in range(order["threads"])]
    else:
        client = api.PlacementAPI(conf=configuration.new_config(
            config_files=[], transport_url=order["transport_url"]))
        client.ping(None)
        schedulers = [OverBus(client) for _ in range(order["threads"])]
    print(json.dumps("ready"), flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    took = [[] for _ in schedulers]
    threads = [threading.Thread(target=_run, args=(each, began + order["seconds"], times))
               for each, times in zip(schedulers, took, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"took": [each for times in took for each in times],
                      "seconds": time.monotonic() - began,
                      "refused": sum(each.refused for each in schedulers)}), flush=True)


if __name__ == "__main__":
    main()
