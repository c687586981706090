# SPDX-License-Identifier: Apache-2.0
"""Options of claims and of the requests that carry them."""

from oslo_config import cfg

GROUP = cfg.OptGroup("claims", title="Claims and idempotent requests")

OPTS = [
    cfg.IntOpt(
        "max_batch", default=1000, min=1,
        help="Maximum number of claims in one claim_batch call. A higher number lets a client "
             "send larger messages."),
    cfg.IntOpt(
        "max_settled_together", default=200, min=1,
        help="Maximum number of claims in one transaction. A larger claim_batch is split into "
             "several transactions. A higher number means fewer commits, and locks that are held "
             "for longer."),
    cfg.IntOpt(
        "max_resources", default=500, min=1,
        help="Maximum number of amounts in one claim, counted over all providers and classes, "
             "and of inventories in one set_inventory. A higher number allows larger requests "
             "and longer transactions."),
    cfg.BoolOpt(
        "allow_capacity_below_use", default=False,
        help="Whether a change of an inventory may set its capacity below the allocated amount "
             "where the specifications refuse it: over HTTP at microversions 1.0 to 1.4 and under "
             "/resource_pools, in calls of contract 1.0 to 1.2, and for compute nodes. From "
             "microversion 1.5 and contract 1.3 on it always may, as in OpenStack Placement. Such "
             "a change publishes an inventory.capacity_exceeded event, and nothing more can be "
             "claimed until enough has been released."),
    cfg.IntOpt(
        "max_attempts", default=10, min=1,
        help="Maximum number of attempts at a transaction that conflicts with concurrent "
             "writers. A higher number makes errors under contention rarer, and calls slower."),
    cfg.IntOpt(
        "request_retention", default=86400, min=60,
        help="Seconds for which the outcome of a request is stored, so that a repeated request "
             "id gets the same answer. It must be longer than any client keeps retrying. A "
             "higher number means more stored rows."),
]
