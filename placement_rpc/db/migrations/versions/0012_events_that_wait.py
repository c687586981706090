# SPDX-License-Identifier: Apache-2.0
"""The next events without a position can be found in the order of their ids. It only adds.

Without the index PostgreSQL reads and sorts all events that wait, for each batch of the relay. The
index exists on PostgreSQL only. MariaDB has no indexes of a part of the rows, and sorts even with
an index of all events. SQLite reads the index of the position, which has the ids in order.

It has only the events that wait, so it is small. While it is made, others can read, and all
changes wait, since each writes events: about 1 s for a million events that are kept. Clients retry
requests that time out meanwhile.

The statement waits for its lock for at most ``online.PATIENCE`` seconds, since changes of the
table wait behind it. After that it fails, and the migration can be run again.

Revision: 0012
Revises: 0011
"""

from placement_rpc.db.migrations import online

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade():
    with online.patience():
        online.run(postgresql="CREATE INDEX ix_events_waiting ON events (position, id) "
                              "WHERE position IS NULL")
