# SPDX-License-Identifier: Apache-2.0
"""Options of the queues that this project declares itself: none grows without bound."""

from oslo_config import cfg

GROUP = cfg.OptGroup("queues", title="Durable commands, dead letters, and queues of listeners")

OPTS = [
    cfg.IntOpt(
        "commands_max_length", default=1_000_000, min=1,
        help="The most casts that wait in the command queue. One that comes while it is full is "
             "refused to its sender; none is ever dropped."),
    cfg.IntOpt(
        "commands_attempts", default=5, min=1,
        help="How often a cast is tried that whoever works on it fails at or dies over, before it "
             "goes to the dead letters."),
    cfg.IntOpt(
        "commands_batch", default=100, min=1, max=200,
        help="The most casts that are settled in one transaction."),
    cfg.StrOpt(
        "dead_letters", default="placement_dead_letters",
        help="The queue of what could not be handled: casts and events."),
    cfg.IntOpt(
        "dead_letters_max_length", default=100_000, min=1,
        help="The most dead letters that are kept; the oldest go first."),
    cfg.IntOpt(
        "dead_letters_max_age", default=30 * 86400, min=60,
        help="Seconds for which a dead letter is kept."),
    cfg.IntOpt(
        "listener_max_length", default=1_000_000, min=1,
        help="The most events that wait in a listener's queue; the oldest go first. What went is "
             "still in the stream, and the listener is told of the gap."),
    cfg.IntOpt(
        "listener_max_age", default=7 * 86400, min=60,
        help="Seconds for which an event waits in a listener's queue."),
    cfg.IntOpt(
        "listener_attempts", default=5, min=1,
        help="How often a listener tries to handle an event before it goes to the dead letters."),
    cfg.StrOpt(
        "management_url", secret=True,
        help="RabbitMQ's management interface, as http://user:password@host:15672, for "
             "'placement-rpc-manage broker check'. Defaults to port 15672 of the broker's host, "
             "with the user and password of transport_url."),
]
