# SPDX-License-Identifier: Apache-2.0
"""Claims on a Galera cluster: three services that write to one node, or to three.

The services are threads of this process, and the nodes share its machine. The ratio of the two is
the result; a network between the nodes makes it worse for three writers.
"""

import contextlib
import itertools
import random
import statistics
import threading
import time

from placement_rpc import exception
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.galera import GaleraCluster
from tests import base

_SERVICES, _THREADS = 3, 4
# Numbers of providers: all clients need the same few, or each of them another one.
_PROVIDERS = {"the same 3 providers": 3, "300 providers": 300}


def _claims_in(seconds, services, providers):
    """Return the number of claims a second, and how many of the calls failed."""
    ends = time.monotonic() + seconds
    accepted, failed = itertools.count(), itertools.count()

    def claim(api):
        draw = random.Random()
        while time.monotonic() < ends:
            wanted = base.claim({draw.choice(providers): {"VCPU": 1}})
            try:
                api.claim_allocations(None, wanted, timeout=60)
                next(accepted)
            except exception.PlacementException:
                next(failed)

    threads = [threading.Thread(target=claim, args=(each.api,))
               for each in services for _ in range(_THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return next(accepted) / seconds, next(failed)


def bench_galera(kept, quick):
    """Measure.

    :param kept: Report
    """
    seconds, rounds = (3, 2) if quick else (10, 5)
    kept.say("Starting a Galera cluster ...")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(GaleraCluster())
        database = cluster.create_database()

        def service(node):
            return stack.enter_context(placement_fixtures.RunningService(
                "local", database_url=node.url_of(database), claims__max_attempts=30))

        writers = {"one writer": [service(cluster.nodes[0]) for _ in range(_SERVICES)]}
        writers["three writers"] = [service(node) for node in cluster.nodes]
        api = writers["one writer"][0].api
        for where, number in _PROVIDERS.items():
            providers = [api.create_provider(None, base.new_uuid()).uuid for _ in range(number)]
            for uuid in providers:
                api.set_inventory(None, uuid, [base.inventory("VCPU", 10 ** 8)])
            _measure(kept, writers, where, lambda services, providers=providers: _claims_in(
                seconds, services, providers), rounds)


def _measure(kept, writers, where, claims_in, rounds):
    """Measure the writers in turns, and keep their medians and the ratio."""
    found = {name: [] for name in writers}
    failed = dict.fromkeys(writers, 0)
    for _ in range(rounds):
        for name, services in writers.items():
            rate, failures = claims_in(services)
            found[name].append(rate)
            failed[name] += failures
    for name, rates in found.items():
        kept.keep(f"Galera, {name}, {where}", statistics.median(rates), "claims/s",
                  f"{min(rates):.0f} to {max(rates):.0f}; {failed[name]} calls failed")
    one, three = found.values()
    kept.keep(f"Galera, three writers to one, {where}", statistics.median(
        each / other for each, other in zip(three, one, strict=True)), "ratio")
