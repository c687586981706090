# SPDX-License-Identifier: Apache-2.0
"""Options of the queues that this project declares itself, all of which are bounded."""

from oslo_config import cfg

GROUP = cfg.OptGroup("queues", title="Durable commands, dead letters, and listeners' queues")

OPTS = [
    cfg.IntOpt(
        "commands_max_length", default=1_000_000, min=1,
        help="Maximum number of casts in the command queue. A cast to a full queue is refused, "
             "and its sender gets an error; accepted casts are never dropped. A higher number "
             "takes more disk on the broker."),
    cfg.IntOpt(
        "commands_attempts", default=5, min=1,
        help="Number of attempts at a cast, each of which ended with an error or the death of the "
             "worker, before the cast becomes a dead letter. A higher number bridges longer "
             "faults, and retries a harmful cast more often."),
    cfg.IntOpt(
        "calls_attempts", default=5, min=1,
        help="Number of attempts at a call that was delivered again, each of which ended with the "
             "death of the worker, before the call becomes a dead letter and its sender gets an "
             "error. A higher number gives a call more chances if workers are killed for other "
             "reasons, and lets a harmful call end more of them."),
    cfg.IntOpt(
        "commands_batch", default=100, min=1, max=200,
        help="Maximum number of casts in one transaction. A higher number means fewer commits, "
             "and locks that are held for longer."),
    cfg.StrOpt(
        "dead_letters", default="placement_dead_letters",
        help="Queue of dead letters: calls, casts and events that could not be read or handled. "
             "Of a message that cannot be read, the first 64 KiB are kept."),
    cfg.IntOpt(
        "dead_letters_max_length", default=100_000, min=1,
        help="Maximum number of dead letters; the oldest are dropped first. A higher number takes "
             "more disk on the broker."),
    cfg.IntOpt(
        "dead_letters_max_age", default=30 * 86400, min=60,
        help="Seconds after which a dead letter is dropped."),
    cfg.IntOpt(
        "listener_max_length", default=1_000_000, min=1,
        help="Maximum number of events in a listener's queue; the oldest are dropped first. The "
             "listener notices the gap and can read the dropped events from the stream. A higher "
             "number tolerates a slower listener and takes more disk on the broker."),
    cfg.IntOpt(
        "listener_max_age", default=7 * 86400, min=60,
        help="Seconds after which an event is dropped from a listener's queue."),
    cfg.IntOpt(
        "listener_attempts", default=5, min=1,
        help="Number of attempts of a listener at an event before the event becomes a dead "
             "letter. A higher number bridges longer faults of the listener."),
    cfg.StrOpt(
        "management_url", secret=True,
        help="Address of RabbitMQ's management interface, for example "
             "http://user:password@host:15672, for 'placement-rpc-manage broker check'. Several "
             "are separated by commas, and tried in turn. Defaults to port 15672 of the broker's "
             "hosts, with the users and passwords of transport_url."),
]
