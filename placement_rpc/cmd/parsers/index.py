# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage index``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add ``index verify`` to the program.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "verify", help="compare the candidate index of every conductor with the store",
        description="Compare the candidate index of every live conductor with the database, "
                    "provider by provider, while the conductors work. An index that differs is "
                    "dropped and rebuilt. Without RabbitMQ, other processes cannot be called, and "
                    "an index is built in this process and compared. Exits with 1 if an index "
                    "differs or a conductor does not answer.")
    command.add_argument("--here", action="store_true",
                         help="build an index in this process and compare that one")
    arguments.add_format(command)
    command.set_defaults(run="manage_index.verify")
