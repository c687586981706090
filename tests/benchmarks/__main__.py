# SPDX-License-Identifier: Apache-2.0
"""``make bench``: the service compared with a bare echo server and with OpenStack Placement.

It prints figures and enforces no limits, because machines are shared and noisy. The ratio of two
figures that were measured in turns in the same run is the result to compare.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform

import psutil
import rich.table

from tests.benchmarks import (
    audit_bench,
    bus_bench,
    candidates_bench,
    fairness_bench,
    fleet,
    galera_bench,
    http_bench,
    moving_bench,
    plots,
    scale_bench,
    start_bench,
    usage_bench,
)
from tests.benchmarks.bench import Bench, Report

_PARTS = ("claims", "nodes", "start", "usage", "scale", "http", "candidates", "audit", "moving",
          "galera", "fairness")
# These start their own servers.
_BY_THEMSELVES = ("http", "candidates", "audit", "moving", "galera")


def bench_bus(quick, parts, kept):
    """Measure over the message bus.

    :param parts: list of the parts to measure
    """
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, quick, kept)
        providers = fleet.grow(bench.store.database, 1000)
        bench.follow()
        bench.connect(providers)
        if "claims" in parts:
            bus_bench.bench_claims(bench)
            if not quick or parts == ["claims"]:
                bus_bench.bench_lone_claims(bench)
                bus_bench.bench_casts(bench)
                bus_bench.bench_events(bench)
                bus_bench.bench_relay(bench)
                bus_bench.bench_outbox(bench, providers)
        if "nodes" in parts:
            bus_bench.bench_nodes(bench)
        if "start" in parts:
            start_bench.bench_start(bench)
        if "usage" in parts:
            usage_bench.bench_usage(bench, quick, providers)
        if "fairness" in parts:
            fairness_bench.bench_fairness(bench)
        if "scale" in parts:
            scale_bench.bench_scale(bench, quick)


def report(kept, directory):
    """Print the table, write the JSON and draw the plots."""
    table = rich.table.Table("measurement", "figure", "unit", "spread or note")
    for row in kept.results:
        table.add_row(row["name"], f"{row['value']:.2f}" if row["value"] < 100 else (
            f"{row['value']:.0f}"), row["unit"], row["note"])
    kept.console.print(table)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "bench.json"
    path.write_text(json.dumps({
        "machine": {"processors": os.cpu_count(), "python": platform.python_version(),
                    "memory_gib": round(psutil.virtual_memory().total / 2 ** 30)},
        "results": kept.results}, indent=2))
    drawn = plots.draw(kept.results, directory)
    kept.console.print("Written to " + ", ".join(map(str, [path, *drawn])), style="dim")


def main():
    parser = argparse.ArgumentParser(
        description="Measure the service, a bare echo server and OpenStack Placement.")
    parser.add_argument("--quick", action="store_true",
                        help="measure claims and scale only, in about a minute")
    parser.add_argument("--only", choices=_PARTS, help="measure this part only")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("bench-results"))
    options = parser.parse_args()
    kept = Report()
    parts = [options.only] if options.only else ["claims", "scale"] if options.quick else [*_PARTS]
    if not set(parts) <= set(_BY_THEMSELVES):
        bench_bus(options.quick, parts, kept)
    # After the others, so that their servers do not compete with these.
    if "http" in parts:
        http_bench.bench_http(kept, options.quick)
    if "candidates" in parts:
        candidates_bench.bench_candidates(kept, options.quick)
    if "audit" in parts:
        audit_bench.bench_audit(kept, options.quick)
    if "moving" in parts:
        moving_bench.bench_moving(kept, options.quick)
    if "fairness" in parts:
        fairness_bench.bench_fairness_http(kept, options.quick)
    if "galera" in parts:
        galera_bench.bench_galera(kept, options.quick)
    report(kept, options.output)


if __name__ == "__main__":
    main()
