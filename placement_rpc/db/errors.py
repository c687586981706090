# SPDX-License-Identifier: Apache-2.0
"""Database errors by their codes: SQLSTATE, MariaDB's errno, SQLite's result code.

Messages are not a criterion: servers translate them and change them between versions. oslo.db maps
many errors to classes of its own by their messages; the code is read from the driver's error that
its classes wrap, so that the two do not depend on each other.
"""

import enum

import sqlalchemy as sa
from oslo_db import exception as db_exc

#: What oslo.db and SQLAlchemy raise for an error of the database or of its driver.
DATABASE_ERRORS = (db_exc.DBError, sa.exc.DBAPIError)


class Kind(enum.Enum):
    """What an error means for the transaction in which it occurred."""

    #: another transaction was faster; the transaction is retried
    COLLISION = enum.auto()
    #: as a collision; but if it persists, the referenced row is missing or the row is referenced
    REFERENCE = enum.auto()
    #: another transaction kept a row locked for longer than this one may wait
    LOCKED = enum.auto()
    #: the server ended the transaction because it waited or ran for too long
    BUSY = enum.auto()
    #: this connection or this server cannot be used; another one may work
    UNAVAILABLE = enum.auto()


_SQLSTATES = {
    "23503": Kind.REFERENCE,    # foreign_key_violation
    "23505": Kind.COLLISION,    # unique_violation
    "25006": Kind.UNAVAILABLE,  # read_only_sql_transaction: a standby, after a failover
    "25P03": Kind.UNAVAILABLE,  # idle_in_transaction_session_timeout
    "25P04": Kind.UNAVAILABLE,  # transaction_timeout
    "40001": Kind.COLLISION,    # serialization_failure
    "40P01": Kind.COLLISION,    # deadlock_detected
    "40003": Kind.UNAVAILABLE,  # statement_completion_unknown
    "55006": Kind.BUSY,         # object_in_use
    "55P03": Kind.LOCKED,       # lock_not_available
    "57014": Kind.BUSY,         # query_canceled
    "57P01": Kind.UNAVAILABLE,  # admin_shutdown
    "57P02": Kind.UNAVAILABLE,  # crash_shutdown
    "57P03": Kind.UNAVAILABLE,  # cannot_connect_now
    "57P04": Kind.UNAVAILABLE,  # database_dropped
    "57P05": Kind.UNAVAILABLE,  # idle_session_timeout
    # Classes, for those that are not above.
    "08": Kind.UNAVAILABLE,     # connection exception
    "53": Kind.UNAVAILABLE,     # insufficient resources
    "58": Kind.UNAVAILABLE,     # system error
}

_ERRNOS = {
    1020: Kind.COLLISION,    # ER_CHECKREAD: the row has changed since the snapshot
    1021: Kind.UNAVAILABLE,  # ER_DISK_FULL
    1022: Kind.COLLISION,    # ER_DUP_KEY
    1030: Kind.UNAVAILABLE,  # ER_GET_ERRNO: of the storage engine
    1040: Kind.UNAVAILABLE,  # ER_CON_COUNT_ERROR
    1041: Kind.UNAVAILABLE,  # ER_OUT_OF_RESOURCES
    1047: Kind.UNAVAILABLE,  # ER_UNKNOWN_COM_ERROR: a Galera node that is not part of the cluster
    1053: Kind.UNAVAILABLE,  # ER_SERVER_SHUTDOWN
    1062: Kind.COLLISION,    # ER_DUP_ENTRY
    1114: Kind.UNAVAILABLE,  # ER_RECORD_FILE_FULL
    1158: Kind.UNAVAILABLE,  # ER_NET_READ_ERROR
    1159: Kind.UNAVAILABLE,  # ER_NET_READ_INTERRUPTED
    1160: Kind.UNAVAILABLE,  # ER_NET_ERROR_ON_WRITE
    1161: Kind.UNAVAILABLE,  # ER_NET_WRITE_INTERRUPTED
    1180: Kind.COLLISION,    # ER_ERROR_DURING_COMMIT
    1203: Kind.UNAVAILABLE,  # ER_TOO_MANY_USER_CONNECTIONS
    1205: Kind.LOCKED,       # ER_LOCK_WAIT_TIMEOUT
    1206: Kind.BUSY,         # ER_LOCK_TABLE_FULL
    1213: Kind.COLLISION,    # ER_LOCK_DEADLOCK; Galera: the write set was refused
    1226: Kind.UNAVAILABLE,  # ER_USER_LIMIT_REACHED
    1290: Kind.UNAVAILABLE,  # ER_OPTION_PREVENTS_STATEMENT: --read-only, after a failover
    1317: Kind.BUSY,         # ER_QUERY_INTERRUPTED
    1451: Kind.REFERENCE,    # ER_ROW_IS_REFERENCED_2
    1452: Kind.REFERENCE,    # ER_NO_REFERENCED_ROW_2
    1412: Kind.COLLISION,    # ER_TABLE_DEF_CHANGED
    1792: Kind.UNAVAILABLE,  # ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
    1836: Kind.UNAVAILABLE,  # ER_READ_ONLY_MODE
    1927: Kind.UNAVAILABLE,  # ER_CONNECTION_KILLED
    1969: Kind.BUSY,         # ER_STATEMENT_TIMEOUT
    2002: Kind.UNAVAILABLE,  # CR_CONNECTION_ERROR
    2003: Kind.UNAVAILABLE,  # CR_CONN_HOST_ERROR
    2006: Kind.UNAVAILABLE,  # CR_SERVER_GONE_ERROR
    2013: Kind.UNAVAILABLE,  # CR_SERVER_LOST
    2014: Kind.UNAVAILABLE,  # CR_COMMANDS_OUT_OF_SYNC
    2055: Kind.UNAVAILABLE,  # CR_SERVER_LOST_EXTENDED
}

_SQLITE_CODES = {
    5: Kind.BUSY,            # SQLITE_BUSY
    6: Kind.BUSY,            # SQLITE_LOCKED
    8: Kind.UNAVAILABLE,     # SQLITE_READONLY
    10: Kind.UNAVAILABLE,    # SQLITE_IOERR
    11: Kind.UNAVAILABLE,    # SQLITE_CORRUPT
    13: Kind.UNAVAILABLE,    # SQLITE_FULL
    14: Kind.UNAVAILABLE,    # SQLITE_CANTOPEN
    26: Kind.UNAVAILABLE,    # SQLITE_NOTADB
    787: Kind.REFERENCE,     # SQLITE_CONSTRAINT_FOREIGNKEY
    1555: Kind.COLLISION,    # SQLITE_CONSTRAINT_PRIMARYKEY
    2067: Kind.COLLISION,    # SQLITE_CONSTRAINT_UNIQUE
}


def kind(error):
    """Return the :class:`Kind` of an error; None for one that a retry does not repair.

    :param error: Exception of oslo.db, of SQLAlchemy or of the driver
    """
    if isinstance(error, db_exc.DBConnectionError):
        return Kind.UNAVAILABLE
    of_connection = False
    while isinstance(error, DATABASE_ERRORS):
        if isinstance(error, db_exc.DBError):
            error = error.inner_exception
            continue
        if error.connection_invalidated:
            return Kind.UNAVAILABLE
        of_connection = isinstance(error, (sa.exc.OperationalError, sa.exc.InterfaceError))
        error = error.orig
    code, kinds = _code(error)
    if code:
        return kinds.get(code)
    # Servers and SQLite give each of their errors a code: an OperationalError or InterfaceError
    # without one is the client library's own, about the connection.
    return Kind.UNAVAILABLE if of_connection else None


def _code(error):
    """Return the code of a driver's error, and the table that has it."""
    if hasattr(error, "sqlite_errorcode"):
        code = error.sqlite_errorcode
        # An extended result code has the primary one in its lowest byte.
        return code if code in _SQLITE_CODES else code & 0xff, _SQLITE_CODES
    first = error.args[0] if isinstance(error, Exception) and error.args else None
    if isinstance(first, int):
        # PyMySQL, whose own errors about a closed connection have the number 0.
        return first, _ERRNOS
    state = sqlstate(error)
    return state if state in _SQLSTATES or not state else state[:2], _SQLSTATES


def sqlstate(error):
    """Return the SQLSTATE of an error of psycopg 3 or psycopg2; None if it has none."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
