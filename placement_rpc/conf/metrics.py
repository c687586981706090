# SPDX-License-Identifier: Apache-2.0
"""Options of metrics and of the log of slow calls."""

from oslo_config import cfg

GROUP = cfg.OptGroup("metrics", title="Metrics, and the log of slow calls")

OPTS = [
    cfg.PortOpt(
        "port", default=0,
        help="Port on which the first worker of a conductor serves /metrics for Prometheus. The "
             "second worker uses the next port, and so on. 0 turns it off."),
    cfg.HostAddressOpt(
        "host", default="127.0.0.1", help="Address that the port listens on."),
    cfg.BoolOpt(
        "http", default=True,
        help="Whether the HTTP facade serves /metrics. It needs no token and shows rates, times "
             "and sizes, but no names. Each process of a WSGI server serves its own numbers."),
    cfg.BoolOpt(
        "http_fleet", default=False,
        help="Whether /metrics of the HTTP facade, which needs no token, also shows capacity, "
             "reserved and used amounts and headroom of the fleet, by resource class and "
             "aggregate. They are computed from the candidate index of the process, so a facade "
             "with [api] transport = rpc has none. The port shows them always."),
    cfg.FloatOpt(
        "slow_call", default=2.0, min=0,
        help="Seconds after which a call is logged with the time that each of its steps took. A "
             "higher number logs fewer calls. 0 turns it off."),
]
