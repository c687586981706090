# SPDX-License-Identifier: Apache-2.0
"""Ending sessions of a database server, as a restart of it or a failover does."""

_OWN = {"postgresql": "SELECT pg_backend_pid()", "mariadb": "SELECT connection_id()"}
_END = {"postgresql": "SELECT pg_terminate_backend({})", "mariadb": "KILL {}"}


def end(kind, tx, database):
    """End the session of a transaction.

    :param kind: one of :data:`tests.servers.DATABASES`, but SQLite, which has no sessions
    :param tx: the transaction
    :param database: :class:`placement_rpc.db.api.Database` of the same server, with another
        connection to end it from
    """
    session = tx.exec_driver_sql(_OWN[kind]).scalar()
    with database.writer() as other:
        other.exec_driver_sql(_END[kind].format(session))
