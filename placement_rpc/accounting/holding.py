# SPDX-License-Identifier: Apache-2.0
"""Whether the store accepts changes."""

from placement_rpc.db.api import Database
from placement_rpc.db.queries import hold


def is_held(database: Database) -> bool:
    """Return whether all changes are refused at the moment.

    :raises StoreUnavailable: if the database cannot be reached
    """
    with database.reader(causal=False) as tx:
        return hold.state(tx).held_since is not None
