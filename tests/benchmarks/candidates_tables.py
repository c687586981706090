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
_SCHEDULERS = re.compile(r"(?P<service>.+): 16 schedulers, \d+ nearly full trees"
                         r"(?P<spent>: processor time of a claim)?$")
_UNITS = ("s", "bytes", "MiB", "ms")
_GOAL = re.compile(r"goal ([\d.]+)")
_OURS, _OVER_BUS, _PEER, _TIMES = "", "over rpc", "openstack-placement", "times less"
_SERVICES = {None: _OURS, "placement_rpc over rpc": _OVER_BUS, "openstack-placement": _PEER}


def tables(results):
    """Return the text of the tables.

    :param results: list of dicts of name, value, unit and note
    """
    return "\n".join((
        _requests(results), _fleets(results), _schedulers(results)))


def _requests(results):
    """Return tables of the processor time: of the service, over rpc, and of the peer."""
    found, queries = {}, []
    for row in results:
        spent, ratio = _SPENT.match(row["name"]), _RATIO.match(row["name"])
        if spent or ratio:
            match = spent or ratio
            kind = _SERVICES[spent["service"]] if spent else _TIMES
            if match["query"] not in queries:
                queries.append(match["query"])
            found[match["query"], kind, int(match["size"])] = row
    return "\n".join((
        _by_size("Processor time of a request in milliseconds, and its goal in parentheses, by "
                 "the number of trees:", "local", found, queries, (_OURS,), True),
        _by_size("The same with ``transport = rpc``:", "rpc", found, queries, (_OVER_BUS,)),
        _by_size("The same of openstack-placement, and how many times less it is here:",
                 "openstack-placement", found, queries, (_PEER, _TIMES), True)))


def _by_size(title, corner, found, queries, kinds, with_goals=False):
    """Return a table with a row for each query, and a column for each size and kind."""
    columns = sorted({(size, kinds.index(kind), kind) for _, kind, size in found if kind in kinds})
    rows = [[query, *(_figure(found.get((query, kind, size)), with_goals)
                      for size, _, kind in columns)]
            for query in queries if any((query, kind, size) in found for size, _, kind in columns)]
    return _table(title, [[corner, *(
        "ratio" if kind == _TIMES else f"{size:,}" for size, _, kind in columns)], *rows])


def _fleets(results):
    """Return the table of the index: its load, its memory, and the work for a claim."""
    found, names, sizes = {}, [], set()
    for row in results:
        match = _SIZED.match(row["name"])
        if match is not None and row["unit"] in _UNITS:
            name = f"{match['what']} [{row['unit']}]"
            if name not in names:
                names.append(name)
            sizes.add(int(match["size"]))
            found[name, int(match["size"])] = row
    return _table("The index, and the process that has it, by the number of trees:", [
        ["ten providers a tree", *(f"{size:,}" for size in sorted(sizes))],
        *([name, *(_figure(found.get((name, size)), True) for size in sorted(sizes))]
          for name in names)])


def _schedulers(results):
    rows = {}
    for row in results:
        match = _SCHEDULERS.match(row["name"])
        if match is not None:
            rows.setdefault(match["service"], {})["spent" if match["spent"] else "rate"] = row
    return _table("16 schedulers, each of which places one server after the other:", [
        ["service", "claims/s", "processor ms", ""],
        *([service, _rounded(each["rate"]["value"]), _rounded(each["spent"]["value"]),
           each["rate"]["note"]] for service, each in rows.items())])


def _figure(row, with_goal):
    if row is None:
        return ""
    goal = _GOAL.search(row["note"]) if with_goal else None
    return _rounded(row["value"]) + (f" ({goal[1]})" if goal else "")


def _rounded(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _table(title, rows):
    """Return a title and a simple table of reStructuredText; the first row is its head."""
    if len(rows) < 2 or len(rows[0]) < 2:
        return ""
    widths = [max(len(row[number]) for row in rows) for number in range(len(rows[0]))]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    return "\n".join((title, "", rule, lines[0], rule, *lines[1:], rule, ""))


if __name__ == "__main__":
    print(tables(json.loads(pathlib.Path(sys.argv[1]).read_text())["results"]), end="")
