# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage compute-nodes``: import of nova's compute nodes, and their correction."""

import contextlib
import datetime
import itertools
import sys

from placement_rpc import exception
from placement_rpc.cmd import output
from placement_rpc.db import migration, nova
from placement_rpc.nova import importer, inspection

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
                    "Existing nodes are not changed, and nodes that nova has deleted are left "
                    "out. A node that could not be migrated is refused, and so is one whose uuid "
                    "or name is that of another. Exits with 0 if all nodes are imported, exist or "
                    "are left out, and with 1 if some are refused; each of these is reported with "
                    "its line and its reason.")
    source = command.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", metavar="FILE",
                        help="JSON lines, each an object as nova sends it or a mapping of columns "
                             "(default: -, standard input)")
    source.add_argument("--from-database", metavar="URL",
                        help="SQLAlchemy URL of a nova cell database, whose tables compute_nodes "
                             "and pci_devices are read")
    command.add_argument("--replace", action="store_true",
                         help="give the values of the file to nodes that are stored and not "
                              "migrated yet, found by their uuid or name")
    _add_format(command)
    command.set_defaults(run=_import)
    text = "list the stored nodes, with the reason for which one cannot be migrated"
    command = commands.add_parser("list", help=text, description=text.capitalize())
    command.add_argument("--blocked", action="store_true",
                         help="only those that cannot be migrated")
    command.add_argument("--host", help="only those of this host")
    _add_format(command)
    command.set_defaults(run=_list)
    text = "show a stored node with all of its columns"
    command = commands.add_parser("show", help=text, description=text.capitalize())
    command.add_argument("node", metavar="NODE", help="id, uuid or hypervisor_hostname")
    _add_format(command)
    command.set_defaults(run=_show)
    text = "delete stored nodes that are not migrated"
    command = commands.add_parser(
        "delete", help=text, description=text.capitalize() + ". A migrated node is deleted by its "
                                                             "compute service.")
    command.add_argument("nodes", nargs="+", metavar="NODE",
                         help="id, uuid or hypervisor_hostname")
    command.set_defaults(run=_delete)


def _add_format(command):
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="default: a table on a terminal, JSON elsewhere")


def _import(database, options, conf):
    work = importer.Import(
        database, conf.compute_nodes, migration.is_contracted(database), options.replace)
    done, reported = work.done, 0
    with _given(options) as given, output.counter("Importing compute nodes") as advance:
        while batch := list(itertools.islice(given, _BATCH)):
            work.bring_in(batch)
            for label, error in done.refused[reported:]:
                print(f"{label}: {error}", file=sys.stderr)
            reported = len(done.refused)
            advance(len(batch))
    output.show([{
        "imported": done.imported, "replaced": done.replaced, "there_already": done.there,
        "deleted": done.deleted, "refused": len(done.refused)}],
        ["imported", "replaced", "there_already", "deleted", "refused"], options.format)
    return 1 if done.refused else 0


def _list(database, options, conf):
    rows = [{"id": row.id, "uuid": row.uuid, "host": row.host,
             "hypervisor_hostname": row.hypervisor_hostname,
             "migrated": row.inventory_migrated_at is not None,
             "obstacle": str(obstacle) if obstacle else None}
            for row, obstacle in inspection.listed(database, conf.compute_nodes, options.host)
            if obstacle or not options.blocked]
    output.show(rows, ["id", "uuid", "host", "hypervisor_hostname", "migrated", "obstacle"],
                options.format)
    return 0


def _show(database, options, conf):
    values, obstacle = inspection.shown(database, conf.compute_nodes, options.node)
    values = {name: value.isoformat() if isinstance(value, datetime.datetime) else value
              for name, value in values.items()}
    output.show([{"column": name, "value": value} for name, value in {
        **values, "obstacle": str(obstacle) if obstacle else None}.items()],
        ["column", "value"], options.format)
    return 0


def _delete(database, options, _conf):
    code = 0
    for text in options.nodes:
        try:
            row = inspection.delete(database, text)
        except (exception.NotFound, exception.Conflict) as error:
            print(f"placement-rpc-manage: {error}", file=sys.stderr)
            code = 1
        else:
            print(f"Deleted compute node {row.hypervisor_hostname} on host {row.host} "
                  f"(id {row.id})")
    return code


@contextlib.contextmanager
def _given(options):
    if options.from_database:
        yield ((f"row {values['id']}", values)
               for values in nova.compute_nodes(options.from_database))
    elif options.file in (None, "-"):
        yield importer.of_lines(sys.stdin)
    else:
        # Bytes, so that a line that is not UTF-8 is refused, and the others are not.
        with open(options.file, "rb") as file:
            yield ((f"{options.file}, {label}", values)
                   for label, values in importer.of_lines(file))
