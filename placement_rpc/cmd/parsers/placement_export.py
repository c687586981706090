# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage placement export``."""

from placement_rpc.cmd import arguments
from placement_rpc.cmd.parsers import placement_database

_DESCRIPTION = """\
Make a database of OpenStack Placement equal to the store, as the way back: uuids, names and
generations are those of the store. The database is empty, with the tables that
'placement-manage db sync' makes, or one that an earlier export has filled. Run it again and
again while this service is in use: a later run brings only what has changed, and takes away
what has gone, so that the last one, with this service stopped, takes seconds. After an
interruption, run it again.

A database that holds anything else, or that Placement has changed since, is refused.

Placement has no events, no compute nodes and no stored outcomes of requests: these stay
here. Exits with 0 if both hold the same, 1 if not, 2 for wrong arguments."""


def add_command(commands):
    """Add ``export`` to the group.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = placement_database.add_command(
        commands, "export", "write the store to a database of Placement, as the way back",
        _DESCRIPTION, end="to")
    command.add_argument("--finish", action="store_true",
                         help="make this the last run: it removes the table placement_rpc_export, "
                              "by which a later run would know the database")
    arguments.add_batch(command, placement_database.BATCH)
    arguments.add_format(command)
    command.set_defaults(run="manage_placement_export.run")
