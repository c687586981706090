# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage``: what operators do to the store."""

import argparse
import datetime
import sys

from oslo_log import log

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.cmd import mistakes, output
from placement_rpc.db import api as db
from placement_rpc.db import migration
from placement_rpc.db.queries import bulk, events
from placement_rpc.objects import class_names


def _db_sync(database, _options):
    before = migration.current(database)
    after = migration.sync(database, class_names.STANDARD_IDS)
    print(f"The schema is at {after}" + (
        "; it was there already" if before == after else f"; it was at {before or 'nothing'}"))
    return 0


def _db_version(database, _options):
    current, newest = migration.current(database), migration.newest()
    print(current or "empty")
    if current != newest:
        print(f"this release needs {newest}: run 'placement-rpc-manage db sync'",
              file=sys.stderr)
        return 1
    return 0


def _outbox_status(database, options):
    with database.reader() as tx:
        status = events.status(tx)
    oldest = status.pop("oldest_unsent")
    status["unsent"] = status["last_position"] - status["published_position"] + (
        status.pop("unpositioned"))
    status["lag_seconds"] = round((bulk.now() - oldest).total_seconds(), 1) if oldest else 0.0
    output.show([status], ["events", "oldest_kept", "last_position", "published_position",
                           "unsent", "lag_seconds"], options.format)
    return 0


def _outbox_prune(database, options):
    before = bulk.now() - datetime.timedelta(seconds=options.older_than)
    total = 0
    while pruned := database.write(lambda tx: events.prune(tx, before), "prune"):
        total += pruned
    print(f"Pruned {total} published events")
    return 0


def _outbox_replay(database, options):
    def rewind(tx):
        events.state(tx, lock=True)
        status = events.status(tx)
        position = options.position - 1 if options.position is not None else (
            events.position_at(tx, options.since))
        oldest = status["oldest_kept"]
        if oldest is None or not oldest - 1 <= position <= status["published_position"]:
            raise exception.InvalidInput(
                what="position", reason=f"kept and published are {oldest or 'none'} to "
                                        f"{status['published_position']}")
        events.rewind(tx, position)
        return status["published_position"] - position

    print(f"{database.write(rewind, 'replay')} events are published again, under the ids and "
          "positions they had")
    return 0


def _time(text):
    """:returns: datetime in UTC without a zone, as the tables hold times"""
    moment = datetime.datetime.fromisoformat(text)
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)


def _add_outbox(groups):
    commands = groups.add_parser("outbox", help="events on their way out").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    text = "show how far the relay has come, and how far it lags"
    command = commands.add_parser("status", help=text, description=text.capitalize())
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto")
    command.set_defaults(run=_outbox_status)
    text = "delete published events that are old"
    command = commands.add_parser("prune", help=text, description=text.capitalize())
    command.add_argument("--older-than", type=int, required=True, metavar="SECONDS")
    command.set_defaults(run=_outbox_prune)
    text = "publish events again, from a position or a time on"
    command = commands.add_parser("replay", help=text, description=text.capitalize())
    start = command.add_mutually_exclusive_group(required=True)
    start.add_argument("--position", type=int, metavar="N")
    start.add_argument("--since", type=_time, metavar="TIME", help="ISO 8601; local without zone")
    command.set_defaults(run=_outbox_replay)


def _parser():
    parser = argparse.ArgumentParser(
        prog="placement-rpc-manage", description="Look after the store of placement_rpc.")
    parser.add_argument("--config-file", action="append", metavar="PATH",
                        help="configuration file; may be given several times "
                             "(default: /etc/placement-rpc/placement-rpc.conf)")
    parser.add_argument("--database", metavar="URL",
                        help="SQLAlchemy URL, instead of [database] connection")
    groups = parser.add_subparsers(dest="group", required=True, metavar="GROUP")
    commands = groups.add_parser("db", help="the database schema").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    for name, run, text in (
            ("sync", _db_sync, "bring the schema and the standard resource classes up to date"),
            ("version", _db_version, "print the schema's version; exits 1 when it is not the "
                                     "one that this release needs")):
        commands.add_parser(name, help=text, description=text.capitalize()).set_defaults(run=run)
    _add_outbox(groups)
    return parser


@mistakes.told("placement-rpc-manage")
def main(args=None):
    options = _parser().parse_args(args)
    conf = configuration.new_config(config_files=options.config_file)
    if options.database:
        conf.set_override("connection", options.database, group="database")
    log.setup(conf, configuration.PROJECT)
    if not conf.database.connection:
        print("placement-rpc-manage: no database is configured: set [database] connection or "
              "give --database", file=sys.stderr)
        return 2
    database = db.Database(conf)
    try:
        return options.run(database, options)
    finally:
        database.close()


if __name__ == "__main__":
    sys.exit(main())
