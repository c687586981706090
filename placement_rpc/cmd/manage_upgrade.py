# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage upgrade status``: where an upgrade stands."""

import dataclasses
import json
import sys

from placement_rpc.cmd import output
from placement_rpc.upgrade import status
from placement_rpc.versions import releases

_SERVICE = ["binary", "host", "worker", "version", "rpc_version", "release", "pin",
            "oldest_caller", "alive"]


def add_commands(groups):
    """Add the group to the parser.

    :param groups: what ``add_subparsers`` of the program returned
    """
    commands = groups.add_parser("upgrade", help="releases side by side").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "status", help="show the releases at work and the remaining steps",
        description="Show the release and the pin of each service, what a newer pin would break, "
                    "how many compute nodes are migrated, which unpublished events have an old "
                    "version of their payload, whether calls that older services do not know "
                    "are open, and to which release going back is possible.")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="auto is tables on a terminal and JSON elsewhere")
    command.set_defaults(run=_status)


def _status(database, options, conf):
    found = status.status(database, conf)
    if options.format == "json" or (options.format == "auto" and not sys.stdout.isatty()):
        json.dump({"release": releases.CURRENT.name, **dataclasses.asdict(found)}, sys.stdout,
                  indent=2)
        print()
        return 0
    output.show(found.services, _SERVICE, "table")
    output.show(_facts(found, conf), ["what", "is"], "table")
    return 0


def _facts(found, conf):
    nodes, gate = found.compute_nodes, found.gate
    facts = [
        ("this release", f"{releases.CURRENT.name} (contract {releases.CURRENT.contract})"),
        ("clients' pin", conf.upgrade_levels.placement),
        ("payloads' pin", conf.notifications.payload_pin or "none"),
        ("schema", f"{found.schema['expand']}, needed {found.schema['needed']}"
                   f"{', contracted' if found.schema['contracted'] else ''}"),
        ("gate", f"{'open' if gate['open'] else 'closed'} ({gate['mode']})"),
        *(("the gate is held by", name) for name in gate["held_by"]),
        (f"calls of contract {found.calls['contract']}",
         "open" if found.calls["open"] else "refused"),
        *(("they are refused because of", name) for name in found.calls["held_by"]),
        ("going back is possible to", found.way_back["release"]),
        *(("a release before it does not know", what) for what in found.way_back["stored"]),
        ("compute nodes", f"{nodes['migrated']} of {nodes['nodes']} migrated"),
        *((f"a pin of {name} breaks", service) for name, holders in found.bumps.items()
          for service in holders),
        *((f"clients of {name} still call", service)
          for name, services in found.left_behind.items() for service in services),
        *((f"unpublished events of {payload}", number)
          for payload, number in found.waiting_payloads.items())]
    return [{"what": what, "is": value} for what, value in facts]
