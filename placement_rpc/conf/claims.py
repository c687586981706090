# SPDX-License-Identifier: Apache-2.0
"""Options of claims and of the requests that carry them."""

from oslo_config import cfg

GROUP = cfg.OptGroup("claims", title="Claims and idempotent requests")

OPTS = [
    cfg.IntOpt(
        "max_batch", default=1000, min=1,
        help="The most claims in one claim_batch call."),
    cfg.IntOpt(
        "max_settled_together", default=200, min=1,
        help="The most claims that are settled in one transaction. A larger claim_batch is "
             "settled in several."),
    cfg.IntOpt(
        "max_resources", default=500, min=1,
        help="The most amounts, counted over all providers and classes, in one claim, and the "
             "most inventories in one set_inventory."),
    cfg.BoolOpt(
        "allow_capacity_below_use", default=False,
        help="Whether a change of an inventory may put its capacity below what is allocated "
             "from it, as OpenStack Placement lets it. It is told by an "
             "inventory.capacity_exceeded event then, and nothing more can be claimed until "
             "enough was given back. Otherwise such a change is refused."),
    cfg.IntOpt(
        "max_attempts", default=10, min=1,
        help="How often the store is tried again when concurrent writers collide."),
    cfg.IntOpt(
        "request_retention", default=86400, min=60,
        help="Seconds for which the outcome of a request is kept, so that the same request id "
             "is answered with it. Longer than any client goes on trying."),
]
