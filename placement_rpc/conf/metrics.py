# SPDX-License-Identifier: Apache-2.0
"""Options of what is counted and told of calls."""

from oslo_config import cfg

GROUP = cfg.OptGroup("metrics", title="What is counted, and what the log tells of slow calls")

OPTS = [
    cfg.PortOpt(
        "port", default=0,
        help="Port on which the first worker of a conductor answers /metrics for Prometheus; the "
             "second has the next one, and so on. 0 for none."),
    cfg.HostAddressOpt(
        "host", default="127.0.0.1", help="Address of that port."),
    cfg.BoolOpt(
        "http", default=True,
        help="Whether the HTTP facade answers /metrics, without a token: rates, times and sizes, "
             "and no names. Each process of a WSGI server answers for itself."),
    cfg.FloatOpt(
        "slow_call", default=2.0, min=0,
        help="Seconds above which a call has a line in the log that says where its time went. 0 "
             "for never."),
]
