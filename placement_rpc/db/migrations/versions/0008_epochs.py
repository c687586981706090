# SPDX-License-Identifier: Apache-2.0
"""Positions of events belong to an epoch. It only adds.

The new column of ``relay_state`` is nullable and has no default, so no row is changed. The table
has one row. The statement needs it to itself for a moment: it waits for the relay's transaction,
which takes milliseconds, and at most ``online.PATIENCE`` seconds. MariaDB is told to refuse any
other way than ``ALGORITHM=INSTANT``. On a Galera cluster it stops all writers
meanwhile.

Conductors of older releases leave the column as it is, and publish events without an epoch.

Revision: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

from placement_rpc.db.migrations import online

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COLUMN = "epoch"


def upgrade():
    with online.patience():
        # MariaDB commits each step: steps of an interrupted attempt are not repeated.
        found = sa.inspect(op.get_bind())
        online.add_uuid(found, "relay_state", _COLUMN)
