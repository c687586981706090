# SPDX-License-Identifier: Apache-2.0
"""Options of the events that the service publishes."""

from oslo_config import cfg

GROUP = cfg.OptGroup("notifications", title="Events of committed changes")

OPTS = [
    cfg.StrOpt(
        "topic", default="placement_notifications",
        help="Topic on which events are published, in oslo.messaging's envelope 2.0."),
    cfg.StrOpt(
        "stream", default="placement_events",
        help="RabbitMQ stream that keeps the same messages, so that they can be read from any "
             "position."),
    cfg.StrOpt(
        "stream_max_age", default="40D",
        help="How long the stream keeps messages, in RabbitMQ's notation (40D, 12h). A usage "
             "report needs the events of its period and of one snapshot_period before it; the "
             "default is enough for a month and a week. A higher age takes more disk."),
    cfg.IntOpt(
        "stream_max_bytes", default=5_000_000_000, min=1_000_000,
        help="Maximum size of the stream, in bytes; the oldest messages are removed first. A "
             "higher number takes more disk and lets readers go back further."),
    cfg.StrOpt(
        "payload_pin",
        help="Release, by name or version of the contract, whose payload versions are published, "
             "while listeners are of an older release. Defaults to this release."),
    cfg.IntOpt(
        "batch", default=500, min=1,
        help="Maximum number of events that the relay publishes before it waits for their "
             "confirms. A higher number raises throughput, and the number of events that are "
             "published twice after a failure: twice this number at most."),
    cfg.FloatOpt(
        "gather", default=0.01, min=0.0,
        help="Minimum pause of the relay after a batch that is not full, in seconds. An event "
             "after a quiet time is published at once. Under load, a longer pause makes fewer and "
             "larger batches and delays events."),
    cfg.FloatOpt(
        "interval", default=0.05, min=0.001,
        help="Seconds between two polls of the outbox for events that other processes committed; "
             "commits of its own process wake the relay at once. A higher number costs fewer "
             "queries and delays events."),
    cfg.IntOpt(
        "lease", default=5, min=1,
        help="Seconds without renewal after which another process takes over the relay. A higher "
             "number tolerates longer pauses of the holder, and delays events after it dies."),
    cfg.IntOpt(
        "retention", default=7 * 86400, min=60,
        help="Seconds for which published events stay in the database, from which HTTP clients "
             "read and 'placement-rpc-manage outbox replay' publishes again. A higher number "
             "means more stored rows."),
    cfg.IntOpt(
        "snapshot_period", default=86400, min=0,
        help="Seconds between two snapshots of all allocations (allocation.exists), with which a "
             "new listener can start. It must be shorter than stream_max_age. A snapshot is one "
             "event per consumer, so a higher number publishes less, and a new listener has to "
             "read more events. 0 turns snapshots off."),
]
