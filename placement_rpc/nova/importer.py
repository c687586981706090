# SPDX-License-Identifier: Apache-2.0
"""Import of a deployment's compute nodes into ``compute_nodes``, as nova stores them."""

import dataclasses
import json

from placement_rpc import exception
from placement_rpc.accounting.outbox import written
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import changes, store
from placement_rpc.nova.changes import TrackerReport
from placement_rpc.nova.inventory import devices_by_class
from placement_rpc.nova.migration import Settings
from placement_rpc.objects import fields
from placement_rpc.objects.nova.compute_node import ComputeNode


@dataclasses.dataclass(slots=True)
class Imported:
    """The outcome of an import.

    :ivar imported: number of nodes that were inserted
    :ivar there: number of nodes that existed
    :ivar refused: list of tuples of a node's description and the error
    """

    imported: int = 0
    there: int = 0
    refused: list = dataclasses.field(default_factory=list)


def of_lines(lines):
    """Parse JSON lines.

    :param lines: iterable of str, each an object as nova sends it or a mapping of columns
    :returns: iterator of tuples of a description, str, and the values, a dict, or the error
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            values = exception.InvalidInput(what=f"line {number}", reason=str(error)[:200])
        if not isinstance(values, (dict, exception.InvalidInput)):
            values = exception.InvalidInput(
                what=f"line {number}", reason="it is not a JSON object")
        yield f"line {number}", values


def bring_in(database, given, seen, options=None):
    """Insert nodes in one transaction; existing nodes are not changed.

    :param given: list of tuples, as of :func:`of_lines`
    :param seen: set of the keys of the nodes given before, to which these are added; a node that
        is given twice is refused
    :param options: ``conf.compute_nodes`` if the schema has been contracted: there are no columns
        for capacity then, and the nodes become providers at once. None otherwise
    :returns: :class:`Imported`
    """
    done, rows = Imported(), []
    for label, values in given:
        try:
            if isinstance(values, Exception):
                raise values
            node, row = _columns(values)
            keys = {("uuid", row["uuid"])} if row["uuid"] else set()
            keys.add(("name", row["host"], row["hypervisor_hostname"]))
            if keys & seen:
                raise exception.ComputeNodeExists(
                    node=f"{row['hypervisor_hostname']} on host {row['host']}")
            seen |= keys
            rows.append((label, node, row))
        except exception.PlacementException as error:
            done.refused.append((label, error))
    if rows and options is None:
        done.imported = database.write(lambda tx: _insert(tx, [row for *_, row in rows]), "import")
    else:
        _create(database, rows, options, done)
    done.there = len(given) - done.imported - len(done.refused)
    return done


def _create(database, rows, options, done):
    """Make providers of nodes, each in a transaction of its own."""
    settings = Settings(options, migrates=True)
    for label, node, row in rows:
        def change(tx, outbox, node=node, row=row):
            if not _new(tx, [row]):
                return 0
            changes.create(tx, outbox, node, settings, TrackerReport(
                row["shares_disk"], json.loads(row["pci_in_use"] or "null")))
            return 1

        if not node.value("uuid"):
            node.uuid = fields.new_uuid()
        try:
            done.imported += written(database, change)
        except exception.PlacementException as error:
            if error.retryable:
                raise
            done.refused.append((label, error))


def _columns(values):
    """Return the object of a node, and a dict of every imported column to its value."""
    node = ComputeNode.of_row(values)
    columns = dict.fromkeys((*queries.COLUMNS, *queries.CAPACITY))
    for name in ("id", "inventory_migrated_at", "created_at", "updated_at"):
        del columns[name]
    columns |= store.columns_of(node)
    if node.value("uuid") is not None:
        columns["uuid"] = fields.Uuid().coerce(
            None, f"compute node {node.label}: uuid", node.uuid)
    shares = values.get("shares_disk")
    columns["shares_disk"] = bool(shares) if shares is not None else None
    in_use = values.get("pci_in_use")
    if in_use:
        columns["pci_in_use"] = json.dumps(devices_by_class(in_use), sort_keys=True)
    return node, columns


def _insert(tx, rows):
    """Insert the nodes that do not exist; return their number."""
    new = _new(tx, rows)
    if new:
        queries.insert_many(tx, new)
    return len(new)


def _new(tx, rows):
    """Return the rows of nodes that do not exist, as a list."""
    known = {row.uuid for row in queries.of_uuids(tx, [
        row["uuid"] for row in rows if row["uuid"]])}
    names = queries.names(tx, {row["hypervisor_hostname"] for row in rows})
    return [row for row in rows if row["uuid"] not in known and (
        row["host"], row["hypervisor_hostname"]) not in names]
