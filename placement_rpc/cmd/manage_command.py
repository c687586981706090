# SPDX-License-Identifier: Apache-2.0
"""The configuration, the log and the database of a command of ``placement-rpc-manage``."""

import contextlib
import sys

from placement_rpc.cmd import config_sources, errors, state_file
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import schema_version
from placement_rpc.service import logs


def run(options, args):
    """Run the command that the options name.

    :param options: the parsed arguments
    :param args: list of str, the arguments of the program; None for those of this process
    :returns: int, the exit code
    """
    conf = configuration.new_config(config_sources.arguments(options))
    if options.database:
        config_sources.override(conf, "connection", options.database, "database")
    if options.transport_url:
        config_sources.override(conf, "transport_url", options.transport_url)
    if options.state_dir:
        config_sources.override(conf, "state_dir", options.state_dir, "standalone")
    state_file.configure(conf)
    logs.setup(conf)
    # What fails has the command's own exit code.
    reported = errors.one_line_errors("placement-rpc-manage", options.failure)
    with errors.quietly(args) if options.is_quiet else contextlib.nullcontext():
        return reported(lambda _args: _run(options, conf))(args)


def _run(options, conf):
    module, _, function = options.run.partition(".")
    command = getattr(errors.service_module(module), function)
    if not options.needs_database:
        return command(options, conf)
    if not conf.database.connection:
        print("placement-rpc-manage: no database is configured: set [database] connection or "
              "give --database", file=sys.stderr)
        return 2
    database = db.Database(conf, create=options.creates_database)
    try:
        if options.group != "db":
            schema_version.check(database)
        return command(database, options, conf)
    finally:
        database.close()
