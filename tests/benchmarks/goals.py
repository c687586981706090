# SPDX-License-Identifier: Apache-2.0
"""Earlier figures of lines of the benchmark, and the goals.

The earlier figures are of a machine with two processors that ran all parts.
"""

#: Name of a line to the figure of then, and the goal, as they are printed.
GOALS = {
    "claim_allocations to echo": ("1.14", ">= 1.6"),
    "processor time of a claim: all": ("3.1", "<= 1.9"),
    "a single claim to a single echo, p50": ("2.0", "<= 1.4"),
    "processor time of a claim in a batch: all": ("0.69", "<= 0.4"),
    "sync_compute_node, unchanged, 16 trackers": ("236", ">= 800"),
    "compute nodes migrated": ("839", ">= 4000"),
    "events from the outbox to a confirmed publish": ("4386", ""),
    "events from the outbox to bare publishing": ("", ">= 0.85"),
    "from commit to delivery, p50": ("53", "<= 15"),
    "from commit to delivery, p99": ("130", "<= 50"),
}
