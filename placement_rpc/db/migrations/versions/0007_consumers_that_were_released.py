# SPDX-License-Identifier: Apache-2.0
"""Deletions of allocations can be found by their consumer. It only adds.

What each statement locks, on a store that is in use:

* The new column has no default, so no row of ``events`` is changed: MariaDB is told to refuse any
  other way (``ALGORITHM=INSTANT``). It needs the table to itself for that moment.
* The index: MariaDB makes it in place, while others read and write. On PostgreSQL, where it has
  the deletions only, others can read, and all changes wait until it is made, since each writes
  events: about 1 s for a million events that are kept. Clients retry what takes longer.
* On a Galera cluster each statement stops all writers for as long as it takes. A low
  ``[notifications] retention`` beforehand makes that short.

No statement waits for a lock for more than ``online.PATIENCE`` seconds, since all other
statements on the table would wait behind it. After that it fails, and the migration can be run
again.

Conductors of older releases leave the column NULL. The payloads of such deletions are searched, as
before, for as long as they are recent.

Revision: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

from placement_rpc.db.migrations import online

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMN, _INDEX = "released_consumer", "ix_events_released"
_KEYS = f"({_COLUMN}, event_type, occurred_at)"


def upgrade():
    with online.patience():
        # MariaDB commits each step: steps of an interrupted attempt are not repeated.
        found = sa.inspect(op.get_bind())
        online.add_uuid(found, "events", _COLUMN)
        if _INDEX not in {each["name"] for each in found.get_indexes("events")}:
            statement = f"CREATE INDEX {_INDEX} ON events {_KEYS} WHERE event_type = " \
                        "'allocation.delete'"
            online.run(sqlite=statement, postgresql=statement,
                       mysql=f"ALTER TABLE events ADD INDEX {_INDEX} {_KEYS}, ALGORITHM=INPLACE, "
                             "LOCK=NONE")
