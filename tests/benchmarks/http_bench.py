# SPDX-License-Identifier: Apache-2.0
"""The HTTP facade and openstack-placement, served in the same way and measured in turns."""

import contextlib
import importlib.util
import statistics

from placement_rpc.testing import servers
from tests.benchmarks import http_services

_WORK = {"show": "GET provider", "inventories": "PUT inventories",
         "allocations": "PUT allocations", "sets": "POST allocations of 10",
         "traits": "PUT traits", "usages": "GET usages of 1,000 consumers"}
# Asked of a store with many providers.
_LISTS = {"with_trait": "GET providers with a trait", "in_tree": "GET providers of a tree"}
_FLEET = {"SQLite": 0, "PostgreSQL": 10_000}
# SQLite has one writer at a time: more processes would only wait for each other.
_SERVING = {"SQLite": {"workers": 1, "threads": 8}, "PostgreSQL": {"workers": 2, "threads": 8}}
# Of the ratio to openstack-placement, and what it was.
_GOALS = {"PUT allocations, PostgreSQL, 16 clients": "goal 10, was 5.9; ",
          "PUT inventories, PostgreSQL, 16 clients": "goal 8, was 4.2; "}


def bench_http(bench, quick):
    """Measure each kind of request with one client and with many, on both databases.

    :param bench: has ``say`` and ``keep``
    """
    seconds, rounds, providers = (0.7, 2, 96) if quick else (3, 3, 160)
    for database, serving in _SERVING.items():
        bench.say(f"HTTP on {database}: both with {serving['workers']} processes of "
                  f"{serving['threads']} threads each, in turns ...")
        with contextlib.ExitStack() as stack:
            services = _start(stack, database, serving, providers)
            works = _WORK | _LISTS if _FLEET[database] else _WORK
            for service in services:
                for work in works:
                    service.measure(work, http_services.CLIENTS, 0.3)
            for work in works:
                for clients in (1, http_services.CLIENTS):
                    found = {service.name: [] for service in services}
                    for _ in range(rounds):
                        for service in services:
                            found[service.name].append(service.measure(work, clients, seconds))
                    _keep(bench, f"{works[work]}, {database}, {clients} "
                          f"client{'s' * (clients > 1)}", found)


def _start(stack, database, serving, providers):
    how = [{**serving, "providers": providers} for _ in http_services.SERVICES]
    if database == "PostgreSQL":
        postgresql = stack.enter_context(servers.PostgreSQL(durable=True))
        for each in how:
            each.update(database_url=postgresql.create_database(), database=postgresql.process,
                        fleet_size=_FLEET[database])
        if importlib.util.find_spec("psycopg2"):
            # openstack-placement uses an attribute of cursors that psycopg 3 lacks, and answers
            # 500 to every PUT of allocations; the older driver has it.
            how[-1]["database_url"] = how[-1]["database_url"].replace("+psycopg:", "+psycopg2:")
    return [stack.enter_context(http_services.Loaded(name, **each))
            for name, each in zip(http_services.SERVICES, how, strict=True)]


def _keep(bench, what, found):
    """Store rates, their ratio, durations of calls and processor times in the report."""
    for name, rounds in found.items():
        rates = [each["rate"] for each in rounds]
        failed = {}
        for each in rounds:
            for status, count in each["failed"].items():
                failed[status] = failed.get(status, 0) + count
        note = f"{min(rates):.0f} to {max(rates):.0f}"
        if failed:
            note += "; failed: " + ", ".join(
                f"{count} with {status}" for status, count in sorted(failed.items()))
        bench.keep(f"{what}: {name}", statistics.median(rates), "requests/s", note)
        took = sorted(time for each in rounds for time in each["took"])
        spent = ", ".join(f"{part} {statistics.median(each['ms'][part] for each in rounds):.2f}"
                          for part in rounds[0]["ms"])
        for share in (0.5, 0.99):
            if took:
                bench.keep(f"{what}: {name}, p{share * 100:.0f}",
                           1000 * took[min(len(took) - 1, int(share * len(took)))], "ms",
                           f"processor ms: {spent}" if share == 0.5 else "")
    ratios = [ours["rate"] / theirs["rate"] for ours, theirs in zip(*found.values(), strict=True)
              if theirs["rate"]]
    if ratios:
        spent = [sum(each["ms"][part] for part in ("server", "database") if part in each["ms"])
                 for each in map(_typical, found.values())]
        bench.keep(f"{what}: placement_rpc to openstack-placement",
                   statistics.median(ratios), "ratio",
                   f"{_GOALS.get(what, '')}{min(ratios):.2f} to {max(ratios):.2f}; "
                   f"of the processor time of server and database: {spent[0] / spent[1]:.2f}")


def _typical(rounds):
    """Return the round of the median rate."""
    return sorted(rounds, key=lambda each: each["rate"])[len(rounds) // 2]
