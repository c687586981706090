# SPDX-License-Identifier: Apache-2.0
"""Transactions on one database.

A :class:`Database` is made from a configuration and handed around; there is no global one.
The engine, its pool, its options and its error classes are oslo.db's. Its enginefacade is not
used: it keeps state per process, works through ORM sessions, and offers no way to begin a
SQLite transaction as a writer, without which concurrent writers fail at once (upstream bug
reports of "database is locked"; measured 104 failures of 300).
"""

import contextlib
import logging
import math
import time

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines
from sqlalchemy.engine import make_url

from placement_rpc import exception
from placement_rpc.backoff import Backoff
from placement_rpc.conf import service as service_options
from placement_rpc.telemetry.spans import span

LOG = logging.getLogger(__name__)

# Set in a connection's info by the query that writes events.
EVENTS_WRITTEN = "placement_events_written"
# In a connection's info: the versions at which objects are stored.
VERSIONS = "placement_versions"
# In a connection's info: whether capacity may be put below what is allocated.
MAY_OVERFILL = "placement_may_overfill"

#: A connection inside a transaction: what the queries take.
Connection = sa.Connection

_SQLITE_BUSY_TIMEOUT_MS = 30_000
_SQLITE_KEPT = 8

# Seconds, and where a connection says since when.
_IDLE = 1.0
_USED_AT = "placement_used_at"

# What two writers can do to each other; the loser starts again.
_COLLISIONS = (db_exc.DBDeadlock, db_exc.DBDuplicateEntry, db_exc.DBReferenceError)
# Seconds of the pauses after a collision: the first at the most, and any.
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5


class Stale(Exception):
    """A compare-and-swap found another value than the one that was read."""


class Database:
    """One database and its pool of connections.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :raises StoreUnavailable: when it can not be reached
    """

    def __init__(self, conf):
        options = service_options.register(conf).database
        self.max_attempts = conf.claims.max_attempts
        #: dict of object name to the version at which objects are stored; None for this release's
        self.versions = None
        self._may_overfill = conf.claims.allow_capacity_below_use
        self._after_commit = []
        self._sqlite = _is_sqlite(options.connection)
        # oslo.db keeps no pool of SQLite's connections, and takes no options for one.
        pool = {} if self._sqlite else {
            "max_pool_size": options.max_pool_size, "max_overflow": options.max_overflow,
            "pool_timeout": options.pool_timeout}
        try:
            self.engine = engines.create_engine(
                options.connection, sqlite_fk=True,
                mysql_sql_mode=options.mysql_sql_mode,
                connection_recycle_time=options.connection_recycle_time,
                max_retries=options.max_retries, retry_interval=options.retry_interval,
                thread_checkin=False, sqlite_synchronous=options.sqlite_synchronous,
                connection_debug=options.connection_debug, **pool)
        except (db_exc.DBError, db_exc.CantStartEngineError, sa.exc.SQLAlchemyError,
                ImportError) as error:
            raise _unavailable(error) from error
        if self._sqlite:
            self.engine.pool = _pool_of_files(self.engine)
        else:
            _ping_what_was_idle(self.engine)
        sa.event.listen(self.engine, "connect", _CONNECT.get(self.engine.dialect.name, _nothing))
        # The test connection was made before the listener stood.
        self.engine.dispose()

    @property
    def dialect(self):
        """str: ``sqlite``, ``postgresql`` or ``mysql``"""
        return self.engine.dialect.name

    @contextlib.contextmanager
    def reader(self):
        """A transaction that only reads.

        :returns: a context manager giving a :class:`sqlalchemy.Connection`
        :raises StoreUnavailable: when the database can not be reached
        """
        with span("database"), self._connect() as connection:
            if self.dialect == "postgresql":
                # What is committed is seen by the next statement either way, and there is nothing
                # to commit: a round trip less.
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def writer(self):
        """A transaction that writes: committed at the end of the block, or undone.

        On SQLite it holds the database's one write lock from its start, so that what it
        reads stays true until it commits; elsewhere rows are locked by the queries.

        :returns: a context manager giving a :class:`sqlalchemy.Connection`
        :raises StoreUnavailable: when the database can not be reached
        """
        with span("database"), self._connect() as connection:
            if self._sqlite:
                # oslo.db's listener begins a transaction unless it is told there is one.
                connection.info["in_transaction"] = True
            with connection.begin():
                if self._sqlite:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection

    @contextlib.contextmanager
    def _connect(self):
        """A connection of the pool; the loss of it is the error that says to try again."""
        try:
            with span("waiting for a connection"):
                connection = self.engine.connect()
        except (db_exc.DBError, sa.exc.SQLAlchemyError) as error:
            raise _unavailable(error) from error
        with connection:
            try:
                yield connection
            except db_exc.DBConnectionError as error:
                raise _unavailable(error) from error
            except db_exc.DBError as error:
                if connection.closed or connection.invalidated or _says_lost(error):
                    raise _unavailable(error) from error
                raise
            except sa.exc.OperationalError as error:
                if connection.closed or connection.invalidated or _says_lost(error):
                    raise _unavailable(error) from error
                # Locked for too long, or cancelled: undone, and worth another try.
                LOG.warning("The database gave up a transaction: %s", error)
                raise exception.StoreBusy(method="a transaction", attempts=1) from error

    def after_events(self, call):
        """Have something called, without arguments, when :meth:`write` committed events."""
        self._after_commit.append(call)

    def write(self, change, method="change"):
        """Run ``change`` in a writer transaction, again when concurrent writers collide.

        :param change: callable that takes the connection; run anew on each attempt
        :param method: str, named when giving up
        :returns: what ``change`` returned in the attempt that was committed
        :raises StoreBusy: after ``[claims] max_attempts`` collisions; nothing was done
        """
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=1)
        for attempt in range(self.max_attempts):
            try:
                with self.writer() as connection:
                    connection.info.pop(EVENTS_WRITTEN, None)
                    connection.info[VERSIONS] = self.versions
                    connection.info[MAY_OVERFILL] = self._may_overfill
                    result = change(connection)
                    told = connection.info.pop(EVENTS_WRITTEN, False)
                for call in self._after_commit if told else ():
                    call()
                return result
            except (*_COLLISIONS, Stale) as error:
                LOG.debug("Attempt %d of %s collided: %s", attempt + 1, method, error)
                if isinstance(error, db_exc.DBReferenceError) and attempt > 1:
                    # Not a race but a reference that really is missing.
                    raise
                time.sleep(backoff.next())
        raise exception.StoreBusy(method=method, attempts=self.max_attempts)

    def close(self):
        """Close the connections of the pool."""
        self.engine.dispose()


def _pool_of_files(engine):
    """A pool of a SQLite engine's connections.

    To open the file anew for each transaction takes longer than a short one does: 0.5 of the
    1.5 ms of a GET over HTTP. Nobody waits for a connection: there are as many as are in use.
    """
    return sa.pool.QueuePool(
        engine.pool._creator, pool_size=_SQLITE_KEPT, max_overflow=-1, dialect=engine.dialect,
        _dispatch=engine.pool.dispatch)


def _ping_what_was_idle(engine):
    """Look whether a connection is alive when nobody used it for a while, rather than always.

    It was a third of the time of a short read. One that breaks while it is busy is an error that
    says to try again, as one is that breaks after the look.
    """
    engine.pool._pre_ping = False

    def returned(_connection, record):
        record.info[_USED_AT] = time.monotonic()

    def taken(connection, record, _proxy):
        if time.monotonic() - record.info.get(_USED_AT, math.inf) < _IDLE:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise sa.exc.DisconnectionError from error

    sa.event.listen(engine, "checkin", returned)
    sa.event.listen(engine, "checkout", taken)


def _is_sqlite(url):
    """:raises StoreUnavailable: when the text is no address of a database"""
    try:
        return make_url(url).get_backend_name() == "sqlite"
    except sa.exc.ArgumentError as error:
        raise exception.StoreUnavailable(
            reason="[database] connection is not set or is no SQLAlchemy URL") from error


def _unavailable(error):
    # The driver's own words may name hosts and users: they go to the log, not to the caller.
    LOG.warning("The database can not be reached: %s", error)
    return exception.StoreUnavailable(reason=type(error).__name__)


# Words with which servers end a session that oslo.db 18 does not class as a disconnect.
_LOST = ("terminating connection", "server closed the connection", "is starting up",
         "is shutting down", "connection is lost", "consuming input failed",
         "lost connection", "gone away", "connection refused")


def _says_lost(error):
    return any(words in str(error).lower() for words in _LOST)


def _sqlite_connect(connection, _record):
    connection.execute(f"PRAGMA busy_timeout = {_SQLITE_BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA journal_mode = WAL")


def _mysql_connect(connection, _record):
    # Each statement must see what was committed before it, as on PostgreSQL: the rows that
    # follow from a lock are read after waiting for it.
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")


def _postgresql_connect(connection, _record):
    # Every statement of this service has an index to go by. The server keeps plans, its own for
    # foreign keys among them; made while a table was small, they would read all of it for as
    # long as nobody analysed it: 47 ms instead of 2 for the allocations of a batch of 100.
    connection.execute("SET enable_seqscan = off")
    # Compiling a query takes longer than any of these runs.
    connection.execute("SET jit = off")
    connection.commit()


def _nothing(_connection, _record):
    """Nothing to set on this database."""


_CONNECT = {"sqlite": _sqlite_connect, "postgresql": _postgresql_connect,
            "mysql": _mysql_connect, "mariadb": _mysql_connect}
