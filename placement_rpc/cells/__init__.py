# SPDX-License-Identifier: Apache-2.0
"""Several services as one: calls go to the cell that has what they name.

::

    api = CellsAPI(conf)                            # [placement_client] cells = north, south
    api.only(cell="north").create_provider(context, "node")
    api.claim_by_request(context, wanted, claim)    # in a cell that has room

A cell is a service with its own broker or virtual host, and its own database. It knows nothing of
the others. What is one call here is a transaction in one cell; nothing is distributed.
"""

from placement_rpc.cells.api import CellsAPI
from placement_rpc.cells.cell import Cell

__all__ = ["Cell", "CellsAPI"]
