# SPDX-License-Identifier: Apache-2.0
"""The result of runs of the soak, as a table or JSON, and the sum of several."""

import collections
import json

_COUNTS = ("accepted", "refused", "unknown", "claim", "batch", "replace", "move", "set", "find",
           "release", "casts", "reads", "events")


def add(runs):
    """Return the sum of runs of each form, a list of results like theirs.

    :param runs: list of dicts, as :meth:`tests.soak.run.Soak.figures` returns them
    """
    sums = {}
    for run in runs:
        total = sums.setdefault(run["form"], {
            "form": run["form"], "seed": [], "counts": collections.Counter(), "lost": 0,
            "doubled": 0, "over_committed": 0, "unknown_that_happened": 0, "memory_mib": {},
            "young_queues_kept_percent": [], "stopped_brokers": collections.Counter(),
            "faults": {}, "wrong": []})
        total["seed"].append(run["seed"])
        total["counts"].update(run["counts"])
        for name in ("lost", "doubled", "over_committed", "unknown_that_happened"):
            total[name] += run[name]
        total["wrong"] += run["wrong"]
        total["young_queues_kept_percent"] += run["young_queues_kept_percent"]
        total["stopped_brokers"].update(run["stopped_brokers"])
        for name, found in run["faults"].items():
            known = total["faults"].setdefault(name, {**found, "times": 0})
            known["times"] += found["times"]
            for figure in ("gap", "p99"):
                known[figure] = max((value for value in (known[figure], found[figure])
                                     if value is not None), default=None)
        for name, (early, late) in run["memory_mib"].items():
            known = total["memory_mib"].get(name, (early, late))
            # Of the run in which it grew most.
            total["memory_mib"][name] = max(known, (early, late),
                                            key=lambda pair: pair[1] - pair[0])
    return list(sums.values())


def sent(result):
    """Return how many requests were sent that change something."""
    return sum(result["counts"].get(name, 0) for name in ("accepted", "refused", "unknown"))


def text(result):
    """Return a result as a text for a terminal."""
    counts = result["counts"]
    lines = [f"{result['form']}, seed {result['seed']}: {sent(result)} sent, " + ", ".join(
        f"{counts.get(name, 0)} {name}" for name in _COUNTS),
        f"  {result['lost']} lost, {result['doubled']} doubled, {result['over_committed']} "
        f"over-committed; {result['unknown_that_happened']} of the unknown happened",
        f"  {'fault':26}{'times':>6}{'longest gap':>13}{'goal':>6}{'p99':>9}"]
    for name, found in result["faults"].items():
        goal = "" if found["goal"] is None else f"{found['goal']:g}"
        late = " (late)" if goal and found["gap"] > found["goal"] else ""
        lines.append(f"  {name:26}{found['times']:6}{found['gap']:11.2f} s{goal:>6}"
                     f"{found['p99'] or 0:7.2f} s{late}")
    if kept := result["young_queues_kept_percent"]:
        lines.append("  queues declared just before a kill kept these percentages of their "
                     f"messages: {kept}")
    if rejoined := result["stopped_brokers"]:
        lines.append("  broker nodes that were stopped came back: " + ", ".join(
            f"{times} {how}" for how, times in rejoined.items()))
    lines.append("  MiB early and late: " + ", ".join(
        f"{name} {early} {late}" for name, (early, late) in result["memory_mib"].items()))
    lines += [f"  WRONG: {each}" for each in result["wrong"]] or ["  nothing is wrong"]
    return "\n".join(lines)


def rst(results):
    """Return the gaps of results as a table for the documentation."""
    rows = [("engines", "fault", "times", "longest gap, s", "goal, s", "p99, s")]
    rows += [(result["form"], name, str(found["times"]), f"{found['gap']:.1f}",
              "" if found["goal"] is None else f"{found['goal']:g}", f"{found['p99'] or 0:.2f}")
             for result in results for name, found in result["faults"].items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def load(paths):
    """Return the results in files that were written with ``--json``, a list of dicts."""
    found = []
    for path in paths:
        with open(path) as file:
            found += json.load(file)
    return found
