# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement``: move over from OpenStack Placement, and back.

Each command is a module of its own, which is listed in ``_COMMANDS`` and adds itself to the group.
"""

import types

from placement_rpc.cmd import (
    manage_placement_export,
    manage_placement_import,
    manage_placement_shadow,
    manage_placement_verify,
)

# Modules with a function ``add_command``, in the order of ``--help``, which is that of a move.
_COMMANDS: tuple[types.ModuleType, ...] = (
    manage_placement_shadow, manage_placement_import, manage_placement_verify,
    manage_placement_export)


def add_commands(groups):
    """Add the group to the parser.

    :param groups: what ``add_subparsers`` of the program returned
    """
    commands = groups.add_parser(
        "placement", help="move over from OpenStack Placement, and back",
        description="Move over from OpenStack Placement, and back.").add_subparsers(
            dest="command", required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add_command(commands)
