# SPDX-License-Identifier: Apache-2.0
"""Import of a deployment's compute nodes into ``compute_nodes``, as nova stores them.

A node that the migration could not take is refused here, where the line that it comes from is
known.
"""

import dataclasses
import json

from placement_rpc import exception
from placement_rpc.accounting.outbox import written
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import changes, store
from placement_rpc.nova.changes import TrackerReport
from placement_rpc.nova.inventory import checked_devices, devices_by_class, inventories_of
from placement_rpc.nova.migration import Settings
from placement_rpc.objects import fields
from placement_rpc.objects.nova.compute_node import ComputeNode


@dataclasses.dataclass(slots=True)
class Imported:
    """The outcome of an import.

    :ivar imported: number of nodes that were inserted
    :ivar replaced: number of stored nodes that got the given values
    :ivar there: number of nodes that existed, and were not changed
    :ivar deleted: number of nodes that nova has deleted, and that were left out
    :ivar refused: list of tuples of a node's description and the error
    """

    imported: int = 0
    replaced: int = 0
    there: int = 0
    deleted: int = 0
    refused: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class _Given:
    """A node that is to be imported.

    :param label: str, where it comes from
    :param node: ComputeNode
    :param row: dict of every imported column to its value
    """

    label: str
    node: object
    row: dict

    @property
    def description(self):
        return _description(self.row["hypervisor_hostname"], self.row["host"], self.row["uuid"])


def of_lines(lines):
    """Parse JSON lines.

    :param lines: iterable of str, or of bytes in UTF-8, each an object as nova sends it or a
        mapping of columns
    :returns: iterator of tuples of a description, str, and the values, a dict, or the error
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(str(line, "utf-8") if isinstance(line, bytes) else line)
        except (ValueError, RecursionError) as error:
            values = exception.InvalidInput(what=f"line {number}", reason=str(error)[:200])
        if not isinstance(values, (dict, exception.InvalidInput)):
            values = exception.InvalidInput(
                what=f"line {number}", reason="it is not a JSON object")
        yield f"line {number}", values


class Import:
    """An import of nodes, batch by batch.

    :param database: :class:`placement_rpc.db.api.Database`
    :param options: ``conf.compute_nodes``
    :param is_contracted: bool, whether the schema has been contracted: there are no columns for
        capacity then, and the nodes become providers at once
    :param replace: bool, whether a stored node that is not migrated gets the given values
    :ivar done: :class:`Imported`, of all batches
    """

    def __init__(self, database, options, is_contracted=False, replace=False):
        self.done = Imported()
        self._database = database
        self._options = options
        self._is_contracted = is_contracted
        self._replace = replace
        # Dict of ("uuid", uuid) and ("name", name) to the label, the identity and the description
        # of the node that was given before.
        self._seen = {}

    def bring_in(self, batch):
        """Import nodes, in one transaction unless the schema has been contracted.

        :param batch: list of tuples, as of :func:`of_lines`
        """
        given = []
        for label, values in batch:
            try:
                if isinstance(values, Exception):
                    raise values
                if _is_deleted(values):
                    self.done.deleted += 1
                else:
                    given.append(self._accepted(label, values))
            except exception.PlacementException as error:
                self.done.refused.append((label, error))
        if self._is_contracted:
            for each in given:
                self._create(each)
        elif given:
            self._count(given, self._database.write(
                lambda tx: self._store(tx, given), "import"))

    def _accepted(self, label, values):
        """Return a node that the migration can take.

        :raises InvalidInput: if a value prevents its migration
        :raises ComputeNodeExists: if it was given before
        :raises ComputeNodeConflict: if it has the name or the uuid of another that was given
        """
        given = _Given(label, *_columns(values))
        _check(given, self._options)
        row = given.row
        keys = [("name", row["hypervisor_hostname"])]
        keys += [("uuid", row["uuid"])] if row["uuid"] else []
        identity = row["host"], row["hypervisor_hostname"], row["uuid"]
        for key in keys:
            if key not in self._seen:
                continue
            other_label, other, description = self._seen[key]
            if other == identity:
                raise exception.ComputeNodeExists(
                    node=f"{row['hypervisor_hostname']} on host {row['host']}")
            raise _conflict(given, f"{other_label} has the same {key[0]}: {description}")
        self._seen |= dict.fromkeys(keys, (label, identity, given.description))
        return given

    def _store(self, tx, given):
        """Insert and replace nodes; return the outcome of each, as of :meth:`_outcome_of`."""
        stored, names = _stored(tx, given)
        outcomes = [self._outcome_of(each, stored, names) for each in given]
        new = [each.row for each, outcome in zip(given, outcomes, strict=True)
               if outcome == "imported"]
        if new:
            queries.insert_many(tx, new)
        for each, outcome in zip(given, outcomes, strict=True):
            if isinstance(outcome, _Replaced):
                queries.update(tx, outcome.id, {
                    **each.row, "uuid": each.row["uuid"] or outcome.uuid})
        return outcomes

    def _create(self, each):
        """Make a node a provider, in a transaction of its own."""
        settings = Settings(self._options, migrates=True)

        def change(tx, outbox):
            outcome = self._outcome_of(each, *_stored(tx, [each]))
            if outcome == "imported":
                changes.create(tx, outbox, each.node, settings, TrackerReport(
                    each.row["shares_disk"], json.loads(each.row["pci_in_use"] or "null")))
            return [outcome]

        if not each.node.value("uuid"):
            each.node.uuid = fields.new_uuid()
        try:
            self._count([each], written(self._database, change))
        except exception.PlacementException as error:
            if error.retryable:
                raise
            self.done.refused.append((each.label, error))

    def _count(self, given, outcomes):
        for each, outcome in zip(given, outcomes, strict=True):
            if isinstance(outcome, Exception):
                self.done.refused.append((each.label, outcome))
            elif isinstance(outcome, _Replaced):
                self.done.replaced += 1
            elif outcome == "imported":
                self.done.imported += 1
            else:
                self.done.there += 1

    def _outcome_of(self, given, stored, names):
        """Return what is to be done with a node.

        :param stored: list of rows of nodes
        :param names: dict of the names of providers to their uuids
        :returns: ``imported`` or ``there``, :class:`_Replaced`, or the error
        """
        row = given.row
        alike = {each.id: each for each in stored if (
            (each.uuid and each.uuid == row["uuid"])
            or each.hypervisor_hostname == row["hypervisor_hostname"])}
        if len(alike) > 1:
            return _conflict(given, "these have its uuid or its name: " + "; ".join(
                _described(each) for each in alike.values()))
        for other in alike.values():
            return self._outcome_with(given, other)
        owner = names.get(row["hypervisor_hostname"])
        if owner not in (None, row["uuid"]):
            return _conflict(given, f"resource provider {owner} has its name")
        return "imported"

    def _outcome_with(self, given, other):
        """Return what is to be done with a node that has the uuid or the name of a stored one."""
        row = given.row
        is_same = (other.host, other.hypervisor_hostname) == (
            row["host"], row["hypervisor_hostname"]) and row["uuid"] in (None, other.uuid)
        if other.inventory_migrated_at is not None:
            return "there" if is_same else _conflict(
                given, f"it is stored as {_described(other)}, which is migrated already")
        if self._replace:
            return _Replaced(other.id, other.uuid)
        return "there" if is_same else _conflict(
            given, f"it is stored as {_described(other)}; --replace changes that")


@dataclasses.dataclass(frozen=True, slots=True)
class _Replaced:
    """The stored node that gets other values: its row id and its uuid, which may be None."""

    id: int
    uuid: str | None


def _description(name, host, uuid):
    return f"{name} on host {host} ({f'uuid {uuid}' if uuid else 'without a uuid'})"


def _described(stored):
    return _description(stored.hypervisor_hostname, stored.host, stored.uuid)


def _conflict(given, reason):
    return exception.ComputeNodeConflict(node=given.description, reason=reason)


def _is_deleted(values):
    """Return whether nova has deleted a node: its row stays, with a number other than 0.

    :raises InvalidInput: if ``deleted`` is neither a number nor a bool
    """
    data = values.get("nova_object.data", values)
    deleted = data.get("deleted") if isinstance(data, dict) else None
    if not isinstance(deleted, (int, type(None))):
        raise exception.InvalidInput(what="deleted", reason="it is neither a number nor a bool")
    return bool(deleted)


def _stored(tx, given):
    """Return the stored nodes, and the providers, that have uuids or names of given ones.

    :returns: tuple of a list of rows of nodes, and a dict of the names of providers to their uuids
    """
    uuids = {each.row["uuid"] for each in given if each.row["uuid"]}
    names = {each.row["hypervisor_hostname"] for each in given}
    found = {row.id: row for row in (*queries.of_uuids(tx, uuids), *queries.of_names(tx, names))}
    return list(found.values()), queries.taken_names(tx, names)


def _check(given, options):
    """Check that the migration can take a node.

    :raises InvalidInput: if it cannot; it names the field
    """
    for name in ("host", "hypervisor_hostname"):
        if not given.row[name]:
            raise exception.InvalidInput(
                what=f"compute node {given.node.label}", reason=f"{name}: it is missing")
    store.provider_name(given.node)
    # From the columns, as the migration reads it.
    inventories_of(ComputeNode.of_row(given.row), options, bool(given.row["shares_disk"]),
                   checked_devices(json.loads(given.row["pci_in_use"] or "null")))


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
    devices = values.get("pci_in_use")
    if devices:
        columns["pci_in_use"] = json.dumps(devices_by_class(devices), sort_keys=True)
    return node, columns
