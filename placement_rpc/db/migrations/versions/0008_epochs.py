# SPDX-License-Identifier: Apache-2.0
"""Positions of events belong to an epoch. It only adds.

The new column of ``relay_state`` is nullable and has no default, so no row is changed. The table
has one row. The statement needs it to itself for a moment: it waits for the relay's transaction,
which takes milliseconds, and at most :data:`PATIENCE` seconds. MariaDB is told to refuse any other
way than ``ALGORITHM=INSTANT``. On a Galera cluster the statement stops all writers meanwhile.

On PostgreSQL the revisions of an upgrade are one transaction. If revision 0007 is a part of it,
``events`` is locked, too, and a relay that has locked its row may wait for ``events``. The
database then cancels one of the two after ``deadlock_timeout``, by default a second: the relay
repeats its transaction, and an upgrade can be run again.

Conductors of older releases leave the column as it is, and publish events without an epoch.

Revision: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

#: Seconds to wait for a lock.
PATIENCE = 5

_COLUMN = "epoch"


def upgrade():
    _run(postgresql=f"SET LOCAL lock_timeout = '{PATIENCE}s'",
         mysql=f"SET SESSION lock_wait_timeout = {PATIENCE}")
    # MariaDB commits each step: steps of an interrupted attempt are not repeated.
    found = sa.inspect(op.get_bind())
    if _COLUMN not in {each["name"] for each in found.get_columns("relay_state")}:
        statement = f"ALTER TABLE relay_state ADD COLUMN {_COLUMN} "
        _run(sqlite=f"{statement} VARCHAR(36)", postgresql=f"{statement} VARCHAR(36)",
             mysql=f"{statement} CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL, "
                   "ALGORITHM=INSTANT")
    _run(mysql="SET SESSION lock_wait_timeout = DEFAULT")


def _run(**statements):
    """Run the statement of this database; there may be none."""
    dialect = op.get_bind().dialect.name
    statement = statements.get("mysql" if dialect == "mariadb" else dialect)
    if statement is not None:
        op.execute(statement)
