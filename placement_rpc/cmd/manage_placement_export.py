# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement export``: write the store to a database of Placement."""

from placement_rpc.cmd import arguments, moving_output, placement_url
from placement_rpc.moving import exporting, own_store

_COLUMNS = ["kind", "read", "created", "changed", "deleted"]
_DESCRIPTION = """\
Make a database of OpenStack Placement equal to the store, as the way back: uuids, names and
generations are those of the store. The database is empty, with the tables that
'placement-manage db sync' makes, or one that an earlier export has filled. Run it again and
again while this service is in use: a later run brings only what has changed, and takes away
what has gone, so that the last one, with this service stopped, takes seconds. A run that was
interrupted is simply run again.

A database that holds anything else, or that Placement has changed since, is refused.

Placement has no events, no compute nodes and no stored outcomes of requests: these stay
here. Exits with 0 if both hold the same, 1 if not, 2 for wrong arguments."""


def add_command(commands):
    """Add ``export`` to the group.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = commands.add_parser(
        "export", help="write the store to a database of Placement, as the way back",
        description=_DESCRIPTION, formatter_class=placement_url.Formatter)
    placement_url.add_arguments(command, "to", "Placement's database")
    command.add_argument("--finish", action="store_true",
                         help="make this the last run: it removes the table placement_rpc_export, "
                              "by which a later run would know the database")
    command.add_argument("--batch", type=arguments.positive, default=exporting.BATCH, metavar="N",
                         help="rows that are written in one transaction (default: %(default)s); "
                              "more are faster and take longer to repeat after an interruption")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="default: a table on a terminal, JSON elsewhere")
    command.set_defaults(run=_run)


def _run(database, options, _conf):
    def sizes():
        with own_store.opened(database) as store:
            return store.sizes()

    with moving_output.Findings(options.format) as findings:
        with moving_output.progress(sizes) as advance:
            done = exporting.export(
                database, placement_url.address_of(options, "to").url, options.batch,
                options.finish, findings.add, advance)
        findings.show([{"kind": kind, **counts._asdict()} for kind, counts in done.items()],
                      _COLUMNS)
    return 0
