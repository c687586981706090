# SPDX-License-Identifier: Apache-2.0
"""Options of clients: PlacementAPI and the command line."""

from oslo_config import cfg

GROUP = cfg.OptGroup("placement_client", title="Calls to the placement service")

OPTS = [
    cfg.FloatOpt(
        "deadline", default=60.0, min=0.1,
        help="Seconds that a call may take in all, including all attempts and the pauses between "
             "them. The deadline travels with the call: a server that takes the call up after "
             "it changes nothing. A higher number bridges longer outages, and makes callers wait "
             "longer for an error."),
    cfg.FloatOpt(
        "attempt_timeout", default=10.0, min=0.1,
        help="Seconds to wait for an answer before the same request is sent again. A retry is "
             "safe, since a request id takes effect once. A lower number recovers sooner from a "
             "lost message and sends more retries to a slow service."),
    cfg.FloatOpt(
        "repeat_after", default=0.2, min=0.01,
        help="Seconds without an answer after which the client sends a second copy of a call, "
             "while it still waits for the answer to the first: a worker that was stopped may "
             "hold the first copy. If the service is slow, the client waits for four times the "
             "usual time of an answer. Calls that take long, such as explain, are repeated eight "
             "times later. The first three pauses are equal, and each further one is 1.5 times "
             "as long, until attempt_timeout. The change is made once, because all copies have "
             "the same request id. A lower number recovers sooner, and sends more copies to a "
             "slow service."),
    cfg.IntOpt(
        "max_concurrent_calls", default=64, min=1,
        help="Maximum number of calls that one PlacementAPI makes at a time; further calls wait "
             "until their deadline, in the order in which they came. As many casts at a time wait "
             "for the broker's confirm."),
    cfg.ListOpt(
        "cells", default=[],
        help="Names of the cells that placement_rpc.cells.CellsAPI calls, each with a group "
             "[cell:NAME]. Their order is that of lists of providers."),
    cfg.FloatOpt(
        "cell_timeout", default=3.0, min=0.1,
        help="Seconds that a find over several cells waits for each of them. A cell that does not "
             "answer in time is left out of this find, and of the following ones for three times "
             "as long. A higher number waits longer for a slow cell, and delays the finds more "
             "when a cell cannot be reached."),
]
