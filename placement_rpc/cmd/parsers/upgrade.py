# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage upgrade``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "status", help="show the releases at work and the remaining steps",
        description="Show the release and the pin of each service, what a newer pin would break, "
                    "how many compute nodes are migrated, which unpublished events have an old "
                    "version of their payload, whether calls that older services do not know "
                    "are open, and to which release going back is possible.")
    arguments.add_format(command, arguments.DOCUMENT)
    command.set_defaults(run="manage_upgrade.show_status")
