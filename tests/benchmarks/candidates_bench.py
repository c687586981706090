# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates over HTTP: processor time of each request, beside openstack-placement.

The goals that are printed beside the figures are for an idle machine.
"""

import contextlib
import dataclasses
import statistics
import time

from placement_rpc.candidates.feed import FollowedIndex
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.testing import servers
from tests import base
from tests.benchmarks import candidates_fleet, candidates_schedulers
from tests.benchmarks.candidates_services import (
    Local,
    Peer,
    Remote,
    contents,
    filled_store,
    median,
    shares,
)

_SIZES = (1000, 10_000, 100_000)
# In larger fleets a request of openstack-placement takes half a minute and more.
_MOST_FOR_PEER = 10_000
_SERVER = ("resources=DISK_GB:20,MEMORY_MB:4096,VCPU:2"
           "&root_required=!COMPUTE_STATUS_DISABLED")
_MOST_BYTES, _MOST_RESIDENT, _MOST_INDEX_WORK = 200, 600, 1.0


@dataclasses.dataclass(frozen=True)
class Query:
    """A kind of request.

    :param goals: dict of number of trees to the processor time in ms that is the goal
    :param ratios: dict of number of trees to how many times less than the peer is the goal
    :param is_for_peer: False if openstack-placement would take minutes
    """

    name: str
    text: str
    goals: dict = dataclasses.field(default_factory=dict)
    ratios: dict = dataclasses.field(default_factory=dict)
    is_for_peer: bool = True

    @property
    def path(self):
        return f"/allocation_candidates?{self.text}" + (
            "" if "limit=" in self.text else "&limit=1000")


def _goals(*milliseconds):
    return dict(zip(_SIZES, milliseconds, strict=True))


_PLAIN, _TWO_GROUPS, _FEW = _goals(10, 15, 25), _goals(20, 25, 60), _goals(3, 3, 10)
_RATIOS = {1000: 30, 10_000: 100}


def _host_queries(fleet):
    ports = ("resources_port=NET_BW_EGR_KILOBIT_PER_SEC:1000,NET_BW_IGR_KILOBIT_PER_SEC:1000"
             "&required_port=CUSTOM_PHYSNET_0,CUSTOM_VNIC_TYPE_NORMAL"
             "&resources_rate=NET_PACKET_RATE_KILOPACKET_PER_SEC:10"
             "&required_rate=CUSTOM_VNIC_TYPE_NORMAL&same_subtree=_port,_rate&group_policy=none")
    return (
        Query("plain", _SERVER, _PLAIN, _RATIOS),
        Query("plain in a zone", f"{_SERVER}&member_of={fleet.zone(3)}", _PLAIN),
        Query("QoS port, 2 groups", f"{_SERVER}&{ports}", _TWO_GROUPS, _RATIOS),
        Query("GPU, 2 groups", f"{_SERVER}&resources_1=VGPU:2&resources_2=VGPU:2"
              "&group_policy=isolate", _TWO_GROUPS, _RATIOS),
        Query("in_tree", f"{_SERVER}&in_tree={fleet.host_with_room()}", _FEW),
        Query("plain, limit 10", f"{_SERVER}&limit=10", _FEW))


def _device_queries():
    def groups(*classes):
        return "&".join(f"resources_{number}={name}:1" for number, name in enumerate(classes))

    short, other = ["CUSTOM_SHORT"] * 4, ["CUSTOM_SHORT_TOO"] * 4
    return (
        Query("8 equal groups, 8 children",
              f"{_SERVER}&{groups(*['CUSTOM_DEVICE'] * 8)}&group_policy=none",
              _goals(70, 70, 150), is_for_peer=False),
        Query("8 equal groups, one unit short",
              f"{_SERVER}&{groups(*short, *short)}&group_policy=none",
              _goals(40, 250, 2000), is_for_peer=False),
        Query("8 groups of two classes, one child short",
              f"{_SERVER}&{groups(*short, *other)}&group_policy=isolate",
              _goals(40, 250, 2000), is_for_peer=False))


def bench_candidates(bench, quick):
    """Measure each kind of request at each size, and what concurrent schedulers get.

    :param bench: has ``say`` and ``keep``
    """
    with contextlib.ExitStack() as stack:
        bench.say("Candidates: starting RabbitMQ and PostgreSQL ...")
        broker = stack.enter_context(servers.RabbitMQ())
        postgresql = stack.enter_context(servers.PostgreSQL(durable=True))
        for size in _SIZES[:1] if quick else _SIZES:
            _bench_hosts(bench, postgresql, broker, size, quick)
            _bench_devices(bench, postgresql, size, quick)
        candidates_schedulers.bench_schedulers(bench, postgresql, broker, quick)


def _bench_hosts(bench, postgresql, broker, size, quick):
    fleet = candidates_fleet.Hosts(size)
    bench.say(f"Writing {size} trees of {fleet.providers} providers ...")
    with contextlib.ExitStack() as stack:
        url = filled_store(postgresql, fleet)
        followed = _bench_index(stack, bench, url, fleet)
        local = stack.enter_context(Local(postgresql, url))
        services = [local, stack.enter_context(Remote(postgresql, url, broker))]
        for service in services:
            service.wait_until_ready()
        queries = _host_queries(fleet)
        _bench_first(bench, local, queries[0], size)
        if size <= _MOST_FOR_PEER:
            services.append(stack.enter_context(
                Peer(postgresql, postgresql.create_database(), fleet)))
        for query in queries:
            _bench_query(bench, services, query, size, quick)
        _bench_headroom(bench, local, size, quick)
        _bench_claims(bench, followed, local, fleet)
        bench.keep(f"resident memory of the service, {size} trees",
                   local.resident() / 2 ** 20, "MiB", f"goal {_MOST_RESIDENT} at 100000 trees")


def _bench_devices(bench, postgresql, size, quick):
    fleet = candidates_fleet.Devices(size)
    bench.say(f"Writing {size} trees of {fleet.providers} providers ...")
    with Local(postgresql, filled_store(postgresql, fleet)) as local:
        local.wait_until_ready()
        for query in _device_queries():
            _bench_query(bench, [local], query, size, quick)


def _bench_index(stack, bench, url, fleet):
    """Measure the load and the memory of an index in this process, and return it."""
    database = db.Database(
        configuration.new_config(config_files=[], database__connection=url))
    stack.callback(database.close)
    began, spent = time.perf_counter(), time.process_time()
    followed = FollowedIndex(database.reader)
    bench.keep(f"load of the index, {fleet.trees} trees", time.perf_counter() - began, "s",
               f"goal 8 at 100000 trees; of which processor time of the service "
               f"{time.process_time() - spent:.1f}")
    bench.keep(f"index for each provider, {fleet.trees} trees",
               followed.index.nbytes / (fleet.trees * fleet.providers), "bytes",
               f"goal {_MOST_BYTES}")
    return followed


def _bench_first(bench, service, query, size):
    """Measure the first answer with summaries of a process."""
    goal = _goals(60, 60, 100)[size]
    sample = service.ask(query.path)
    _check(service, query, sample)
    bench.keep(f"cold, {size} trees: processor time", sample.total, "ms",
               f"goal {goal}; {shares([sample])}")


def _bench_query(bench, services, query, size, quick):
    """Measure a kind of request in turns; the first request of each service does not count."""
    asked = [each for each in services if query.is_for_peer or each.name != Peer.name]
    bench.say(f"{query.name}, {size} trees ...")
    sizes, samples = {}, {each.name: [] for each in asked}
    for service in asked:
        first = service.ask(query.path)
        _check(service, query, first)
        sizes[service.name] = (*contents(first), len(first.body))
    for _ in range(1 if quick else 3):
        for service in asked:
            count = 10 if service.name != Peer.name else 1 if size > _SIZES[0] else 2
            samples[service.name] += service.measure(query.path, count)
    for service in asked:
        found = samples[service.name]
        requests, summaries, length = sizes[service.name]
        goal = f"goal {query.goals[size]}; " if service.name == Local.name else ""
        what = query.name if service.name == Local.name else f"{service.name}: {query.name}"
        bench.keep(f"{what}, {size} trees: processor time", median(found), "ms",
                   f"{goal}{shares(found)}; {requests} requests, {summaries} summaries, "
                   f"{length / 1e6:.2f} MB, wall time "
                   f"{statistics.median(each.wall for each in found):.0f}")
    if Peer.name in samples:
        goal = f"goal {query.ratios[size]}" if size in query.ratios else "goal 1"
        bench.keep(f"{query.name}, {size} trees: openstack-placement to placement_rpc",
                   median(samples[Peer.name]) / median(samples[Local.name]), "ratio", goal)


def _check(service, query, sample):
    if sample.status != 200:
        raise RuntimeError(
            f"{service.name}, {query.name}: {sample.status} {sample.body[:2000]!r}")


def _bench_headroom(bench, service, size, quick):
    """Measure how many more servers fit, which openstack-placement does not answer."""
    goal = _goals(5, 5, 20)[size]
    body = {"groups": [{"resources": {"DISK_GB": 20, "MEMORY_MB": 4096, "VCPU": 2}}],
            "root_forbidden": ["COMPUTE_STATUS_DISABLED"]}
    samples = service.measure("/resource_providers?headroom", 3 if quick else 20, "POST", body)
    if samples[-1].status != 200:
        raise RuntimeError(f"headroom: {samples[-1].status} {samples[-1].body[:2000]!r}")
    bench.keep(f"headroom of a plain request, {size} trees: processor time", median(samples[1:]),
               "ms", f"goal {goal}; {shares(samples[1:])}; "
                     f"{samples[-1].body[:60].decode()}")


def _bench_claims(bench, followed, service, fleet):
    """Measure how an index in this process takes up a claim that was committed elsewhere."""
    read, applied = [], []
    followed.apply(followed.changes())
    for number in range(20):
        provider = fleet.uuid((number + fleet.trees // 3) * fleet.providers + 7)
        sample = service.ask(f"/allocations/{base.new_uuid()}", "PUT", {
            "allocations": {provider: {"resources": {"VGPU": 1}}}, "project_id": "project",
            "user_id": "user", "consumer_generation": None})
        if sample.status != 204:
            raise RuntimeError(f"PUT allocations: {sample.status} {sample.body[:2000]!r}")
        began = time.thread_time()
        changes = followed.changes()
        between = time.thread_time()
        followed.apply(changes)
        read.append(1000 * (between - began))
        applied.append(1000 * (time.thread_time() - between))
    bench.keep(f"index work for a committed claim, {fleet.trees} trees",
               statistics.median(applied), "ms", f"goal {_MOST_INDEX_WORK}; reading it from the "
               f"database takes {statistics.median(read):.2f}")
