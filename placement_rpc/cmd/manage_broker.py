# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage broker``: the nodes, and the queues and the exchange of this service."""

import dataclasses
import sys
import urllib.parse

from oslo_utils import netutils

from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import output
from placement_rpc.rpc import routing
from placement_rpc.service import broker_check


def add_commands(groups):
    """Add the group to the parser.

    :param groups: what ``add_subparsers`` of the program returned
    """
    commands = groups.add_parser("broker", help="queues, stream and exchange").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    text = ("list the nodes and the queues, with the remedy for nodes whose certificates are "
            "refused, and for queues that are unbounded, unread or not durable")
    command = commands.add_parser(
        "check", help=text, description=text.capitalize() + ". Exits with 1 if there are any.")
    command.add_argument(
        "--management-url", metavar="URL",
        help="RabbitMQ's management interface (default: [queues] management_url)")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto")
    command.set_defaults(run=_check, needs_database=False)


def _check(options, conf):
    broker = Broker.of(conf)
    if broker is None:
        raise exception.InvalidInput(
            what="transport_url", reason="this command needs the address of a RabbitMQ")
    management = broker_check.Management(
        options.management_url or conf.queues.management_url or _management_url(broker),
        broker.virtual_host, ca_file=broker.tls.ca_file if broker.tls else None)
    findings = broker_check.check(conf, broker, management, routing.TOPIC, routing.EXCHANGE)
    rows = [dataclasses.asdict(finding) for finding in findings]
    style = options.format
    if style == "auto":
        style = "table" if sys.stdout.isatty() else "json"
    if style == "table":
        rows = [{**row, "trouble": ", ".join(row["trouble"]) or "none",
                 "mend": "; ".join(row["mend"])} for row in rows]
    output.show(rows, ["queue", "kind", "messages", "consumers", "trouble", "mend"], style)
    return 1 if any(finding.trouble for finding in findings) else 0


def _management_url(broker):
    """Return the address of the management interface at its default port, encrypted as AMQP is."""
    node = broker.nodes[0]
    account = ":".join(urllib.parse.quote(each, safe="") for each in (node.user, node.password))
    scheme, port = ("https", 15671) if broker.tls else ("http", 15672)
    return f"{scheme}://{account}@{netutils.escape_ipv6(node.host)}:{port}"
