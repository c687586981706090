# SPDX-License-Identifier: Apache-2.0
"""What ``placement shadow`` prints."""

import contextlib
import json
import sys

from placement_rpc.cmd import output
from placement_rpc.moving.shadow import Verdict

_KINDS = ["kind", "requests", *map(str, Verdict), "old_p50", "new_p50", "old_p99", "new_p99",
          "times_faster"]
_SAMPLE = ["kind", "different requests", "times in the log"]
_DIFFERENCES = ["verdict", "request", "where", "old", "new", "cause"]


def describe_log(log):
    """Say on standard error what a log has.

    :param log: :class:`placement_rpc.moving.access_log.AccessLog`
    """
    facts = [f"{log.lines} lines", f"{log.reads} read requests"]
    if log.others:
        facts.append(f"{log.others.total()} requests of other methods, which are not sent "
                     f"({', '.join(sorted(log.others))})")
    for number, text in ((log.foreign, "requests to other addresses"),
                         (log.cut_off, "requests that are cut off"),
                         (log.without_request, "lines without a request")):
        if number:
            facts.append(f"{number} {text}")
    print(f"The log has {', '.join(facts)}.", file=sys.stderr)


def show_sample(sample, style):
    """Print the requests that would be asked.

    :param sample: list of :class:`placement_rpc.moving.request_sample.SampledRequest`
    :param style: str, ``table`` for the numbers of each kind, or ``json`` for each request
    """
    if style == "json":
        output.show([{"target": each.request.target, "microversion": each.request.microversion,
                      "times": each.times} for each in sample], [], "json")
        return
    kinds = {}
    for each in sample:
        row = kinds.setdefault(each.request.kind, dict(
            zip(_SAMPLE, (each.request.kind, 0, 0), strict=True)))
        row[_SAMPLE[1]] += 1
        row[_SAMPLE[2]] += each.times
    output.show([kinds[kind] for kind in sorted(kinds)], _SAMPLE, "table")


@contextlib.contextmanager
def progress(size):
    """Show a bar on a terminal, and nothing elsewhere.

    :param size: int, how many requests there are
    :returns: context manager that gives a callable of each result
    """
    differing = 0
    with output.progress("Asking both", lambda: size) as advance:

        def add(result):
            nonlocal differing
            differing += result.difference is not None
            advance(1, f"Asking both ({differing} differ)")

        yield add


def print_json(report, log, facts):
    """Print all as one JSON object.

    :param report: :class:`placement_rpc.moving.shadow_report.ShadowReport`
    :param log: of :func:`describe_log`
    :param facts: dict of ``old`` and ``new``, the addresses, and ``planned``, the number of
        requests
    """
    json.dump({
        **facts, "asked": report.asked, "verdicts": report.verdicts, "cut_by_limit": report.cut,
        "status_unlike_log": report.unlike_log, "notes": dict(report.notes),
        "log": {"lines": log.lines, "reads": log.reads, "other_methods": dict(log.others),
                "other_addresses": log.foreign, "cut_off": log.cut_off,
                "without_request": log.without_request},
        "kinds": report.rows(),
        "differences": [_difference(each) for each in report.differences]},
        sys.stdout, indent=2)
    print()


def print_tables(report, facts, shown):
    """Print tables of the kinds of requests and of differences, and what else was noticed.

    :param shown: int, how many differences are printed
    """
    print(f"old: {facts['old']}\nnew: {facts['new']}\nLatencies are in milliseconds.")
    rows = report.rows()
    # A verdict that no request has needs no column.
    columns = [name for name in _KINDS if name not in report.verdicts
               or name in (Verdict.SAME, Verdict.DIFFERENT) or rows[-1][name]]
    output.show(rows, columns, "table")
    if report.differences:
        output.show([{**each, "request": f"{each['target']} at {each['microversion']}"}
                     for each in map(_difference, report.differences[:shown])],
                    _DIFFERENCES, "table")
    for line in _remarks(report, facts, shown):
        print(line)


def _remarks(report, facts, shown):
    differing = sum(report.verdicts[each] for each in (
        Verdict.DIFFERENT, Verdict.DATA, Verdict.MOVING, Verdict.UNANSWERED))
    if differing > shown:
        yield f"{differing - shown} more differ; --show N shows more, --format json up to 1000."
    if report.cut:
        yield (f"A limit cut off {report.cut} answers; which candidates it keeps is free, and "
               "some of each service were looked for in the other.")
    if report.verdicts[Verdict.DATA]:
        yield ("The stores differ: 'placement import' brings what changed, and 'placement "
               "verify' compares all rows.")
    if report.verdicts[Verdict.FORBIDDEN]:
        yield "403 is no answer to compare: use credentials with the role admin or service."
    if report.verdicts[Verdict.UNANSWERED]:
        yield "No answer, and 503, cannot be compared: run it again when both services answer."
    if report.unlike_log:
        yield (f"{report.unlike_log} answers of the old service have another status than in the "
               "log: what they ask for is gone, or they were asked at another microversion.")
    yield from (f"{number}: {note}" for note, number in report.notes.items())
    yield f"{report.asked} of {facts['planned']} requests were compared."


def _difference(result):
    """Return a result as a dict of JSON values."""
    return {"verdict": str(result.verdict), "target": result.request.target,
            "microversion": result.request.microversion, "times_in_log": result.times,
            "where": result.difference.where, "old": result.difference.old,
            "new": result.difference.new, "cause": result.cause}
