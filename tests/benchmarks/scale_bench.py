# SPDX-License-Identifier: Apache-2.0
"""The cost of finding and claiming as the fleet grows, with an echo and OpenStack Placement."""

import statistics
import time

import sqlalchemy as sa

from placement_rpc.candidates.feed import FollowedIndex
from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.objects.class_names import STANDARD_IDS
from tests.benchmarks import fleet, http_services, upstream_store
from tests.benchmarks.bench import median, percentile, spread

_UPSTREAM_WORKERS = {"workers": 2, "threads": 8}
# In larger fleets a call of openstack-placement takes tens of seconds.
_MOST_FOR_UPSTREAM = 10_000
_SECONDS_FOR_UPSTREAM = 3
_FREE, _FULL = 500, 10_000


def bench_scale(bench, quick):
    """Measure the same work at each size of a growing fleet."""
    upstream = _upstream(bench)
    sizes = (10_000,) if quick else (1000, 10_000, 100_000)
    first = None
    for size in sizes:
        bench.say(f"{size} providers ...")
        providers = fleet.grow(bench.store.database, size)
        _index(bench, size)
        bench.follow()
        bench.connect(providers[:1000])
        with_upstream = size <= _MOST_FOR_UPSTREAM
        if with_upstream:
            upstream_store.grow(upstream[1], size, fleet.AMOUNTS)
        rounds = _in_turns(bench, upstream[0] if with_upstream else None, quick)
        found = _keep_ours(bench, size, rounds)
        if with_upstream:
            _compare(bench, size, rounds, found, _keep_theirs(bench, size, rounds))
        first = first or found["find"]
        if size > sizes[0]:
            bench.keep(f"get_by_request at {size} to itself at {sizes[0]}, p50",
                       found["find"] / first, "ratio")
    if not quick:
        _nearly_full(bench)


def _upstream(bench):
    url = bench.postgresql.create_database().replace("+psycopg:", "+psycopg2:")
    bench.say("Starting openstack-placement ...")
    # Loaded creates providers over HTTP, after which the resource classes are in the database.
    return bench.stack.enter_context(http_services.Loaded(
        "openstack-placement", 32, bench.postgresql.process, database_url=url,
        **_UPSTREAM_WORKERS)), url


_OURS = (("echo_found", 1), ("find", 1), ("claim", 16), ("set_inventory", 16))
_THEIRS = (("candidates", 1, "GET allocation_candidates?limit=100"),
           ("providers", 1, "GET resource_providers?resources="),
           ("allocations", 16, "PUT allocations"), ("inventories", 16, "PUT inventories"))


def _in_turns(bench, upstream, quick):
    """Measure each kind of work, ours and theirs in turns, in several rounds.

    :returns: dict of work to a list of rounds
    """
    seconds, rounds = (1, 1) if quick else (4, 3)
    found = {}
    for _ in range(rounds):
        for work, clients in _OURS:
            found.setdefault(work, []).append(bench.measure(work, seconds) if clients > 1 else (
                bench.measure(work, seconds, clients=1, threads=1)))
        for work, clients, _name in _THEIRS if upstream else ():
            found.setdefault(work, []).append(upstream.measure(
                work, clients, min(seconds, _SECONDS_FOR_UPSTREAM)))
    return found


def _index(bench, size):
    """Measure the memory and the build time of the index."""
    began = time.perf_counter()
    index = FollowedIndex(bench.store.database.reader).index
    took = time.perf_counter() - began
    bench.keep(f"index of {size} providers: build time", took, "s")
    bench.keep(f"index of {size} providers: for each provider and class",
               index.nbytes / index.size, "bytes")


def _keep_ours(bench, size, rounds):
    """Store our figures; return a dict of p50 of a find and processor time of each work, in ms."""
    p50 = {}
    for work, name in (("echo_found", "echo of the same bytes"),
                       ("find", "get_by_request, limit 100")):
        took = sorted(each for found in rounds[work] for each in found["took"])
        p50[work] = percentile(took, 0.5)
        for share in (0.5, 0.99):
            bench.keep(f"{name}, {size} providers, p{share * 100:.0f}",
                       percentile(took, share), "ms")
        bench.keep(f"{name}, {size} providers: processor time", _spent(rounds[work]), "ms",
                   "service and database")
    _keep_ratios(bench, f"get_by_request to the echo, {size} providers, p50", [
        percentile(ours["took"], 0.5) / percentile(theirs["took"], 0.5)
        for ours, theirs in zip(rounds["find"], rounds["echo_found"], strict=True)],
        "goal 1.2, was 1.7")
    found = {"find": p50["find"], "find_ms": _spent(rounds["find"])}
    for work, name in (("claim", "claim_allocations"), ("set_inventory", "set_inventory")):
        done = rounds[work]
        bench.keep(f"{name}, 16 clients, {size} providers", median(done), "calls/s", spread(done))
        bench.keep(f"{name}, 16 clients, {size} providers: processor time", _spent(done), "ms",
                   "service and database")
        found[f"{work}_ms"] = _spent(done)
    return found


def _keep_ratios(bench, name, ratios, goal):
    bench.keep(name, statistics.median(ratios), "ratio",
               f"{goal}; {min(ratios):.2f} to {max(ratios):.2f}")


def _spent(rounds):
    """Return the processor time of the service and its database for each call, in ms."""
    return statistics.median(sum(
        each["ms"][part] for part in ("servers", "server", "database") if part in each["ms"])
        for each in rounds)


def _keep_theirs(bench, size, rounds):
    """Store the figures of openstack-placement; return a dict of work to processor time in ms."""
    found = {}
    for work, _, name in _THEIRS:
        done = [each for each in rounds[work] if each["took"]]
        if not done:
            bench.keep(f"openstack-placement {name}, {size} providers", 0, "requests/s",
                       f"failed: {rounds[work][0]['failed']}")
            continue
        bench.keep(f"openstack-placement {name}, {size} providers, p50", percentile(
            sorted(took for each in done for took in each["took"]), 0.5), "ms")
        bench.keep(f"openstack-placement {name}, {size} providers: processor time",
                   _spent(done), "ms", "service and database")
        bench.keep(f"openstack-placement {name}, {size} providers", median(done), "requests/s",
                   spread(done))
        found[f"{work}_ms"] = _spent(done)
    return found


def _compare(bench, size, rounds, ours, theirs):
    for name, one, other in (
            ("GET allocation_candidates to get_by_request", "candidates_ms", "find_ms"),
            ("GET resource_providers to get_by_request", "providers_ms", "find_ms"),
            ("PUT allocations to claim_allocations", "allocations_ms", "claim_ms"),
            ("PUT inventories to set_inventory", "inventories_ms", "set_inventory_ms")):
        if one in theirs:
            bench.keep(f"{name}, {size} providers, processor time", theirs[one] / ours[other],
                       "ratio")
    if "inventories_ms" in theirs:
        _keep_ratios(bench, f"set_inventory to PUT inventories, {size} providers, per second", [
            one["rate"] / other["rate"]
            for one, other in zip(rounds["set_inventory"], rounds["inventories"], strict=True)
            if other["rate"]], "goal 6, was 3.1")


def _nearly_full(bench):
    """Measure 16 schedulers that claim the last free devices of a fleet."""
    bench.say(f"The last {_FREE} of {_FREE + _FULL} devices, 16 schedulers ...")
    providers, inventories = models.resource_providers, models.inventories
    at = bulk.now()
    with bench.store.database.writer() as tx:
        ids = tx.execute(sa.select(providers.c.id).order_by(providers.c.uuid).limit(
            _FREE + _FULL)).scalars().all()
        tx.execute(sa.insert(inventories), [
            {"resource_provider_id": id_, "resource_class_id": STANDARD_IDS["FPGA"], "total": 1,
             "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0,
             "capacity": 1, "used": int(number >= min(_FREE, len(ids) // 2)), "created_at": at,
             "updated_at": at} for number, id_ in enumerate(ids)])
    bench.follow()
    tries = bench.metric("placement_rpc_settled_together_sum")
    done = bench.measure("place", 60 if len(ids) > 2 * _FREE else 20, until_empty=True)
    tries = bench.metric("placement_rpc_settled_together_sum") - tries
    bench.keep("claim_by_request, 16 schedulers, a nearly full fleet", done["rate"], "claims/s",
               f"{done['done']} claims")
    bench.keep("settle attempts for each of these claims", tries / done["done"], "attempts")
