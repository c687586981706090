# SPDX-License-Identifier: Apache-2.0
"""Transactions on one database.

A :class:`Database` is made from a configuration and passed as an argument; there is no global
one. The engine, its pool and its options are oslo.db's. oslo.db's enginefacade is not used: it
keeps state per process, works through ORM sessions, and offers no way to begin a SQLite
transaction as a writer, without which concurrent writers fail at once (upstream bug reports of
"database is locked"; measured 104 failures of 300).
"""

import contextlib
import logging
import math
import os
import time

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines

from placement_rpc import exception
from placement_rpc.backoff import Backoff
from placement_rpc.conf import placement
from placement_rpc.conf import service as service_options
from placement_rpc.db import errors, galera, reading, sessions, urls
from placement_rpc.telemetry.spans import span

LOG = logging.getLogger(__name__)

# Key of a connection's info: set by the query that writes events.
EVENTS_WRITTEN = "placement_events_written"
# Key of a connection's info: set when the transaction has found that changes are accepted.
HOLD_CHECKED = "placement_hold_checked"
# Key of a connection's info: the versions at which objects are stored.
VERSIONS = "placement_versions"
# Key of a connection's info: whether capacity may be set below the allocated amount.
MAY_OVERFILL = "placement_may_overfill"

#: A connection inside a transaction: what the queries take.
Connection = sa.Connection

_SQLITE_POOL_SIZE = 8

# Seconds after which a connection of the pool is pinged before it is used again.
_IDLE = 1.0
# Key of a pool record's info: when the connection was returned, by the monotonic clock.
_USED_AT = "placement_used_at"
# The same of its plans: when the session began to make them.
_PLANNED_AT = "placement_planned_at"

# Seconds of the pauses after a collision: the first at the most, and any.
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.5


class Stale(Exception):
    """A compare-and-swap found another value than the one that was read."""


class Locked(Exception):
    """Another transaction kept a row locked for longer than ``[transactions] lock_timeout``."""


class Database:
    """One database and its pool of connections.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param connections: int, the most connections; None for ``[database] max_pool_size``
    :param create: bool, whether a SQLite file that does not exist is created
    :raises StoreUnavailable: when the database cannot be reached, or its kind or its driver is
        not supported
    """

    #: Seconds for which PostgreSQL may keep a session's plans. Lower costs more planning; higher
    #: costs more while a new store grows: at 5.0 a claim in a batch takes three times as much of
    #: the server's processor time in ``make bench QUICK=1 ONLY=claims``.
    plan_lifetime = 1.0

    def __init__(self, conf, connections=None, create=False):
        options = service_options.register(conf).database
        self.max_attempts = placement.attempts(conf)
        #: callable that returns a dict of object name to the version at which objects are stored;
        #: None for the versions of this release
        self.versions = lambda: None
        self._may_overfill = conf.claims.allow_capacity_below_use
        self._is_causal = conf.transactions.causal_reads
        self._after_commit = []
        url = urls.parsed(options.connection)
        urls.check_driver(url)
        if create:
            _create_private_file(urls.file_of(url))
        else:
            urls.check_file(url, "; 'placement-rpc-manage db sync' makes it")
        self._sqlite = url.get_backend_name() == "sqlite"
        # oslo.db keeps no pool of SQLite's connections, and takes no options for one.
        pool = {} if self._sqlite else {
            "max_pool_size": connections or options.max_pool_size,
            "max_overflow": 0 if connections else options.max_overflow,
            "pool_timeout": options.pool_timeout}
        try:
            self.engine = engines.create_engine(
                urls.with_limits(url, conf.transactions.answer_timeout), sqlite_fk=True,
                mysql_sql_mode=options.mysql_sql_mode,
                connection_recycle_time=options.connection_recycle_time,
                max_retries=options.max_retries, retry_interval=options.retry_interval,
                thread_checkin=False, sqlite_synchronous=options.sqlite_synchronous,
                connection_debug=options.connection_debug, **pool)
        except (db_exc.DBError, db_exc.CantStartEngineError, sa.exc.SQLAlchemyError,
                ImportError) as error:
            raise _unavailable(error) from error
        except urls.PARAMETERS as error:
            raise urls.refused(error) from None
        if self._sqlite:
            self.engine.pool = _pool_of_files(self.engine)
        else:
            self._check_on_checkout()
        sessions.prepare(self.engine, conf.transactions)
        # oslo.db's test connection was made before the listeners were added.
        self.engine.dispose()

    @property
    def dialect(self):
        """The database's kind, str: ``sqlite``, ``postgresql`` or ``mysql``"""
        return self.engine.dialect.name

    def reader(self, snapshot=False, causal=True):
        """Begin a transaction that only reads.

        :param snapshot: bool, whether all statements see the same state, that of the first
        :param causal: bool, whether it sees all that was committed before on the other nodes of
            a Galera cluster. It costs an answer of one of them; what is read again and again, or
            shown to an operator, can do without.
        :returns: a context manager whose value is a :class:`sqlalchemy.Connection`
        :raises StoreUnavailable: when the database cannot be reached
        :raises StoreBusy: when the database cancelled a statement that waited or ran too long
        """
        return reading.Reading(self._check_out, _raise_for_reader, self.dialect, snapshot,
                               causal and self._is_causal)

    @contextlib.contextmanager
    def writer(self):
        """Begin a transaction that writes: committed at the end of the block, or rolled back.

        On SQLite it holds the database's one write lock from its start, so that what it
        reads stays true until it commits; on the other databases the queries lock rows.

        :returns: a context manager whose value is a :class:`sqlalchemy.Connection`
        :raises StoreUnavailable: when the database cannot be reached
        :raises StoreBusy: when the database cancelled a statement that waited or ran too long
        """
        with _busy_if_locked(), self._writer() as connection:
            yield connection

    @contextlib.contextmanager
    def _writer(self):
        """As :meth:`writer`, but raise :class:`Locked` if a row stays locked."""
        with span("database"), self._connect() as connection:
            if self._sqlite:
                # oslo.db's listener begins a transaction unless this says that there is one.
                connection.info["in_transaction"] = True
            with connection.begin():
                if self._sqlite:
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection

    @contextlib.contextmanager
    def _connect(self):
        """Take a connection from the pool; translate errors that end its use."""
        with self._check_out() as connection:
            try:
                yield connection
            except errors.DATABASE_ERRORS as error:
                _raise_translated(error, connection)
                raise

    def _check_out(self):
        """Return a connection from the pool.

        :raises StoreUnavailable: when the database cannot be reached
        """
        try:
            with span("waiting for a connection"):
                return self.engine.connect()
        except (db_exc.DBError, sa.exc.SQLAlchemyError) as error:
            raise _unavailable(error) from error

    def _check_on_checkout(self):
        """Ping a connection of the pool only if it was idle for a while, rather than always.

        The ping was a third of the time of a short read. A connection that breaks in use is an
        error that asks the client to retry, as is one that breaks after the ping.
        """
        self.engine.pool._pre_ping = False
        ping, error_class = self.engine.dialect.do_ping, self.engine.dialect.loaded_dbapi.Error

        def returned(_connection, record):
            record.info[_USED_AT] = time.monotonic()

        def connected(_connection, record):
            record.info[_PLANNED_AT] = time.monotonic()

        def taken(connection, record, _proxy):
            at = time.monotonic()
            try:
                if at - record.info.get(_PLANNED_AT, math.inf) > self.plan_lifetime:
                    _discard_plans(connection, record)
                elif at - record.info.get(_USED_AT, math.inf) >= _IDLE:
                    ping(connection)
            except error_class as error:
                # The pool's other connections are as old, and each would take as long.
                raise sa.exc.InvalidatePoolError from error

        if self.dialect == "postgresql":
            sa.event.listen(self.engine, "connect", connected)
        sa.event.listen(self.engine, "checkin", returned)
        sa.event.listen(self.engine, "checkout", taken)

    def after_events(self, call):
        """Register a callable without arguments to be called after :meth:`write` commits events.
        """
        self._after_commit.append(call)

    def write(self, change, method="change", waits=True):
        """Run ``change`` in a writer transaction; retry it when concurrent writers collide.

        It is also retried once if its session ends before COMMIT. That happens when the server
        restarts or fails over, and when this process pauses for longer than ``[transactions]
        idle_timeout``.

        :param change: callable that takes the connection; called once per attempt
        :param method: str, named in the error after the last attempt
        :param waits: bool, whether to retry it too if a row stays locked
        :returns: the result of ``change`` in the attempt that was committed
        :raises StoreBusy: after ``[claims] max_attempts`` collisions; nothing was done
        :raises Locked: if a row stays locked, and ``waits`` is false; nothing was done
        :raises StoreUnavailable: when the database cannot be reached. If the connection was lost
            during COMMIT, the change may have been made
        :raises oslo_db.exception.DBReferenceError: if the last attempt still refers to a row that
            does not exist, or deletes one that is referred to; nothing was done
        """
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, jitter=1)
        versions = self.versions()
        was_lost = False
        for attempt in range(self.max_attempts):
            # Whether the transaction has begun, and its COMMIT has not been sent.
            is_open = False
            try:
                with self._writer() as connection:
                    is_open = True
                    self._prepare(connection, versions)
                    # After a collision what the other transaction has written is needed, which may
                    # not have been applied on this node yet.
                    galera.wait_for_others(connection, self._is_causal or attempt)
                    result = change(connection)
                    has_events = connection.info.pop(EVENTS_WRITTEN, False)
                    is_open = False
                for call in self._after_commit if has_events else ():
                    call()
                return result
            except exception.StoreUnavailable as error:
                if not is_open or was_lost:
                    raise
                was_lost = True
                LOG.debug("Attempt %d of %s was lost: %s", attempt + 1, method, error)
            except Locked as error:
                if not waits:
                    raise
                LOG.debug("Attempt %d of %s met a locked row: %s", attempt + 1, method,
                          error.__cause__)
            except (*errors.DATABASE_ERRORS, Stale) as error:
                if not self._is_collision(error, attempt):
                    raise
                LOG.debug("Attempt %d of %s collided: %s", attempt + 1, method, error)
            time.sleep(backoff.next())
        raise exception.StoreBusy(method=method, attempts=self.max_attempts)

    def _is_collision(self, error, attempt):
        kind = errors.Kind.COLLISION if isinstance(error, Stale) else errors.kind(error)
        if kind is errors.Kind.REFERENCE:
            # A busy row can be deleted, or referenced, before each of several attempts. If none
            # succeeds, the database's error says more than that it was busy.
            return attempt < max(2, self.max_attempts - 1)
        return kind is errors.Kind.COLLISION

    def _prepare(self, connection, versions):
        """Say what queries need to know of a change that begins."""
        connection.info.pop(EVENTS_WRITTEN, None)
        connection.info.pop(HOLD_CHECKED, None)
        connection.info[VERSIONS] = versions
        connection.info[MAY_OVERFILL] = self._may_overfill

    def connections(self):
        """Return how many connections are in use, and how many there can be at most."""
        pool = self.engine.pool
        return pool.checkedout(), pool.size() + max(0, pool._max_overflow)

    def close(self):
        """Close the connections of the pool."""
        self.engine.dispose()


@contextlib.contextmanager
def _busy_if_locked():
    try:
        yield
    except Locked as error:
        raise exception.StoreBusy(method="a transaction", attempts=1) from error


def _pool_of_files(engine):
    """Return a pool of a SQLite engine's connections.

    To open the file for each transaction takes longer than a short transaction does: 0.5 of the
    1.5 ms of a GET over HTTP. No transaction waits for a connection: the pool opens as many as
    are in use.
    """
    return sa.pool.QueuePool(
        engine.pool._creator, pool_size=_SQLITE_POOL_SIZE, max_overflow=-1,
        dialect=engine.dialect, _dispatch=engine.pool.dispatch)


def _create_private_file(path):
    """Create the file of a SQLite database, if it does not exist, for its owner only.

    SQLite gives the files of its write-ahead log the same permissions. A path that cannot be
    created is reported when the database is opened. A file that exists must not be opened here:
    closing it would release the locks that SQLite holds on it in this process.

    :param path: None for a database that is not in a file
    """
    if path is not None:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _raise_translated(error, connection):
    """Raise the project's error for one that ends the use of a connection, if there is one.

    :param error: exception of any type
    :raises StoreUnavailable: if the database cannot be reached any more
    :raises StoreBusy: if the database cancelled a statement that waited or ran too long
    :raises Locked: if another transaction kept a row locked
    """
    if not isinstance(error, errors.DATABASE_ERRORS):
        return
    kind = errors.kind(error)
    if kind is errors.Kind.UNAVAILABLE:
        # The next transaction connects again, to another server after a failover.
        connection.invalidate()
        raise _unavailable(error) from error
    if kind is errors.Kind.LOCKED:
        raise Locked from error
    if kind is errors.Kind.BUSY:
        LOG.warning("The database cancelled a transaction: %s", error)
        raise exception.StoreBusy(method="a transaction", attempts=1) from error


def _raise_for_reader(error, connection):
    with _busy_if_locked():
        _raise_translated(error, connection)


def _unavailable(error):
    # The driver's message may name hosts and users: it goes to the log, not to the client.
    LOG.warning("The database cannot be reached: %s", error)
    return exception.StoreUnavailable(reason=type(error).__name__)


def _discard_plans(connection, record):
    """Let PostgreSQL plan a session's statements again, by the present sizes of the tables.

    It keeps the plans of prepared statements, and those of its checks of foreign keys, until a
    table is analysed. One that was made while a table was small reads all of it for each row:
    340 ms of the server's processor time for 100 claims instead of 14, in a store that has grown
    to 10,000 providers. ``plan_cache_mode = force_custom_plan`` makes it 20 ms at any time, since
    the server then plans each check of a foreign key. ANALYZE after ``db sync`` makes it plan so
    from the start, since it reads empty tables whole.
    """
    connection.execute("DISCARD PLANS")
    connection.commit()
    record.info[_PLANNED_AT] = time.monotonic()
