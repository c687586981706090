# SPDX-License-Identifier: Apache-2.0
"""Writes rows to a database of OpenStack Placement, of the newest revision.

The rows are those of ``moving.rows``. Nothing else may write to the database meanwhile.
"""

import contextlib
import datetime
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence

import sqlalchemy as sa

from placement_rpc.db.placement import schema
from placement_rpc.db.placement.connection import unavailable

LOG = logging.getLogger(__name__)

# Placement gives ids from here on to custom classes, and reserves those below for standard ones.
_FIRST_CUSTOM_CLASS = 10000
# SQLAlchemy's names of one kind of database.
_MYSQL = ("mysql", "mariadb")
_NAMED = {"resource_classes": schema.resource_classes, "traits": schema.traits,
          "consumer_types": schema.consumer_types}
_INVENTORY_FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


class Refused(Exception):
    """The database cannot hold a row of a transaction."""


class Database:
    """A database that is written to.

    :param engine: :class:`sqlalchemy.Engine`
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._has_journal = False
        if engine.dialect.name in _MYSQL:
            sa.event.listen(engine, "connect", _allow_id_0)

    def begin(self) -> None:
        """Prepare for being read while it is written, once it is known to be the right one."""
        if self._engine.dialect.name == "sqlite":
            # Otherwise nothing could be committed while its rows are read.
            self._set_journal("WAL")
            self._has_journal = True

    def _set_journal(self, mode):
        with self._engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA journal_mode = {mode}")

    def close(self) -> None:
        """Close its connections."""
        if self._has_journal:
            try:
                self._set_journal("DELETE")
            except sa.exc.OperationalError as error:
                # Another process has it open. Placement can use it in this mode, too.
                LOG.warning("The database stays in the mode WAL: %s", error.orig)
        self._engine.dispose()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Return a transaction, committed at the end.

        :raises Refused: if the database cannot hold a row
        :raises StoreUnavailable: if it cannot be reached, or a statement fails
        """
        try:
            with self._engine.begin() as tx:
                yield tx
        except (sa.exc.IntegrityError, sa.exc.DataError) as error:
            raise Refused(str(error.orig)) from error
        except sa.exc.SQLAlchemyError as error:
            raise unavailable(error) from error


def is_single_precision(url: sa.URL) -> bool:
    """Return whether the database of a URL holds ratios in single precision."""
    return url.get_backend_name() in _MYSQL


def _allow_id_0(connection, _record):
    """Let the first resource class have its id, which is otherwise taken for "the next one"."""
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')")


class Writer:
    """Writes rows in transactions of the caller.

    :param standard_classes: dict of the name of each standard resource class to its id
    """

    def __init__(self, standard_classes: dict[str, int]) -> None:
        self._standard_classes = standard_classes
        # Dict of a table to the ids that its names have, for the tables with few rows.
        self._ids: dict[sa.Table, dict[str, int]] = {}

    def prepare(self, tx: sa.Connection) -> None:
        """Prepare an export.

        The standard resource classes that are missing are added, as Placement does when it starts.
        Consumers without allocations, which an interrupted export leaves, are removed.
        """
        table = schema.consumers
        tx.execute(sa.delete(table).where(sa.not_(sa.exists().where(
            schema.allocations.c.consumer_id == table.c.uuid))))
        self._class_ids(tx, self._standard_classes)

    # -- resource classes, traits and types ---------------------------------------------------

    def _names(self, tx, table):
        if table not in self._ids:
            self._ids[table] = dict(tx.execute(sa.select(table.c.name, table.c.id)).tuples().all())
        return self._ids[table]

    def _class_ids(self, tx, names):
        """Return the ids of resource classes by name, and add those that are missing."""
        table = schema.resource_classes
        ids = self._names(tx, table)
        missing = [name for name in dict.fromkeys(names) if name not in ids]
        if missing:
            free = max([_FIRST_CUSTOM_CLASS - 1, *ids.values()]) + 1
            custom = [name for name in missing if name not in self._standard_classes]
            new = {**{name: free + number for number, name in enumerate(custom)},
                   **{name: self._standard_classes[name] for name in missing
                      if name in self._standard_classes}}
            _insert(tx, table, [{"id": new[name], "name": name} for name in missing])
            ids.update(new)
        return ids

    def _name_ids(self, tx, table, names):
        """Return the ids of traits or types by name, and add those that are missing."""
        if table is schema.resource_classes:
            return self._class_ids(tx, names)
        ids = self._names(tx, table)
        missing = [name for name in dict.fromkeys(names) if name not in ids]
        if missing:
            _insert(tx, table, [{"name": name} for name in missing])
            del self._ids[table]
            ids = self._names(tx, table)
        return ids

    def add_names(self, tx: sa.Connection, kind: str, rows: Iterable) -> None:
        """Add resource classes, traits or types of consumers."""
        self._name_ids(tx, _NAMED[kind], [row.name for row in rows])

    def remove_names(self, tx: sa.Connection, kind: str, keys: Iterable) -> None:
        """Remove resource classes, traits or types of consumers that nothing refers to."""
        table = _NAMED[kind]
        tx.execute(sa.delete(table).where(table.c.name.in_([name for name, in keys])))
        self._ids.pop(table, None)

    # -- providers ----------------------------------------------------------------------------

    def has_providers(self, tx: sa.Connection) -> bool:
        """Return whether there are any providers."""
        return tx.execute(sa.select(schema.resource_providers.c.id).limit(1)).first() is not None

    def free_names(self, tx: sa.Connection, uuids: Iterable[str]) -> None:
        """Give providers names that no other has, so that others can have theirs."""
        table = schema.resource_providers
        tx.execute(sa.update(table).where(table.c.uuid.in_(list(uuids))).values(
            name=sa.literal("placement_rpc: ") + table.c.uuid))

    def detach(self, tx: sa.Connection, uuids: Iterable[str]) -> None:
        """Take providers out of their trees, so that any of them can be removed."""
        table = schema.resource_providers
        tx.execute(sa.update(table).where(table.c.uuid.in_(list(uuids))).values(
            parent_provider_id=None, root_provider_id=None))

    def add_providers(self, tx: sa.Connection, rows: Sequence) -> int:
        """Add those providers that are roots, and those whose parent and root are there.

        :returns: how many were not added, since their parent or root is not there yet
        """
        table = schema.resource_providers
        ids = _ids_of(tx, table, table.c.uuid, {
            uuid for row in rows for uuid in (row.parent, row.root) if uuid})
        ready = [row for row in rows
                 if row.root == row.uuid or (row.parent in ids and row.root in ids)]
        if ready:
            last = tx.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
            new = {row.uuid: last + number for number, row in enumerate(ready, 1)}
            _insert(tx, table, [{
                "id": new[row.uuid], "uuid": row.uuid, "name": row.name,
                "generation": row.generation,
                "parent_provider_id": row.parent and ids[row.parent],
                "root_provider_id": new[row.uuid] if row.root == row.uuid else ids[row.root],
                **_times(row)} for row in ready])
            _set_sequence(tx, table)
        return len(rows) - len(ready)

    def set_providers(self, tx: sa.Connection, rows: Sequence) -> None:
        """Set all values of providers that are there, as are their parents and roots."""
        table = schema.resource_providers
        ids = _ids_of(tx, table, table.c.uuid, {
            uuid for row in rows for uuid in (row.parent, row.root) if uuid})
        tx.execute(
            sa.update(table).where(table.c.uuid == sa.bindparam("of_uuid")).values(
                {column: sa.bindparam(f"new_{column}") for column in (
                    "name", "generation", "parent_provider_id", "root_provider_id",
                    "updated_at")}),
            [{"of_uuid": row.uuid, "new_name": row.name, "new_generation": row.generation,
              "new_parent_provider_id": row.parent and ids[row.parent],
              "new_root_provider_id": ids[row.root], "new_updated_at": row.updated_at}
             for row in rows])

    def remove_providers(self, tx: sa.Connection, keys: Iterable) -> None:
        """Remove providers that have nothing and that no other refers to."""
        table = schema.resource_providers
        tx.execute(sa.delete(table).where(table.c.uuid.in_([uuid for uuid, in keys])))

    # -- what providers have ------------------------------------------------------------------

    def _provider_ids(self, tx, uuids):
        return _ids_of(tx, schema.resource_providers, schema.resource_providers.c.uuid, uuids)

    def add_inventories(self, tx: sa.Connection, rows: Sequence) -> None:
        """Add inventories."""
        providers = self._provider_ids(tx, {row.provider for row in rows})
        classes = self._class_ids(tx, [row.resource_class for row in rows])
        _insert(tx, schema.inventories, [{
            "resource_provider_id": providers[row.provider],
            "resource_class_id": classes[row.resource_class],
            **{name: getattr(row, name) for name in _INVENTORY_FIELDS}, **_times(row)}
            for row in rows])

    def remove_inventories(self, tx: sa.Connection, keys: Sequence) -> None:
        """Remove inventories."""
        table = schema.inventories
        providers = self._provider_ids(tx, {provider for provider, _ in keys})
        classes = self._class_ids(tx, [name for _, name in keys])
        _delete(tx, table, (table.c.resource_provider_id, table.c.resource_class_id), [
            (providers[provider], classes[name]) for provider, name in keys])

    def add_provider_traits(self, tx: sa.Connection, rows: Sequence) -> None:
        """Give traits to providers."""
        providers = self._provider_ids(tx, {row.provider for row in rows})
        traits = self._name_ids(tx, schema.traits, [row.trait for row in rows])
        _insert(tx, schema.resource_provider_traits, [{
            "resource_provider_id": providers[row.provider], "trait_id": traits[row.trait],
            **_times(row)} for row in rows])

    def remove_provider_traits(self, tx: sa.Connection, keys: Sequence) -> None:
        """Take traits from providers."""
        table = schema.resource_provider_traits
        providers = self._provider_ids(tx, {provider for provider, _ in keys})
        traits = self._name_ids(tx, schema.traits, [name for _, name in keys])
        _delete(tx, table, (table.c.resource_provider_id, table.c.trait_id), [
            (providers[provider], traits[name]) for provider, name in keys])

    def add_provider_aggregates(self, tx: sa.Connection, rows: Sequence) -> None:
        """Put providers into aggregates."""
        providers = self._provider_ids(tx, {row.provider for row in rows})
        table = schema.placement_aggregates
        aggregates = _ensured(tx, table, table.c.uuid, [row.aggregate for row in rows])
        _insert(tx, schema.resource_provider_aggregates, [{
            "resource_provider_id": providers[row.provider],
            "aggregate_id": aggregates[row.aggregate], **_times(row)} for row in rows])

    def remove_provider_aggregates(self, tx: sa.Connection, keys: Sequence) -> None:
        """Take providers out of aggregates."""
        table = schema.resource_provider_aggregates
        providers = self._provider_ids(tx, {provider for provider, _ in keys})
        aggregates = _ids_of(tx, schema.placement_aggregates, schema.placement_aggregates.c.uuid,
                             {aggregate for _, aggregate in keys})
        _delete(tx, table, (table.c.resource_provider_id, table.c.aggregate_id), [
            (providers[provider], aggregates[aggregate]) for provider, aggregate in keys])

    # -- consumers and what they hold ---------------------------------------------------------

    def _references(self, tx, rows):
        """Return a function of a consumer that gives what it refers to, by column."""
        projects = _ensured(tx, schema.projects, schema.projects.c.external_id,
                            [row.project for row in rows])
        users = _ensured(tx, schema.users, schema.users.c.external_id, [row.user for row in rows])
        types = self._name_ids(tx, schema.consumer_types, [
            row.consumer_type for row in rows if row.consumer_type is not None])
        return lambda row: {
            "project_id": projects[row.project], "user_id": users[row.user],
            "consumer_type_id": row.consumer_type and types[row.consumer_type]}

    def add_consumers(self, tx: sa.Connection, rows: Sequence) -> None:
        """Add consumers."""
        references = self._references(tx, rows)
        _insert(tx, schema.consumers, [{
            "uuid": row.uuid, "generation": row.generation, **references(row), **_times(row)}
            for row in rows])

    def remove_consumers(self, tx: sa.Connection, keys: Iterable) -> None:
        """Remove consumers."""
        table = schema.consumers
        tx.execute(sa.delete(table).where(table.c.uuid.in_([uuid for uuid, in keys])))

    def add_allocations(self, tx: sa.Connection, rows: Sequence) -> None:
        """Add allocations."""
        providers = self._provider_ids(tx, {row.provider for row in rows})
        classes = self._class_ids(tx, [row.resource_class for row in rows])
        _insert(tx, schema.allocations, [{
            "consumer_id": row.consumer, "resource_provider_id": providers[row.provider],
            "resource_class_id": classes[row.resource_class], "used": row.used, **_times(row)}
            for row in rows])

    def remove_allocations(self, tx: sa.Connection, keys: Sequence) -> None:
        """Remove allocations."""
        table = schema.allocations
        providers = self._provider_ids(tx, {provider for _, provider, _ in keys})
        classes = self._class_ids(tx, [name for _, _, name in keys])
        _delete(tx, table, (table.c.consumer_id, table.c.resource_provider_id,
                            table.c.resource_class_id), [
            (consumer, providers[provider], classes[name])
            for consumer, provider, name in keys])


def _times(row):
    return {"created_at": row.created_at, "updated_at": row.updated_at}


def _insert(tx, table, values):
    if values and "created_at" not in values[0]:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
        values = [{"created_at": now, **each} for each in values]
    if values:
        tx.execute(sa.insert(table), values)


def _delete(tx, table, columns, keys):
    tx.execute(sa.delete(table).where(sa.tuple_(*columns).in_(keys)))


def _ids_of(tx, table, column, values: Collection[str]) -> dict[str, int]:
    """Return the ids of the rows that have these values in a column, by value."""
    return dict(tx.execute(sa.select(column, table.c.id).where(
        column.in_(list(values)))).tuples().all()) if values else {}


def _ensured(tx, table, column, values):
    """Return the ids of rows by the value of a column, and add those that are missing."""
    values = list(dict.fromkeys(values))
    ids = _ids_of(tx, table, column, values)
    missing = [value for value in values if value not in ids]
    if missing:
        _insert(tx, table, [{column.name: value} for value in missing])
        ids |= _ids_of(tx, table, column, missing)
    return ids


def _set_sequence(tx, table):
    """Let new rows have ids above those that were given."""
    if tx.dialect.name == "postgresql":
        tx.execute(sa.select(sa.func.setval(
            sa.func.pg_get_serial_sequence(table.name, "id"),
            sa.select(sa.func.max(table.c.id)).scalar_subquery())))
