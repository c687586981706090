# SPDX-License-Identifier: Apache-2.0
"""Connections to the database of OpenStack Placement.

A database is used only if its Alembic revision is one of :data:`schema.REVISIONS`: of another one
it is not known what its rows mean.
"""

import contextlib
import datetime
import functools
import importlib
import importlib.util

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import reading, urls
from placement_rpc.db.placement import schema

# Dict of the kind of database to the driver that is used unless the URL names one that is
# installed. Placement's own configuration may name others.
_DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
# Modules of the other drivers with which this project is tested.
_OTHERS = {"mysqldb": "MySQLdb"}

#: What errors call the URL of the database.
URL = "the URL of the database of OpenStack Placement"
# Characters of what a database says that are shown.
_LONGEST_CAUSE = 300

#: Revision of a database that has none of Placement's tables yet.
NOTHING = None


@contextlib.contextmanager
def engine(url):
    """Open Placement's database.

    :param url: str, SQLAlchemy URL; one that names a driver which is not installed is opened with
        another driver for the same kind of database
    :returns: context manager of :class:`sqlalchemy.Engine`
    :raises StoreUnavailable: if its kind is not supported, or there is no such file of SQLite
    """
    parsed = _with_driver(urls.parsed(url, URL))
    urls.check_driver(parsed)
    _check_file(parsed)
    with _errors():
        opened = sa.create_engine(
            parsed, poolclass=sa.NullPool, connect_args=_arguments(parsed))
    try:
        yield opened
    finally:
        opened.dispose()


def snapshot(opened):
    """Begin a transaction that only reads, and whose statements all see the same state.

    :param opened: of :func:`engine`
    :returns: context manager of :class:`sqlalchemy.Connection`
    :raises StoreUnavailable: if the database cannot be reached, or a statement fails
    """
    return reading.Reading(
        functools.partial(_connect, opened), _translate, opened.dialect.name, snapshot=True)


@contextlib.contextmanager
def writer(opened):
    """Begin a transaction that writes; it is committed at the end of the block.

    :param opened: of :func:`engine`
    :returns: context manager of :class:`sqlalchemy.Connection`
    :raises StoreUnavailable: if the database cannot be reached, or a statement fails
    """
    with _connect(opened) as connection:
        try:
            with connection.begin():
                yield connection
        except sa.exc.SQLAlchemyError as error:
            raise unavailable(error) from error


def check_revision(connection):
    """Return the revision of the schema.

    :raises NotPlacementDatabase: if it is not in :data:`schema.REVISIONS`
    """
    found = revision(connection)
    if found is NOTHING:
        raise exception.NotPlacementDatabase(
            reason="it has no table alembic_version; was 'placement-manage db sync' run?")
    if found not in schema.REVISIONS:
        known = ", ".join(f"{name} ({text})" for name, text in schema.REVISIONS.items())
        raise exception.NotPlacementDatabase(
            reason=f"its schema is at revision {found}, which is not known; there are {known}")
    missing = _missing_tables(connection, found)
    if missing:
        raise exception.NotPlacementDatabase(
            reason=f"it is at revision {found}, but has no table {', '.join(missing)}")
    return found


def revision(connection):
    """Return the Alembic revision of a database, a str; :data:`NOTHING` if it has none."""
    if not sa.inspect(connection).has_table(schema.alembic_version.name):
        return NOTHING
    found = connection.execute(sa.select(schema.alembic_version.c.version_num)).scalars().all()
    return ", ".join(sorted(found)) or NOTHING


def _missing_tables(connection, found):
    tables = set(sa.inspect(connection).get_table_names())
    return sorted(name for name in schema.metadata.tables if name not in tables and (
        name != schema.consumer_types.name or schema.has_consumer_types(found)))


def _check_file(url):
    """Check that a SQLite database exists: opening it would create an empty one."""
    path = urls.file_of(url)
    if path is not None and not path.exists():
        raise exception.StoreUnavailable(reason=f"there is no file {path}")


def _with_driver(url):
    kind, _, driver = url.drivername.partition("+")
    wanted = _DRIVERS.get(kind)
    if wanted is None or driver == wanted or (
            driver in _OTHERS and importlib.util.find_spec(_OTHERS[driver])):
        return url
    return url.set(drivername=f"{kind}+{wanted}")


def _arguments(url):
    if not url.drivername.endswith("+pymysql"):
        return {}
    # Imported here: the driver is an extra.
    converters = importlib.import_module("pymysql.converters")
    types = importlib.import_module("pymysql.constants.FIELD_TYPE")
    # Its own conversion of times takes as long as all else of a row.
    times = dict.fromkeys((types.DATETIME, types.TIMESTAMP), time_of)
    return {"conv": {**converters.conversions, **times}}


def time_of(text):
    """Return the datetime of a text as databases write it; None if it is none."""
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        # Empty for NULL, or the zero date, which MySQL has in modes that are not strict.
        return None


def _connect(opened):
    with _errors():
        return opened.connect()


def _translate(error, _connection):
    if isinstance(error, sa.exc.SQLAlchemyError):
        raise unavailable(error) from error


@contextlib.contextmanager
def _errors():
    """Translate the errors of making a connection, among them those of the URL's parameters."""
    try:
        yield
    except urls.PARAMETERS as error:
        raise urls.refused(error) from None
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        raise unavailable(error) from error


def unavailable(error):
    """Return the StoreUnavailable for an error of SQLAlchemy, or of a driver's import."""
    cause = " ".join(str(getattr(error, "orig", None) or "").split())[:_LONGEST_CAUSE]
    return exception.StoreUnavailable(
        reason=f"{type(error).__name__}, of the database of OpenStack Placement"
               + (f": {cause}" if cause else ""))
