# SPDX-License-Identifier: Apache-2.0
"""Transactions on a node of a MariaDB Galera cluster.

The nodes agree on one order of all transactions when these are committed. Each node applies those
of the others a moment later, and refuses a transaction (error 1213) that writes a row which one
before it, not yet applied, has written. Two rules follow:

* A transaction may read what is out of date, unless it first waits until its node has applied what
  was committed before. :func:`wait_for_others` makes the first statement of a transaction do so.
* Nodes know what a transaction has written, and not what it has read or locked. A transaction that
  relies on a row and does not change it has to write it all the same (:func:`touch`) if others
  change what it relies on.
"""

import sqlalchemy as sa

# Key of a connection's info: whether the session is on a node of a cluster.
_IS_NODE = "placement_is_galera_node"
# The same: whether the first statement of the transaction waits.
_WAITS = "placement_waits_for_other_nodes"

#: Variable of a statement: it waits until the node has applied what others have committed.
SYNC_WAIT = "wsrep_sync_wait = 1"


def connected(connection, record):
    """Find out whether a new session is on a node of a cluster; a listener of the pool."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
        record.info[_IS_NODE] = (cursor.fetchone() or ("", "OFF"))[1] == "ON"


def is_node(connection):
    """Return whether the session is on a node of a cluster.

    :param connection: :class:`sqlalchemy.Connection`
    """
    return connection.info.get(_IS_NODE, False)


def wait_for_others(connection, waits):
    """Say whether a transaction that begins sees all that was committed on other nodes before.

    :param connection: :class:`sqlalchemy.Connection`; of any database
    :param waits: bool
    """
    if connection.info.get(_IS_NODE):
        connection.info[_WAITS] = bool(waits)


def waits(connection, statement):
    """Return whether this statement is the one of its transaction that waits.

    :param statement: str
    """
    if not connection.info.get(_WAITS):
        return False
    first = statement.lstrip("( \n")[:6].upper()
    if not first.startswith("SET"):
        # A transaction that has begun cannot wait any more.
        connection.info[_WAITS] = False
    return first == "SELECT"


def always_wait(connection):
    """Let all statements of a session wait, those about the schema too.

    :param connection: :class:`sqlalchemy.Connection`
    """
    if is_node(connection):
        # Those that read, show and change.
        connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 7")


def touch(tx, table, row_ids, column="updated_at"):
    """Write rows that a rule relies on and that the transaction does not change otherwise.

    Transactions of other nodes that change or touch one of the rows at the same time then conflict
    with this one. To set an equal value would write nothing, so a time becomes a microsecond
    later. It does nothing on other databases, where the locks of the rows suffice.

    :param table: :class:`sqlalchemy.Table` with ``id``
    :param row_ids: collection of row ids
    :param column: str, the name of the time
    """
    if row_ids and is_node(tx):
        tx.execute(sa.update(table).where(table.c.id.in_(sorted(row_ids))).values(
            {column: table.c[column] + sa.text("INTERVAL 1 MICROSECOND")}))
