# SPDX-License-Identifier: Apache-2.0
"""Which errors of databases are retried, and which mean that a server is lost."""

import sqlite3

import psycopg
import psycopg2
import pymysql
import sqlalchemy as sa
import testscenarios
from oslo_db import exception as db_exc

from placement_rpc.db import errors
from placement_rpc.db.errors import Kind
from tests import base

# Not a message of any server: only the code counts.
_MESSAGE = "zzz"


def _sqlite(code):
    error = sqlite3.OperationalError(_MESSAGE)
    error.sqlite_errorcode = code
    return error


def _postgresql(state):
    return psycopg.errors.lookup(state)(_MESSAGE)


def _mariadb(number):
    return pymysql.err.OperationalError(number, _MESSAGE)


class KindTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(name, {"error": error, "kind": kind}) for name, error, kind in (
        ("duplicate", _postgresql("23505"), Kind.COLLISION),
        ("serialization", _postgresql("40001"), Kind.COLLISION),
        ("deadlock", _postgresql("40P01"), Kind.COLLISION),
        ("reference", _postgresql("23503"), Kind.REFERENCE),
        ("standby", _postgresql("25006"), Kind.UNAVAILABLE),
        ("stopped", _postgresql("57P01"), Kind.UNAVAILABLE),
        ("starting", _postgresql("57P03"), Kind.UNAVAILABLE),
        ("connection failure", _postgresql("08006"), Kind.UNAVAILABLE),
        ("too many connections", _postgresql("53300"), Kind.UNAVAILABLE),
        ("lost by psycopg", psycopg.OperationalError(_MESSAGE), Kind.UNAVAILABLE),
        ("lost by psycopg2", psycopg2.OperationalError(_MESSAGE), Kind.UNAVAILABLE),
        ("cancelled", _postgresql("57014"), Kind.BUSY),
        ("syntax", _postgresql("42601"), None),
        ("value", _postgresql("22003"), None),
        ("psycopg's own", psycopg.ProgrammingError(_MESSAGE), None),
        ("deadlock or Galera's conflict", _mariadb(1213), Kind.COLLISION),
        ("lock wait", _mariadb(1205), Kind.LOCKED),
        ("snapshot", _mariadb(1020), Kind.COLLISION),
        ("duplicate in MariaDB", pymysql.err.IntegrityError(1062, _MESSAGE), Kind.COLLISION),
        ("reference in MariaDB", pymysql.err.IntegrityError(1452, _MESSAGE), Kind.REFERENCE),
        ("referenced in MariaDB", pymysql.err.IntegrityError(1451, _MESSAGE), Kind.REFERENCE),
        ("Galera's node alone", _mariadb(1047), Kind.UNAVAILABLE),
        ("read only", _mariadb(1290), Kind.UNAVAILABLE),
        ("gone", _mariadb(2006), Kind.UNAVAILABLE),
        ("killed", _mariadb(1927), Kind.UNAVAILABLE),
        ("closed", pymysql.err.InterfaceError(0, ""), Kind.UNAVAILABLE),
        ("statement time", _mariadb(1969), Kind.BUSY),
        ("unknown column", _mariadb(1054), None),
        ("locked", _sqlite(sqlite3.SQLITE_BUSY), Kind.BUSY),
        ("locked by a snapshot", _sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), Kind.BUSY),
        ("full", _sqlite(sqlite3.SQLITE_FULL), Kind.UNAVAILABLE),
        ("unreadable", _sqlite(sqlite3.SQLITE_IOERR_READ), Kind.UNAVAILABLE),
        ("unique", _sqlite(sqlite3.SQLITE_CONSTRAINT_UNIQUE), Kind.COLLISION),
        ("not null", _sqlite(sqlite3.SQLITE_CONSTRAINT_NOTNULL), None),
        ("SQL", _sqlite(sqlite3.SQLITE_ERROR), None),
        ("another error", ValueError(_MESSAGE), None),
    )]

    def setUp(self):
        super().setUp()
        self.wrapped = sa.exc.DBAPIError.instance(
            "SELECT 1", {}, self.error, _parent_class(self.error), dialect=None)

    def test_as_sqlalchemy_raises_it(self):
        self.assertEqual(self.kind, errors.kind(self.wrapped))

    def test_as_oslo_db_raises_it(self):
        self.assertEqual(self.kind, errors.kind(db_exc.DBError(self.wrapped)))

    def test_a_connection_that_sqlalchemy_gave_up_is_lost(self):
        if isinstance(self.wrapped, sa.exc.DBAPIError):
            self.wrapped.connection_invalidated = True
            self.assertEqual(Kind.UNAVAILABLE, errors.kind(self.wrapped))


def _parent_class(error):
    """The class of which all errors of a driver are, by which SQLAlchemy knows them."""
    for parent in (sqlite3.Error, psycopg.Error, psycopg2.Error, pymysql.err.MySQLError):
        if isinstance(error, parent):
            return parent
    return sqlite3.Error
