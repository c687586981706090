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


def show_status(database, options, conf):
    found = status.status(database, conf)
    if output.style_of(options.format) == "json":
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
