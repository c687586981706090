# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement export``: write the store to a database of Placement."""

import functools
import sys

from placement_rpc.cmd import output, placement_url
from placement_rpc.moving import exporting

_COLUMNS = ["kind", "added", "changed", "removed"]
_FINDINGS = ["what", "kind", "key", "done"]
_BATCH = 1000


def add_command(commands):
    """Add the command to the group.

    :param commands: the sub-parsers of the group
    """
    text = "write the store to a database of OpenStack Placement"
    command = commands.add_parser(
        "export", help=text,
        description=text.capitalize() + ", as the way back. The database is empty, with the "
                    "tables of 'placement-manage db sync', or one that an earlier export has "
                    "filled: then only what has changed since is written, so that the last export, "
                    "with this service stopped, takes seconds. An export that was interrupted is "
                    "run again. A database that anything else has changed is refused. At the end "
                    "all rows are compared. Exits with 1 if they differ.")
    placement_url.add_arguments(command, "to", "the database of OpenStack Placement to write to")
    command.add_argument("--finish", action="store_true",
                         help="make it the last export: afterwards the database has no trace of "
                              "it, and is refused by another one")
    command.add_argument("--batch", type=_positive, default=_BATCH, metavar="N",
                         help="rows that are written in one transaction (default: %(default)s)")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="default: a table on a terminal, JSON elsewhere")
    command.set_defaults(run=_export)


def _positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _export(database, options, _conf):
    with output.counter("Exporting rows") as advance:
        done = exporting.export(
            database, placement_url.url_of(options, "to"), options.batch, options.finish,
            lambda _kind, number: advance(number))
    for finding in done.findings:
        print(f"{finding.what}: {finding.kind} {'/'.join(finding.key)}: {finding.done}",
              file=sys.stderr)
    output.show([{"kind": kind, "added": done.written[kind, "added"],
                  "changed": done.written[kind, "changed"],
                  "removed": done.written[kind, "gone"]} for kind in done.kinds],
                _COLUMNS, options.format)
    return 0
