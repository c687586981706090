# SPDX-License-Identifier: Apache-2.0
"""16 schedulers on a nearly full fleet: one call over the bus, or two requests over HTTP."""

import contextlib

from placement_rpc import api
from placement_rpc import conf as configuration
from tests import base
from tests.benchmarks import candidates_fleet, processor_time
from tests.benchmarks.bench import percentile
from tests.benchmarks.candidates_services import Peer, Remote, filled_store
from tests.benchmarks.module_process import ModuleProcess

_TREES, _FREE = 10_000, 500
_PROCESSES, _THREADS, _WORKERS = 2, 8, 2
_SECONDS = 60


def bench_schedulers(bench, postgresql, broker, quick):
    """Measure claims of the last free places, with each service by itself.

    :param bench: has ``say`` and ``keep``
    """
    trees, free, seconds = (1000, 50, 10) if quick else (_TREES, _FREE, _SECONDS)
    fleet = candidates_fleet.NearlyFull(trees, free)
    rates = {}
    for name, start in (("placement_rpc", _ours), ("openstack-placement", _theirs)):
        bench.say(f"16 schedulers of {name}, {free} free places in {trees} trees ...")
        with contextlib.ExitStack() as stack:
            where, meter = start(stack, postgresql, broker, fleet)
            found, spent = _schedule(stack, {**where, "seconds": seconds}, meter)
        took = sorted(each for one in found for each in one["took"])
        if not took:
            raise RuntimeError(f"{name}: the schedulers have claimed nothing: {found}")
        lasted = max(one["seconds"] for one in found)
        rates[name] = len(took) / lasted
        what = f"{name}: 16 schedulers, {trees} nearly full trees"
        bench.keep(what, rates[name], "claims/s",
                   f"{len(took)} claims of {free} places in {lasted:.1f} s, p50 "
                   f"{percentile(took, 0.5):.0f} ms, p99 {percentile(took, 0.99):.0f} ms, "
                   f"refused {sum(one['refused'] for one in found)}")
        each_claim = {part: 1000 * seconds / len(took) for part, seconds in spent.items()}
        bench.keep(f"{what}: processor time of a claim", sum(each_claim.values()), "ms",
                   ", ".join(f"{part} {each:.1f}" for part, each in each_claim.items()))
    bench.keep(f"schedulers on {trees} nearly full trees: placement_rpc to openstack-placement",
               rates["placement_rpc"] / rates["openstack-placement"], "ratio", "claims a second")


def _ours(stack, postgresql, broker, fleet):
    service = stack.enter_context(Remote(
        postgresql, filled_store(postgresql, fleet), broker, _WORKERS))
    conf = configuration.new_config(config_files=[], transport_url=broker.url)
    with api.PlacementAPI(conf=conf) as client:
        base.wait_until(lambda: _is_ready(client), 300)
    return {"transport_url": broker.url}, processor_time.Meter({
        "service": [service.conductor.process.pid], "broker": [broker.process.pid],
        "database": [postgresql.process.pid]})


def _is_ready(client):
    """Return whether every worker has built its index."""
    found = client.get_versions(None, timeout=60).objects
    return len(found) >= _WORKERS and all(
        client.verify_index(None, f"{each.host}.{each.binary}.{each.worker}", limit=1, timeout=60)
        for each in found)


def _theirs(stack, postgresql, broker, fleet):
    service = stack.enter_context(Peer(
        postgresql, postgresql.create_database(), fleet, workers=_WORKERS, threads=_THREADS))
    service.wait_until_ready()
    return {"url": service.url}, service.meter


def _schedule(stack, order, meter):
    """Have client processes claim; return their reports and the processor time by part."""
    clients = [stack.enter_context(ModuleProcess("scheduler")) for _ in range(_PROCESSES)]
    for client in clients:
        client.tell({**order, "threads": _THREADS})
    for client in clients:
        client.hear()
    before = meter.read()
    for client in clients:
        client.tell("begin")
    found = [client.hear() for client in clients]
    return found, meter.since(before)
