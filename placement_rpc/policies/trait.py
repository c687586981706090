# SPDX-License-Identifier: Apache-2.0
"""Rules about traits, and the traits of resource providers."""

from placement_rpc.policies.base import rule

LIST = "placement:traits:list"
SHOW = "placement:traits:show"
UPDATE = "placement:traits:update"
DELETE = "placement:traits:delete"
OF_PROVIDER = "placement:resource_providers:traits:list"
SET = "placement:resource_providers:traits:update"
CLEAR = "placement:resource_providers:traits:delete"

_OF_PROVIDER = "/resource_providers/{uuid}/traits"

RULES = [
    rule(LIST, "List traits.", "GET /traits"),
    rule(SHOW, "Ask whether a trait exists.", "GET /traits/{name}"),
    rule(UPDATE, "Create a trait.", "PUT /traits/{name}"),
    rule(DELETE, "Delete a trait.", "DELETE /traits/{name}"),
    rule(OF_PROVIDER, "List the traits of a resource provider.", f"GET {_OF_PROVIDER}"),
    rule(SET, "Replace the traits of a resource provider.", f"PUT {_OF_PROVIDER}"),
    rule(CLEAR, "Remove all traits of a resource provider.", f"DELETE {_OF_PROVIDER}"),
]
