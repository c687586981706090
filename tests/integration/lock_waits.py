# SPDX-License-Identifier: Apache-2.0
"""Wait until a transaction waits for a lock of another one."""

from tests import base

_WAITING = {
    "postgresql": "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
                  " WHERE NOT granted AND datname = current_database()",
    # InnoDB's own tables of waits are not refreshed while they are read again and again.
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE db = database()"
             " AND info LIKE '%%FOR UPDATE'"}


def wait_for_waiter(database):
    """Wait until a transaction of a database waits for a lock.

    :param database: :class:`placement_rpc.db.api.Database` on PostgreSQL or MariaDB
    :raises TimeoutError: if none does in time
    """
    def is_waiting():
        with database.reader() as tx:
            return tx.exec_driver_sql(_WAITING[database.dialect]).scalar()

    base.wait_until(is_waiting, message=lambda: "No transaction waits for a lock")
