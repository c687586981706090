# SPDX-License-Identifier: Apache-2.0
"""How many events there were before an import. It only adds.

The new column of ``import_state`` is nullable and has no default, so no row is changed. The table
has at most one row, which only imports read or write. The statement needs the table to itself for
a moment: it waits for a batch of an import that is under way, at most ``online.PATIENCE``
seconds. MariaDB is told to refuse any other way than ``ALGORITHM=INSTANT``. On a Galera cluster
it stops all writers meanwhile.

Releases that do not know the column leave it NULL. An import that began under one of them is
checked as before.

Revision: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

from placement_rpc.db.migrations import online

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade():
    with online.patience():
        # MariaDB commits each step: steps of an interrupted attempt are not repeated.
        online.add_column(sa.inspect(op.get_bind()), "import_state", "events_before", "BIGINT")
