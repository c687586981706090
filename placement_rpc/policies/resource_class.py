# SPDX-License-Identifier: Apache-2.0
"""Rules about resource classes."""

from placement_rpc.policies.base import rule

_PREFIX = "placement:resource_classes:"
LIST, CREATE, SHOW = f"{_PREFIX}list", f"{_PREFIX}create", f"{_PREFIX}show"
UPDATE, DELETE = f"{_PREFIX}update", f"{_PREFIX}delete"

RULES = [
    rule(LIST, "List resource classes.", "GET /resource_classes"),
    rule(CREATE, "Create a custom resource class.", "POST /resource_classes"),
    rule(SHOW, "Show a resource class.", "GET /resource_classes/{name}"),
    rule(UPDATE, "Rename a custom resource class.", "PUT /resource_classes/{name}"),
    rule(DELETE, "Delete a custom resource class.", "DELETE /resource_classes/{name}"),
]
