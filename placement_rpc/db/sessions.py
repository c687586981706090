# SPDX-License-Identifier: Apache-2.0
"""The settings of a new session, by database: what it waits for, and when it is given up.

A worker that is stopped in the middle of a transaction, or whose machine vanishes, does not end
its session. The server ends it, after ``[transactions] idle_timeout``. A statement waits for
locks for ``[transactions] lock_timeout`` only.
"""

import math
import os
import socket

import sqlalchemy as sa

from placement_rpc.db import galera

# Seconds that a transaction on SQLite waits for the one write lock; ``timeout`` in the URL has
# priority.
_SQLITE_TIMEOUT = 30.0
# TCP keepalive probes that a peer may leave unanswered. ``peer_timeout`` has one part more: the
# time without traffic before the first of them.
_PROBES = 3

# Seconds for which MySQL waits until more rows of a stream are read.
_STREAM_TIMEOUT = 3600

# Bytes of a text that MariaDB makes of many rows.
_LONGEST_TEXT = 16 * 1024 * 1024

#: Key of a statement's execution options: it locks rows, and waits for them no longer than
#: ``[transactions] lock_timeout``, on MariaDB too.
LOCKS_ROWS = "placement_locks_rows"


def prepare(engine, options):
    """Have each new session of an engine set up, and each statement that locks rows limited.

    :param engine: :class:`sqlalchemy.Engine`
    :param options: ``conf.transactions``
    """
    sa.event.listen(engine, "connect", lambda connection, _record: _CONNECT[
        engine.dialect.name](connection, options))
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "do_connect", _wait_for_sqlite)
        sa.event.listen(engine, "handle_error", _survive_interrupts)
    if engine.dialect.name == "postgresql":
        # Imported here, as below, since the drivers are optional dependencies.
        from placement_rpc.db import failover
        sa.event.listen(engine, "do_connect", lambda _dialect, _record, args, parameters: _open(
            failover.Connection, args, parameters, options))
        failover.prepare(engine)
    if engine.dialect.driver == "pymysql":
        from placement_rpc.db import long_statements
        sa.event.listen(engine, "do_connect", lambda _dialect, _record, args, parameters: (
            long_statements.Connection(*args, **parameters)))
    if getattr(engine.dialect, "is_mariadb", False):
        sa.event.listen(engine, "connect", galera.connected)
        sa.event.listen(engine, "before_cursor_execute", _with_variables(options), retval=True)


def lift_limits(connection):
    """Let a change of the schema be idle, take long, and wait for locks as long as it says itself.

    MySQL can only be told so for a session, which therefore does not return to the pool. A change
    of the schema waits there for its locks for as long as ``lock_wait_timeout`` says.

    :param connection: :class:`sqlalchemy.Connection`
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
    elif connection.dialect.name in _MYSQL:
        _leave_pool(connection)
        # Another node may just have upgraded the schema.
        galera.always_wait(connection)


def keep_for_stream(connection):
    """Let a transaction that reads a stream be idle while other work is done between its rows.

    PostgreSQL is told so by :mod:`placement_rpc.db.reading`; MySQL can only be told so for a
    session, which therefore does not return to the pool.

    :param connection: :class:`sqlalchemy.Connection`
    """
    if connection.dialect.name in _MYSQL:
        _leave_pool(connection)
        connection.exec_driver_sql(f"SET SESSION net_write_timeout = {_STREAM_TIMEOUT}")


def _leave_pool(connection):
    """Keep a session of MySQL from the pool, and let it be idle and wait for long answers."""
    if connection.dialect.driver == "pymysql":
        # It has no other way to change this once it is connected.
        connection.connection.driver_connection._read_timeout = None
    connection.detach()
    if connection.dialect.is_mariadb:
        connection.exec_driver_sql("SET SESSION idle_transaction_timeout = 0")


def _wait_for_sqlite(_dialect, _record, _args, parameters):
    parameters.setdefault("timeout", _SQLITE_TIMEOUT)


def _survive_interrupts(context):
    """Keep a connection to SQLite when an interrupt ends a statement, such as Ctrl-C.

    On other databases SQLAlchemy has to drop it, since the server's answer may be on its way. For
    one that it drops, the end of the transaction calls a listener of oslo.db, whose error would
    then hide the interrupt.
    """
    if not isinstance(context.original_exception, Exception):
        context.is_disconnect = False


def _open(connection_class, args, parameters, options):
    """Connect to PostgreSQL with limits for a server that does not answer.

    Those of libpq that are in the URL have priority.
    """
    milliseconds = _milliseconds(options.peer_timeout)
    for name, value in (("keepalives_idle", _probe(options)),
                        ("keepalives_interval", _probe(options)),
                        ("keepalives_count", _PROBES), ("tcp_user_timeout", milliseconds)):
        parameters.setdefault(name, value)
    connection = connection_class.connect(*args, **parameters)
    connection.answer_timeout = options.answer_timeout
    return connection


def _with_variables(options):
    """Return a listener that sets variables of MariaDB for single statements.

    It limits the time of statements that lock rows: ``innodb_lock_wait_timeout`` and ``WAIT`` have
    whole seconds only. It lets statements wait for the other nodes of a cluster.
    """
    limit = f"max_statement_time = {options.lock_timeout:.3f}"

    def before(connection, _cursor, statement, parameters, context, _many):
        locks = context is not None and context.execution_options.get(LOCKS_ROWS)
        variables = [limit] if locks else []
        if galera.waits(connection, statement):
            variables.append(galera.SYNC_WAIT)
        if variables:
            statement = f"SET STATEMENT {', '.join(variables)} FOR {statement}"
        return statement, parameters

    return before


def _sqlite(connection, _options):
    connection.execute("PRAGMA journal_mode = WAL")


def _mysql(connection, options):
    with connection.cursor() as cursor:
        # Each statement must see what was committed before it, as on PostgreSQL: the rows that a
        # lock protects are read after the lock was granted.
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        # A longer text would be cut; the candidate index is read as texts of many rows.
        cursor.execute("SET SESSION group_concat_max_len = %s", (_LONGEST_TEXT,))
        cursor.execute("SET SESSION innodb_lock_wait_timeout = %s",
                       (math.ceil(options.lock_timeout),))
        # MySQL has no such limit.
        cursor.execute("SHOW VARIABLES LIKE 'idle_transaction_timeout'")
        if cursor.fetchone():
            cursor.execute("SET SESSION idle_transaction_timeout = %s",
                           (math.ceil(options.idle_timeout),))
    _probe_peer(connection._sock, options)


def _probe_peer(connected, options):
    """Give up a TCP connection whose other end does not answer; PyMySQL has no option for it."""
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    # A duplicate of the descriptor, since TLS wraps the socket.
    with socket.socket(fileno=os.dup(connected.fileno())) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", _probe(options)), ("TCP_KEEPINTVL", _probe(options)),
                            ("TCP_KEEPCNT", _PROBES),
                            ("TCP_USER_TIMEOUT", _milliseconds(options.peer_timeout))):
            if hasattr(socket, name):
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _postgresql(connection, options):
    for statement in (
            # Compiling a query takes longer than any query of this service runs.
            "SET jit = off",
            f"SET lock_timeout = {_milliseconds(options.lock_timeout)}",
            f"SET idle_in_transaction_session_timeout = {_milliseconds(options.idle_timeout)}"):
        connection.execute(statement)
    connection.commit()


def _probe(options):
    return max(1, round(options.peer_timeout / (_PROBES + 1)))


def _milliseconds(seconds):
    return max(1, math.ceil(seconds * 1000))


_MYSQL = ("mysql", "mariadb")
_CONNECT = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql, "mariadb": _mysql}
