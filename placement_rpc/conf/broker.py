# SPDX-License-Identifier: Apache-2.0
"""Options of connections to RabbitMQ, in addition to those of oslo.messaging."""

from oslo_config import cfg

GROUP = cfg.OptGroup("broker", title="Connections to RabbitMQ, of services and of clients")

OPTS = [
    cfg.BoolOpt(
        "check_hostname", default=True,
        help="Whether the broker's certificate must be valid for the host name or the address "
             "that transport_url has for it, if [oslo_messaging_rabbit] ssl is on. When false, "
             "any certificate of a trusted authority is accepted, so the owner of such a "
             "certificate can pose as the broker. 'placement-rpc-status upgrade check' reports "
             "hosts that would fail this check."),
]
