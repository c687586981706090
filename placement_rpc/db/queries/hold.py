# SPDX-License-Identifier: Apache-2.0
"""The hold of the store: while it is set, no change is committed.

It is read in the transaction of each change, by a statement that the change needs in any case. No
change that began before the hold can be committed after it:

* On SQLite a change has the database's one write lock from its start.
* On MariaDB a change locks the row of the hold, shared with other changes, and the transaction
  that sets the hold waits for them.
* On PostgreSQL a change reads the hold in the statement that writes its events. The transaction
  that sets the hold locks the table of the events against writers: it waits for those that have
  written, and those that wait for it see the hold, since a statement sees what was committed when
  it was granted its locks.

Nodes of a Galera cluster do not see each other's locks: a change on another node can still be
committed just after the hold was set. After :func:`drain` there are no such changes any more.
"""

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import api, galera, models
from placement_rpc.db.queries import bulk

_hold = models.store_hold
_events = models.events
_ID = 1
# Seconds after which a client may try again.
_RETRY_AFTER = 10

#: Condition that the hold is set.
IS_SET = sa.exists().where(_hold.c.id == _ID, _hold.c.held_since.is_not(None))
#: Whether it is set or not: MariaDB keeps no lock of a row that a condition leaves out.
ROW = sa.select(_hold.c.held_since, _hold.c.reason).where(_hold.c.id == _ID)
_LOCKED_ROW = ROW.with_for_update(read=True)


def state(tx):
    """Return the row of held_since (None if changes are accepted) and reason; locks nothing."""
    return tx.execute(ROW).one()


def check(tx):
    """Check that changes are accepted, unless the transaction has done that already.

    They then are until it ends; on PostgreSQL only the statement that writes the events can tell.

    :raises StoreHeld: if they are refused
    """
    if not tx.info.get(api.HOLD_CHECKED):
        row = tx.execute(_LOCKED_ROW if is_locked_by(tx) else ROW).one()
        if row.held_since is not None:
            raise refusal(row.reason)
        checked(tx)


def is_locked_by(tx):
    """Return whether a transaction that changes something has to lock the row."""
    return tx.dialect.name in ("mysql", "mariadb")


def checked(tx):
    """Record that the transaction found, and locked if necessary, that changes are accepted."""
    tx.info[api.HOLD_CHECKED] = True


def refusal(reason):
    """Return the error of a change that is refused.

    :param reason: str, of the hold
    """
    return exception.StoreHeld(reason=reason, retry_after=_RETRY_AFTER)


def set_(tx, reason):
    """Refuse all changes that are not committed yet.

    :param reason: str, what clients are told: a sentence without a full stop
    """
    if tx.dialect.name == "postgresql":
        tx.exec_driver_sql(f"LOCK TABLE {_events.name} IN SHARE ROW EXCLUSIVE MODE")
    tx.execute(sa.update(_hold).where(_hold.c.id == _ID).values(
        held_since=bulk.now(), reason=reason))


def drain(tx):
    """Wait for, or refuse, all changes that may be committed although they began before the hold.

    The transaction that has set the hold is committed. The nodes of a Galera cluster execute this
    statement at the same place in their order of transactions: each change of the table that was
    ordered before is applied then, and each one that comes later and began before is refused.
    """
    if galera.is_node(tx):
        tx.exec_driver_sql(f"ANALYZE TABLE {_events.name}").all()


def release(tx):
    """Accept changes again, from the commit of the transaction on."""
    tx.execute(sa.update(_hold).where(_hold.c.id == _ID).values(held_since=None, reason=None))
