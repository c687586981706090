# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage broker``: the nodes, and the queues and the exchange of this service."""

import dataclasses
import urllib.parse

from oslo_utils import netutils

from placement_rpc.cmd import bus, output
from placement_rpc.rpc import routing
from placement_rpc.service import broker_check


def check(options, conf):
    broker = bus.needed(conf, "only RabbitMQ has queues to check")
    management = broker_check.Management(
        options.management_url or conf.queues.management_url or _management_urls(broker),
        broker.virtual_host, ca_file=broker.tls.ca_file if broker.tls else None)
    findings = broker_check.check(conf, broker, management, routing.TOPIC, routing.EXCHANGE)
    rows = [dataclasses.asdict(finding) for finding in findings]
    style = output.style_of(options.format)
    if style in ("table", "csv"):
        rows = [{**row, "trouble": ", ".join(row["trouble"] + row["notes"]) or "none",
                 "mend": "; ".join(row["mend"])} for row in rows]
    output.show(rows, ["queue", "kind", "messages", "consumers", "trouble", "mend"], style,
                empty="The service has no queues yet: they are declared when a conductor starts.")
    return 1 if any(finding.trouble for finding in findings) else 0


def _management_urls(broker):
    """Return the addresses of the interfaces at their default port, encrypted as AMQP is."""
    scheme, port = ("https", 15671) if broker.tls else ("http", 15672)
    return ",".join(
        f"{scheme}://{_quoted(node.user)}:{_quoted(node.password)}@"
        f"{netutils.escape_ipv6(node.host)}:{port}" for node in broker.nodes)


def _quoted(text):
    return urllib.parse.quote(text, safe="")
