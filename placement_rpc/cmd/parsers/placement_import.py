# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage placement import``."""

from placement_rpc.cmd import arguments
from placement_rpc.cmd.parsers import placement_database

_DESCRIPTION = """\
Make the store equal to a database of OpenStack Placement: uuids, names and generations
are those of Placement. Run it again and again while Placement serves: a later run brings
only what has changed, and takes away what has gone. After an interruption, run it again.

From the first run on the store is held: changes are refused with 503, casts wait in
their queue. Stop Placement, and run it a last time with --finish: the store then accepts
changes, a snapshot of all allocations enters the stream of events, and billing begins.
After that an import is refused.

What Placement's data may be and this store's may not is listed, with what is done about
each. Exits with 0 if the store is as said, 1 if not, 2 for wrong arguments."""


def add_command(commands):
    """Add ``import`` to the group.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = placement_database.add_command(
        commands, "import", "bring over a cloud's data from Placement's database",
        _DESCRIPTION, required=False)
    command.add_argument("--dry-run", action="store_true",
                         help="print what would be done, and change nothing")
    command.add_argument("--force", action="store_true",
                         help="read another database than the runs before did, if the cloud's "
                              "has got another address; the store becomes equal to it")
    command.add_argument("--finish", action="store_true",
                         help="accept changes after this run; without a database to read, after "
                              "the last complete run")
    arguments.add_batch(command, placement_database.BATCH)
    arguments.add_format(command)
    command.set_defaults(run="manage_placement_import.run")
