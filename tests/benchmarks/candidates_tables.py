# SPDX-License-Identifier: Apache-2.0
"""The tables of the documentation about allocation candidates, from the results of a run.

    python -m tests.benchmarks.candidates_tables bench-results/bench.json \
        > docs/source/candidates-figures.inc
"""

import json
import pathlib
import re
import sys

_SPENT = re.compile(r"(?:(?P<service>placement_rpc over rpc|openstack-placement): )?"
                    r"(?P<query>.+), (?P<size>\d+) trees: processor time$")
_RATIO = re.compile(
    r"(?P<query>.+), (?P<size>\d+) trees: openstack-placement to placement_rpc$")
_SIZED = re.compile(r"(?P<what>.+), (?P<size>\d+) trees$")
_GOAL = re.compile(r"goal (\d+)")
_OURS, _OVER_BUS, _PEER, _TIMES = "", "over rpc", "openstack-placement", "times less"
_SERVICES = {None: _OURS, "placement_rpc over rpc": _OVER_BUS, "openstack-placement": _PEER}


def tables(results):
    """Return the text of the tables.

    :param results: list of dicts of name, value, unit and note
    """
    return "\n\n".join((_requests(results), _fleets(results), _schedulers(results))) + "\n"


def _requests(results):
    """Return the table of processor times: a row for each query, columns by size and service."""
    found, queries, sizes = {}, [], set()
    for row in results:
        spent, ratio = _SPENT.match(row["name"]), _RATIO.match(row["name"])
        match = spent or ratio
        if match is None or row["unit"] not in ("ms", "ratio"):
            continue
        query, size = match["query"], int(match["size"])
        if query not in queries:
            queries.append(query)
        sizes.add(size)
        found[query, size, _SERVICES[spent["service"]] if spent else _TIMES] = row
    # What is measured for a size, besides this service alone.
    columns = [(size, kind) for size in sorted(sizes)
               for kind in (_OURS, _OVER_BUS, _PEER, _TIMES)
               if any((query, size, kind) in found for query in queries)]
    head = [["ms of processor time", *(f"{size:,}" if kind == _OURS else kind
                                       for size, kind in columns)]]
    return _table(head + [[query, *(
        _figure(found.get((query, size, kind)), kind in (_OURS, _TIMES))
        for size, kind in columns)] for query in queries])


def _fleets(results):
    """Return the table of the index: its load, its memory, and the work for a claim."""
    found, names, sizes = {}, [], set()
    for row in results:
        match = _SIZED.match(row["name"])
        if match is None or row["unit"] not in ("s", "bytes", "MiB", "ms"):
            continue
        name = f"{match['what']} ({row['unit']})"
        if name not in names:
            names.append(name)
        sizes.add(int(match["size"]))
        found[name, int(match["size"])] = row
    head = [["trees of ten providers", *(f"{size:,}" for size in sorted(sizes))]]
    return _table(head + [[name, *(_figure(found.get((name, size)), True)
                                   for size in sorted(sizes))] for name in names])


def _schedulers(results):
    rows = [row for row in results if "schedulers" in row["name"]]
    return _table([["16 schedulers", "figure", "of which"], *(
        [row["name"], f"{_rounded(row['value'])} {row['unit']}", row["note"]] for row in rows)])


def _figure(row, with_goal):
    if row is None:
        return ""
    goal = _GOAL.search(row["note"]) if with_goal else None
    return _rounded(row["value"]) + (f" ({goal[1]})" if goal else "")


def _rounded(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _table(rows):
    """Return a simple table of reStructuredText; the first row is its head."""
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    # An empty first cell would continue the row before; only figures are missing.
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    return "\n".join((rule, lines[0], rule, *lines[1:], rule))


if __name__ == "__main__":
    print(tables(json.loads(pathlib.Path(sys.argv[1]).read_text())["results"]), end="")
