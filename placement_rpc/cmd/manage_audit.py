# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage audit``: compare the store with what nova knows, and correct it."""

import contextlib
import datetime
import json
import os
import pathlib
import sys

import rich.markup
import rich.table

from placement_rpc import exception
from placement_rpc.accounting import summaries
from placement_rpc.audit import examination, listings, trees
from placement_rpc.audit.corrections import Corrections
from placement_rpc.audit.findings import CORRECTIONS, Findings
from placement_rpc.audit.known import Known, Servers
from placement_rpc.cmd import output
from placement_rpc.cmd.console import Console
from placement_rpc.db.queries import events
from placement_rpc.db.queries import summaries as queries
from placement_rpc.manager import Manager
from placement_rpc.versions import contract

# Lines of a table on a terminal.
_MOST_LINES = 1000
# So many corrections are made even if their share is larger than the limit: the first number if
# that is not more than a half of all, and the second in any case.
_FEW, _LEAST = 10, 2
# Of a correction that was under way when the audit was stopped.
_NOT_KNOWN = "not known, since it was interrupted; the next audit shows it"


def audit(database, options, conf):
    known, taken_at = _known(options)
    with contextlib.closing(Findings()) as found:
        with output.interruptible(
                "placement-rpc-manage", lambda: "nothing was changed", "run it again"):
            counts = _examine(database, options, known, taken_at, found)
        if options.fix:
            return _fix(database, options, conf, found, counts)
        _show(found, counts, options.format)
        return 1 if found.wrong else 0


def _known(options):
    """Read the lists.

    :returns: tuple of :class:`Known`, and the time at which the first list of servers was written
    :raises InvalidInput: if one cannot be read
    """
    given = [*options.servers, *(options.migrations or ()), *(options.services or ())]
    if given.count("-") > 1:
        raise exception.InvalidInput(what="-", reason="standard input can be one list only")
    taken_at = min(map(_written_at, options.servers))
    with output.progress("Reading lists") as advance:
        servers = Servers(_counted(_entries(listings.servers, options.servers), advance))
        return Known(servers, *(
            None if files is None else _counted(_entries(read, files), advance)
            for read, files in ((listings.migrations, options.migrations),
                                (listings.services, options.services)))), taken_at


def _written_at(name):
    """Return the time after which a list may lack something, in UTC without a zone."""
    now = datetime.datetime.now(datetime.UTC)
    if name != "-":
        at = datetime.datetime.fromtimestamp(os.stat(name).st_mtime, datetime.UTC)
        now = min(now, at)
    return now.replace(tzinfo=None)


def _entries(read, files):
    for name in files:
        if name == "-":
            yield from read(sys.stdin, "standard input")
        else:
            with pathlib.Path(name).open(encoding="utf-8-sig") as file:
                yield from read(file, name)


def _counted(entries, advance):
    for each in entries:
        advance(1)
        yield each


def _examine(database, options, known, taken_at, found):
    """Fill the findings; return the counts."""
    before = taken_at - datetime.timedelta(seconds=options.margin)
    with database.reader() as tx:
        hosts = examination.stored_hosts(queries.node_hosts(tx))
    with output.progress("Reading providers") as advance:
        nodes = trees.Trees(
            map(trees.node_of, _counted(summaries.all_providers(database), advance)), hosts,
            {*known.servers.hosts(), *(known.services or ())})

    def released_since(consumers):
        with database.reader() as tx:
            return events.released_since(tx, consumers, before)

    examined = examination.Examination(known, nodes, before, released_since)
    with output.progress("Comparing consumers") as advance:
        for finding in examined.findings(_counted(summaries.all_consumers(database), advance)):
            if not options.only or finding.kind in options.only:
                found.add(finding)
    return examined.counts


def _fix(database, options, conf, found, counts):
    """List the corrections and make them; return the exit code."""
    planned = sum(found.correctable.values())
    refusal = _too_many(found, counts, options.most)
    if not planned or refusal or not options.yes:
        # With JSON, the list to look at before the answer is a table beside it.
        asks = planned and not refusal and sys.stdin.isatty()
        _show(found, counts, options.format if not asks else "table",
              sys.stderr if asks else sys.stdout)
        if not planned:
            return 1 if found.wrong else 0
        if refusal:
            print(f"placement-rpc-manage: {refusal}", file=sys.stderr)
            return 1
        if not asks:
            print("placement-rpc-manage: nothing was changed; give --yes to make "
                  f"{_text_of(found.correctable)}", file=sys.stderr)
            return 1
        if not _confirmed(found.correctable):
            print("Nothing was changed", file=sys.stderr)
            return 1
    with contextlib.closing(Findings()) as done:
        code = _correct(database, conf, found, done)
        _show(done, counts, options.format)
        return code or (1 if done.wrong > done.corrected else 0)


def _too_many(found, counts, most):
    """Return why the corrections are refused; None if they are not."""
    if not counts.servers:
        return ("nothing was changed: the lists contain no server, so that everything looks "
                "orphaned. Check that they were made with --all-projects, by an administrator")
    deleted = found.correctable["delete"]
    changed = sum(found.correctable.values()) - deleted
    for number, whole, what in ((changed, counts.consumers, "consumers"),
                                (deleted, counts.providers, "providers")):
        if number > max(_LEAST, min(_FEW, whole / 2), whole * most / 100):
            return (f"nothing was changed: {number} of {whole} {what} would be, which is more "
                    f"than {most:g} %. Check that the lists are complete (--all-projects, "
                    "--limit -1, all cells), or raise --most")
    return None


def _text_of(numbers):
    return ", ".join(f"{number} corrections ({CORRECTIONS[name]})"
                     for name, number in numbers.items() if number)


def _confirmed(numbers):
    print(f"Make {_text_of(numbers)}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _correct(database, conf, found, done):
    """Make the corrections; return 0, or the exit code for an end before all are made."""
    manager = Manager(conf, database)
    work = Corrections(database, lambda pending: manager.settle(contract.CLAIMS, pending))
    made = work.make(finding for finding, _ in found if finding.correction)
    code, stopped, is_known = 0, None, False
    with output.progress("Correcting") as advance:
        try:
            for finding, outcome, is_corrected in made:
                done.add(finding, outcome, is_corrected)
                advance(1)
        except KeyboardInterrupt:
            code, stopped = 130, "interrupted"
        except exception.PlacementException as error:
            code, stopped = 1, str(error)
            is_known = isinstance(error, exception.StoreHeld)
    if stopped:
        print(f"placement-rpc-manage: stopped after {done.corrected} corrections: {stopped}; run "
              "it again for the others", file=sys.stderr)
    tried = len(done)
    _add_others(found, done, tried, tried if is_known else work.begun)
    return code


def _add_others(found, done, tried, begun):
    """Add the findings without a correction, and those whose correction has no outcome.

    :param tried: how many corrections have an outcome
    :param begun: how many were begun
    """
    number = 0
    for finding, _ in found:
        if finding.correction is None:
            done.add(finding)
            continue
        number += 1
        if number > tried:
            done.add(finding, _NOT_KNOWN if number <= begun else "not tried")


# -- output -------------------------------------------------------------------------

def _show(found, counts, style, stream=None):
    stream = stream or sys.stdout
    if output.style_of(style, stream) == "json":
        _show_json(found, counts, stream)
    else:
        _show_table(found, counts, stream)


def _summary(found, counts):
    return {**vars(counts), "findings": dict(found.counts), "wrong": found.wrong,
            "corrections": dict(found.correctable), "corrected": found.corrected}


def _show_json(found, counts, stream):
    """Print one document, finding by finding."""
    stream.write('{"findings": [')
    for number, (finding, outcome) in enumerate(found):
        stream.write(",\n " if number else "\n ")
        json.dump({**finding.shown(), "outcome": outcome}, stream)
    stream.write("\n], \"summary\": ")
    json.dump(_summary(found, counts), stream)
    stream.write("}\n")


def _show_table(found, counts, stream):
    table = rich.table.Table(
        "kind", rich.table.Column("uuid", no_wrap=True), "finding", "correction")
    for finding, outcome in found:
        if len(table.rows) == _MOST_LINES:
            break
        table.add_row(finding.kind, finding.uuid, rich.markup.escape(_sentence(finding)),
                      rich.markup.escape(
                          outcome or finding.correction or f"none: {finding.obstacle}"))
    if table.rows:
        Console(file=stream).print(table)
    if len(found) > len(table.rows):
        print(f"and {len(found) - len(table.rows)} more; --format json has all of them",
              file=stream)
    numbers = ", ".join(f"{number} {kind}" for kind, number in found.counts.items() if number)
    print(f"Compared {counts.servers} servers with {counts.consumers} consumers of "
          f"{counts.providers} providers: {numbers or 'nothing is wrong'}", file=stream)
    for number, what in (
            (len(found) - found.wrong, "of these belong to moves that are under way"),
            (counts.recent, "were not judged, since they changed too recently (--margin)"),
            (counts.of_other_services, "consumers of other types were not judged")):
        if number:
            print(f"{number} {what}", file=stream)


def _sentence(finding):
    """Return a finding in words, with what it is about."""
    parts = [finding.detail]
    if finding.name:
        parts.append(f"provider {finding.name}")
    elif finding.held_on:
        parts.append(f"holds on {', '.join(finding.held_on)}")
    if finding.host:
        parts.append(f"nova's host is {finding.host}")
    return "; ".join(parts)
