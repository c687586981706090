# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage compute-nodes``: import of nova's compute nodes, and their correction."""

import contextlib
import datetime
import itertools
import sys

from placement_rpc import exception
from placement_rpc.cmd import output
from placement_rpc.db import nova, schema_version
from placement_rpc.nova import importer, inspection

_BATCH = 200


def import_nodes(database, options, conf):
    work = importer.Import(
        database, conf.compute_nodes, schema_version.is_contracted(database), options.replace)
    done, reported = work.done, 0
    with _given(options) as given, output.interruptible(
            "placement-rpc-manage", lambda: f"{done.imported} compute nodes are imported",
            "run it again to go on"), output.progress("Importing compute nodes") as advance:
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


def list_nodes(database, options, conf):
    rows = [{"id": row.id, "uuid": row.uuid, "host": row.host,
             "hypervisor_hostname": row.hypervisor_hostname,
             "migrated": row.inventory_migrated_at is not None,
             "obstacle": str(obstacle) if obstacle else None}
            for row, obstacle in inspection.listed(database, conf.compute_nodes, options.host)
            if obstacle or not options.blocked]
    output.show(rows, ["id", "uuid", "host", "hypervisor_hostname", "migrated", "obstacle"],
                options.format,
                empty="No such compute nodes are stored: 'compute-nodes import' brings in nova's, "
                      "and compute services report their own.")
    return 0


def show(database, options, conf):
    values, obstacle = inspection.shown(database, conf.compute_nodes, options.node)
    values = {name: value.isoformat() if isinstance(value, datetime.datetime) else value
              for name, value in values.items()}
    output.show([{"column": name, "value": value} for name, value in {
        **values, "obstacle": str(obstacle) if obstacle else None}.items()],
        ["column", "value"], options.format)
    return 0


def delete(database, options, _conf):
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
        yield importer.of_lines(getattr(sys.stdin, "buffer", sys.stdin))
    else:
        # Bytes here too: a line that is not UTF-8 is refused, and the others are not.
        with open(options.file, "rb") as file:
            yield ((f"{options.file}, {label}", values)
                   for label, values in importer.of_lines(file))
