# SPDX-License-Identifier: Apache-2.0
"""Rules about inventories."""

from placement_rpc.policies.base import rule

_PREFIX = "placement:resource_providers:inventories:"
LIST, CREATE, SHOW = f"{_PREFIX}list", f"{_PREFIX}create", f"{_PREFIX}show"
UPDATE, DELETE = f"{_PREFIX}update", f"{_PREFIX}delete"

_PATHS = ("/resource_providers/{uuid}/inventories", "/resource_pools/{uuid}/inventories")

RULES = [
    rule(LIST, "List the inventories of a resource provider.",
         *(f"GET {path}" for path in _PATHS)),
    rule(CREATE, "Add an inventory to a resource provider.",
         *(f"POST {path}" for path in _PATHS)),
    rule(SHOW, "Show the inventory of one class.",
         *(f"GET {path}/{{resource_class}}" for path in _PATHS)),
    rule(UPDATE, "Change one inventory, or set all.", f"PUT {_PATHS[0]}",
         *(f"PUT {path}/{{resource_class}}" for path in _PATHS)),
    rule(DELETE, "Delete the inventory of one class, or of all.",
         f"DELETE {_PATHS[0]}", *(f"DELETE {path}/{{resource_class}}" for path in _PATHS)),
]
