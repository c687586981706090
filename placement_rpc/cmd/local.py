# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc --local``: commands that read the store instead of calling the service."""

from placement_rpc import api, exception, manager
from placement_rpc.cmd import calls, provider_names, state_file, usage_report
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import schema_version
from placement_rpc.db.queries import events as outbox
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.usage import UsageAccount

_PAGE = 1000


def run(options, conf):
    """Run a command on the configured store, or on that of the state directory.

    :param options: the parsed arguments
    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :returns: int, the exit code
    :raises StoreUnavailable: if no database is configured and the state directory has none
    """
    state_file.configure(configuration.register(conf))
    if not conf.database.connection:
        raise exception.StoreUnavailable(
            reason="no database is configured and the state directory "
                   f"{conf.standalone.state_dir!r} has none: set [database] connection, or name "
                   "the directory of a service with --state-dir")
    database = db.Database(conf)
    try:
        schema_version.check(database)
        with api.PlacementAPI("local", conf, manager=manager.Manager(conf, database)) as client:
            if options.command == "usage-report":
                return report_usage(database, options, provider_names.ProviderNames(client))
            calls.call(client, options)
    finally:
        database.close()
    return 0


def report_usage(database, options, names=None):
    """Report from the outbox, which has all events that are kept, published or not.

    :param database: :class:`placement_rpc.db.api.Database`
    :param names: as of :func:`placement_rpc.cmd.usage_report.report`
    :returns: int, the exit code
    """
    account = UsageAccount(options.begin, usage_report.end_of(options))
    for event in usage_report.with_progress(stored_events(database)):
        account.apply(event)
    while True:
        with database.reader() as tx:
            last = outbox.last_position(tx)
            waiting = outbox.waiting(tx)
            # Events that were given a position since the last read.
            rows = outbox.after(tx, account.position or 0, _PAGE)
        for row in rows or waiting:
            account.apply(Event.of_row(row))
        if not rows:
            if account.position is None and not last:
                account.nothing_happened()
            return usage_report.report(account, options, names)


def stored_events(database, position=0):
    """Return a generator of the events in the outbox after a position, as :class:`Event`."""
    while True:
        with database.reader() as tx:
            rows = outbox.after(tx, position, _PAGE)
        yield from map(Event.of_row, rows)
        if not rows:
            return
        position = rows[-1].position
