# SPDX-License-Identifier: Apache-2.0
"""Options of those who call: PlacementAPI and the command line."""

from oslo_config import cfg

GROUP = cfg.OptGroup("placement_client", title="Calls to the placement service")

OPTS = [
    cfg.FloatOpt(
        "deadline", default=60.0, min=0.1,
        help="Seconds that a call may take in all, attempts and waits included. It travels "
             "with the call: a server that gets to it later does nothing."),
    cfg.FloatOpt(
        "attempt_timeout", default=10.0, min=0.1,
        help="Seconds to wait for the answer to one attempt before the same request is sent "
             "again. Repeating is safe: a request id is settled once."),
    cfg.IntOpt(
        "max_concurrent_calls", default=64, min=1,
        help="The most calls that one PlacementAPI has under way at a time."),
]
