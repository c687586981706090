# SPDX-License-Identifier: Apache-2.0
"""Options of the conductor's processes."""

from oslo_config import cfg

GROUP = cfg.OptGroup("conductor", title="The processes that answer calls")

OPTS = [
    cfg.StrOpt(
        "host", sample_default="<this machine's name>",
        help="Name of this machine among the conductors. Two machines must not share one. "
             "Defaults to the machine's host name."),
    cfg.IntOpt(
        "workers", min=1, sample_default="<number of processors>",
        help="Worker processes. Defaults to the number of processors."),
    cfg.IntOpt(
        "threads", default=32, min=1, max=256,
        help="Calls that one worker takes in at a time. What is beyond stays in the broker, "
             "so that it outlives a killed worker and other workers can take it. Concurrent "
             "claims of one worker are settled together, so this also bounds such a batch."),
    cfg.IntOpt(
        "fleet_threads", default=4, min=1, max=256,
        help="Calls about inventories and compute nodes that one worker takes in at a time. They "
             "wait in a queue of their own, and however many there are, claims and finds pass "
             "them by."),
    cfg.IntOpt(
        "claims_together", default=64, min=1, max=1000,
        help="Claims and releases that one worker takes from RabbitMQ at a time. All that are "
             "there are settled in one transaction, answered, and then acknowledged."),
    cfg.IntOpt(
        "report_interval", default=10, min=1,
        help="Seconds between two heartbeats of a worker in the services table."),
    cfg.IntOpt(
        "service_down_time", default=60, min=2,
        help="Seconds without a heartbeat after which a worker counts as down."),
    cfg.IntOpt(
        "drain_timeout", default=60, min=0,
        help="Seconds that a worker has for finishing the calls it took in, when it is told "
             "to stop. 0 means as long as it takes."),
]
