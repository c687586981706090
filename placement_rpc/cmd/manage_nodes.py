# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage compute-nodes``: import of nova's compute nodes."""

import contextlib
import itertools
import sys

from placement_rpc.cmd import output
from placement_rpc.db import migration, nova
from placement_rpc.nova import importer

_BATCH = 200


def add_commands(groups):
    """Add the group to the parser.

    :param groups: what ``add_subparsers`` of the program returned
    """
    commands = groups.add_parser("compute-nodes", help="nova's compute nodes").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "import", help="import a deployment's compute nodes",
        description="Import a deployment's compute nodes as nova stores them. They become "
                    "providers by 'db online_data_migrations', or when they are first read. "
                    "Existing nodes are not changed. Exits with 0 if all nodes are imported or "
                    "exist, and with 1 if some are refused; each of these is reported with its "
                    "reason.")
    source = command.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", metavar="FILE",
                        help="JSON lines, each an object as nova sends it or a mapping of columns "
                             "(default: -, standard input)")
    source.add_argument("--from-database", metavar="URL",
                        help="SQLAlchemy URL of a nova cell database, whose tables compute_nodes "
                             "and pci_devices are read")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="default: a table on a terminal, JSON elsewhere")
    command.set_defaults(run=_import)


def _import(database, options, conf):
    migration.check(database)
    done, seen = importer.Imported(), set()
    at_once = conf.compute_nodes if migration.is_contracted(database) else None
    with _given(options) as given, output.counter("Importing compute nodes") as advance:
        while batch := list(itertools.islice(given, _BATCH)):
            one = importer.bring_in(database, batch, seen, at_once)
            done.imported += one.imported
            done.there += one.there
            done.refused += one.refused
            for label, error in one.refused:
                print(f"{label}: {error}", file=sys.stderr)
            advance(len(batch))
    columns = ["imported", "there_already", "refused"]
    output.show([dict(zip(columns, (done.imported, done.there, len(done.refused)),
                          strict=True))], columns, options.format)
    return 1 if done.refused else 0


@contextlib.contextmanager
def _given(options):
    if options.from_database:
        yield ((f"row {values['id']}", values)
               for values in nova.compute_nodes(options.from_database))
    elif options.file in (None, "-"):
        yield importer.of_lines(sys.stdin)
    else:
        with open(options.file, encoding="utf-8") as file:
            yield importer.of_lines(file)
