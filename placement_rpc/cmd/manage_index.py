# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage index``: verify the candidate indexes of the conductors."""

import sys

from placement_rpc import exception
from placement_rpc.amqp import broker
from placement_rpc.api import PlacementAPI
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.cmd import output

_COLUMNS = ["conductor", "providers", "inventories", "bytes", "position", "differences"]
_AT_ONCE = 1000
_SECONDS = 60


def add_commands(groups):
    """Add ``index verify`` to the program.

    :param groups: the sub-parsers of the program
    """
    commands = groups.add_parser("index", help="the candidate indexes").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "verify", help="compare the candidate index of every conductor with the store",
        description="Compare the candidate index of every live conductor with the database, "
                    "provider by provider, while the conductors work. An index that differs is "
                    "dropped and rebuilt. Without RabbitMQ, other processes cannot be called, and "
                    "an index is built in this process and compared. Exits with 1 if an index "
                    "differs or a conductor does not answer.")
    command.add_argument("--here", action="store_true",
                         help="build an index in this process and compare that one")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto")
    command.set_defaults(run=_verify)


def _verify(database, options, conf):
    if options.here or broker.Broker.of(conf) is None:
        index = LiveIndex(database.reader)
        index.wait_until_ready()
        rows = [_verified("here", index.verify)]
    else:
        with PlacementAPI(conf=conf) as api:
            rows = [_verified(name, lambda after, limit, name=name: api.verify_index(
                None, name, after, limit, timeout=_SECONDS)) for name in _conductors(api)]
    style = options.format
    if style == "auto":
        style = "table" if sys.stdout.isatty() else "json"
    output.show(rows, _COLUMNS, style)
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
        while after is not None:
            answer = verify(after, _AT_ONCE)
            if answer is None:
                return {**row, "differences": "no index", "details": {}}
            details |= answer["differences"]
            row |= {key: answer[key] for key in _COLUMNS[1:-1]}
            after = answer["next"]
            _progress(name, after, row["providers"])
    except exception.PlacementException as error:
        return {**row, "differences": f"no answer: {error.code}", "details": {}}
    return {**row, "differences": len(details), "details": details}


def _progress(name, after, providers):
    if sys.stderr.isatty():
        end = "\n" if after is None else "\r"
        print(f"{name}: {'all' if after is None else f'up to id {after}'} of {providers} "
              "providers", end=end, file=sys.stderr)
