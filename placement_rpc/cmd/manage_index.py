# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage index``: verify the candidate indexes of the conductors."""

import sys

from placement_rpc import exception
from placement_rpc.amqp import broker
from placement_rpc.api import PlacementAPI
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.cmd import bus, output, silence

_COLUMNS = ["conductor", "providers", "inventories", "bytes", "position", "differences"]
_AT_ONCE = 1000
_SECONDS = 60


def verify(database, options, conf):
    if not options.here:
        bus.check(conf)
    if options.here or broker.Broker.of(conf) is None:
        index = LiveIndex(database.reader)
        with output.progress("Building an index"):
            index.wait_until_ready()
        rows = [_verified("here", index.verify)]
    else:
        with PlacementAPI(conf=conf) as api, silence.explained(
                "placement-rpc-manage", conf, conf.transport_url, conf.placement_client.deadline):
            rows = [_verified(name, lambda after, limit, name=name: api.verify_index(
                None, name, after, limit, timeout=_SECONDS)) for name in _conductors(api)]
    output.show(rows, _COLUMNS, options.format,
                empty="No conductor is alive; --here builds an index in this process.")
    for row in rows:
        for id_, text in row["details"].items():
            print(f"{row['conductor']}: provider {id_}: {text}", file=sys.stderr)
    return 1 if not rows or any(row["differences"] != 0 for row in rows) else 0


def _conductors(api):
    """Return the names of the queues of the live conductors, as a list."""
    return [f"{each.host}.{each.binary}.{each.worker}" for each in api.get_versions(None).objects
            if each.alive and each.binary != "placement-rpc-api"]


def _verified(name, verify):
    """Compare an index part by part; return a row of the table, as a dict."""
    row, after, details = {"conductor": name}, 0, {}
    try:
        with output.interruptible(
                "placement-rpc-manage", lambda: f"the index of {name} is compared up to the "
                f"provider with the id {after}", "run it again for the whole comparison",
        ), output.progress(name) as advance:
            while after is not None:
                answer = verify(after, _AT_ONCE)
                if answer is None:
                    return {**row, "differences": "no index", "details": {}}
                details |= answer["differences"]
                row |= {key: answer[key] for key in _COLUMNS[1:-1]}
                after = answer["next"]
                advance(_AT_ONCE, size=row["providers"])
    except exception.PlacementException as error:
        return {**row, "differences": f"no answer: {error.code}", "details": {}}
    return {**row, "differences": len(details), "details": details}
