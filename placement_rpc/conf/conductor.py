# SPDX-License-Identifier: Apache-2.0
"""Options of the conductor and its workers."""

from oslo_config import cfg

GROUP = cfg.OptGroup("conductor", title="Processes that answer calls")

OPTS = [
    cfg.StrOpt(
        "host", sample_default="<this machine's name>",
        help="Name of this machine among the conductors, unique in the deployment. Defaults to "
             "the host name."),
    cfg.IntOpt(
        "workers", min=1, sample_default="<number of processors>",
        help="Number of worker processes. Each worker has database connections and a candidate "
             "index of its own. Defaults to the number of processors."),
    cfg.IntOpt(
        "threads", default=32, min=1, max=256,
        help="Maximum number of calls that one worker processes at a time. Further calls stay in "
             "the broker, where they survive the death of a worker and other workers can take "
             "them. Concurrent claims of one worker share a transaction, so a higher number also "
             "allows larger transactions."),
    cfg.IntOpt(
        "fleet_threads", default=4, min=1, max=256,
        help="Maximum number of calls about inventories and compute nodes that one worker "
             "processes at a time. They have a queue of their own, so that they do not delay "
             "claims and searches. A higher number updates the fleet faster and leaves less "
             "processor time for claims."),
    cfg.IntOpt(
        "claims_together", default=64, min=1, max=1000,
        help="Maximum number of claims and releases that one worker takes from RabbitMQ at a "
             "time. They are processed in one transaction, answered, and then acknowledged. A "
             "higher number raises throughput under load and the latency of each claim."),
    cfg.IntOpt(
        "calls_per_client", default=64, min=0,
        help="Maximum number of calls of one client that one worker holds from a request queue "
             "while other clients make calls too; further calls are refused with "
             "placement.service.overloaded, which clients retry after the time that it names. So "
             "are calls that would wait beyond their deadlines. A lone client is not limited, and "
             "of many clients each has its turn in any case. A higher number refuses fewer calls "
             "of a client that makes very many, and lets it keep others waiting in RabbitMQ for "
             "longer. 0 refuses none."),
    cfg.IntOpt(
        "report_interval", default=10, min=1,
        help="Seconds between two heartbeats of a worker in the services table, which is also the "
             "interval of its housekeeping. A higher number writes less often and must stay well "
             "below service_down_time."),
    cfg.IntOpt(
        "service_down_time", default=60, min=2,
        help="Seconds without a heartbeat after which a worker counts as down. A higher number "
             "tolerates longer interruptions, and delays upgrades after a worker dies."),
    cfg.IntOpt(
        "drain_timeout", default=60, min=0,
        help="Seconds for which a worker that is stopped may finish the calls it has accepted. "
             "Unfinished calls are then abandoned. 0 waits without limit."),
]
