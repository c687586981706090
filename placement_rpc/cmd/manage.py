# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage``: administration of the database and the broker."""

import argparse
import sys

from oslo_log import log

from placement_rpc.accounting import traits
from placement_rpc.cmd import (
    config_sources,
    errors,
    manage_audit,
    manage_broker,
    manage_dead_letters,
    manage_index,
    manage_migrations,
    manage_nodes,
    manage_outbox,
    manage_placement,
    manage_upgrade,
    state_file,
)
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import migration
from placement_rpc.objects import class_names
from placement_rpc.service import private_files


def _db_sync(database, _options, _conf):
    before = migration.current(database)
    after = migration.sync(database, class_names.STANDARD_IDS, traits.STANDARD)
    print(f"The schema is at {after}" + (
        "; it already was" if before == after else f"; it was at {before or 'nothing'}"))
    return 0


def _db_version(database, _options, _conf):
    current, newest = migration.current(database), migration.newest()
    print(current or "empty")
    if current != newest:
        print(f"this release needs {newest}: run 'placement-rpc-manage db sync'",
              file=sys.stderr)
        return 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="placement-rpc-manage",
        description="Administer the database and the broker of placement_rpc.")
    config_sources.add_arguments(parser)
    parser.add_argument("--database", metavar="URL",
                        help="SQLAlchemy URL; overrides [database] connection")
    parser.add_argument("--transport-url", metavar="URL",
                        help="the bus; overrides transport_url")
    parser.add_argument("--state-dir", metavar="PATH",
                        help="state directory of a standalone service, whose database and bus are "
                             "used if none are configured (default: ./state)")
    parser.add_argument("--debug", action="store_true",
                        help="show the log, and the traceback of an error")
    # A command that needs no database overrides the first, and is called without one; a command
    # whose exit code 1 is an answer overrides the second, the exit code of an error.
    parser.set_defaults(needs_database=True, failure=1)
    groups = parser.add_subparsers(dest="group", required=True, metavar="GROUP")
    commands = groups.add_parser("db", help="the database schema").add_subparsers(
        dest="command", required=True, metavar="COMMAND")
    for name, run, text in (
            ("sync", _db_sync, "bring the schema and the standard resource classes up to date"),
            ("version", _db_version, "print the version of the schema; exit with 1 if it is not "
                                     "the one that this release needs")):
        commands.add_parser(name, help=text, description=text.capitalize()).set_defaults(run=run)
    manage_migrations.add_commands(commands)
    for group in (manage_audit, manage_nodes, manage_outbox, manage_dead_letters, manage_broker,
                  manage_index, manage_upgrade, manage_placement):
        group.add_commands(groups)
    return parser


@errors.one_line_errors("placement-rpc-manage")
@private_files.owner_only()
def main(args=None):
    options = _parser().parse_args(args)
    conf = configuration.new_config(config_sources.arguments(options))
    if options.database:
        conf.set_override("connection", options.database, group="database")
    if options.transport_url:
        conf.set_override("transport_url", options.transport_url)
    state_file.configure(conf, options.state_dir)
    log.setup(conf, configuration.PROJECT)
    run = errors.one_line_errors("placement-rpc-manage", options.failure)(
        lambda _args: _run(options, conf))
    with errors.quietly(args):
        return run(args)


def _run(options, conf):
    if not options.needs_database:
        return options.run(options, conf)
    if not conf.database.connection:
        print("placement-rpc-manage: no database is configured: set [database] connection or "
              "give --database", file=sys.stderr)
        return 2
    database = db.Database(conf, create=options.run is _db_sync)
    try:
        if options.group != "db":
            migration.check(database)
        return options.run(database, options, conf)
    finally:
        database.close()


if __name__ == "__main__":
    sys.exit(main())
