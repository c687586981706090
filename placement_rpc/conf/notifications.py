# SPDX-License-Identifier: Apache-2.0
"""Options of the events that the service publishes."""

from oslo_config import cfg

GROUP = cfg.OptGroup("notifications", title="Events of committed changes")

OPTS = [
    cfg.StrOpt(
        "topic", default="placement_notifications",
        help="The topic on which events are published, in oslo.messaging's envelope 2.0."),
    cfg.StrOpt(
        "stream", default="placement_events",
        help="The RabbitMQ stream that keeps the same messages, for reading from any position."),
    cfg.StrOpt(
        "stream_max_age", default="40D",
        help="How long the stream keeps messages, as RabbitMQ writes it (40D, 12h). A usage "
             "report needs as much, and a snapshot_period more, as it goes back: by default a "
             "month and a week."),
    cfg.IntOpt(
        "stream_max_bytes", default=5_000_000_000, min=1_000_000,
        help="The most bytes that the stream keeps."),
    cfg.StrOpt(
        "payload_pin",
        help="The release at whose versions payloads are sent, by name or version of the "
             "contract, while listeners are of an older release. Defaults to this release."),
    cfg.IntOpt(
        "batch", default=500, min=1,
        help="The most events that the relay publishes before it waits for their confirms."),
    cfg.FloatOpt(
        "gather", default=0.04, min=0.0,
        help="Seconds that the relay leaves between two batches. An event that comes when all is "
             "quiet is published at once; under load this makes fewer and larger batches."),
    cfg.FloatOpt(
        "interval", default=0.05, min=0.001,
        help="Seconds between two looks into the outbox for what other processes committed; "
             "what its own process committed the relay is told of at once."),
    cfg.IntOpt(
        "lease", default=5, min=1,
        help="Seconds after which another process takes over the relay when its holder does not "
             "renew the lease."),
    cfg.IntOpt(
        "retention", default=7 * 86400, min=60,
        help="Seconds for which published events are kept in the store."),
    cfg.IntOpt(
        "snapshot_period", default=86400, min=0,
        help="Seconds between two snapshots of all allocations (allocation.exists), from which a "
             "listener can start that was not there before. A snapshot is an event for each "
             "consumer: shorter than the stream's age, and no shorter than needed. 0 for none."),
]
