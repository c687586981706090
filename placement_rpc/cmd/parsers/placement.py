# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage placement``: a module for each command."""

from placement_rpc.cmd.parsers import (
    placement_export,
    placement_import,
    placement_shadow,
    placement_verify,
)

# In the order of a move.
_COMMANDS = (placement_shadow, placement_import, placement_verify, placement_export)


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add_command(commands)
