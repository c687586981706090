# SPDX-License-Identifier: Apache-2.0
"""The latency of fifteen clients that claim, alone and alongside one that runs away.

The runaway client runs at the lowest priority, so that it takes only what is left of a processor.
"""

import contextlib
import statistics

from placement_rpc import api
from placement_rpc.testing import fixtures as placement_fixtures
from tests.benchmarks import fair_clients
from tests.benchmarks.http_services import OurFacade

# Providers that a search without a limit finds over HTTP.
_FLEET = 1000
# As in etc/gunicorn, less those that wait for events.
_THREADS = 128
# How many times as many rounds as of other measurements: p99 of one is its ninth-slowest claim.
_TIMES = 2
_WORKS = (("claim", "claims"), ("find", "searches without a limit"))


def bench_fairness(bench):
    """Measure over the bus, on the servers of the benchmark."""
    with api.PlacementAPI(conf=bench.store.conf) as client:
        providers = fair_clients.make_providers(client)
    clients = bench.stack.enter_context(fair_clients.FairClients(
        "bus", bench.broker.url, bench.store.database, providers))
    _measure(bench, "bus", clients, _TIMES * bench.rounds, bench.seconds)


def bench_fairness_http(kept, quick):
    """Measure over HTTP: one process of the facade on SQLite, behind gunicorn."""
    kept.say("Starting the HTTP facade ...")
    with contextlib.ExitStack() as stack:
        facade = stack.enter_context(OurFacade(
            fleet_size=_FLEET, options=f"threads = {_THREADS}\nmax_waiting = 0", threads=_THREADS))
        local = stack.enter_context(placement_fixtures.RunningService(
            "local", database_url=facade.database_url))
        clients = stack.enter_context(fair_clients.FairClients(
            "http", facade.url, local.database, fair_clients.make_providers(local.api)))
        _measure(kept, "HTTP", clients, *((2 * _TIMES, 1.5) if quick else (4 * _TIMES, 5)))


def _measure(kept, road, clients, rounds, seconds):
    for work, name in _WORKS:
        kept.say(f"{road}: fifteen clients, alone and alongside one with 64 threads of {name} ...")
        measured = [clients.measure(work, seconds) for _ in range(rounds)]
        kept.say(fair_clients.summary(measured))
        for share in (0.5, 0.99):
            found = fair_clients.ratios(measured, share)
            kept.keep(f"{road}: a claim alongside 64 threads of {name}, to one alone, "
                      f"p{share * 100:.0f}", statistics.median(found), "ratio",
                      f"{min(found):.2f} to {max(found):.2f}")
