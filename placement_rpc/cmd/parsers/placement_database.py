# SPDX-License-Identifier: Apache-2.0
"""The commands that are given the database of OpenStack Placement.

A URL on the command line is in the process list, with its password, while the command runs. So the
address can also be read from Placement's own configuration file.
"""

import argparse

#: Rows that an import or an export writes in one transaction.
BATCH = 1000


def add_command(commands, name, text, description, end="from", required=True):
    """Add a command with ``--END URL`` and ``--END-config PATH``, of which one can be given.

    :param commands: what ``add_subparsers`` of the group returned
    :param name: str, of the command
    :param text: str, what it does
    :param description: str, whose paragraphs are kept
    :param end: str, ``from`` or ``to``
    :param required: bool, whether the database has to be given
    :returns: the parser of the command
    """
    command = commands.add_parser(name, help=text, description=description,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    group = command.add_mutually_exclusive_group(required=required)
    group.add_argument(f"--{end}", dest=f"{end}_url", metavar="URL",
                       help="SQLAlchemy URL of Placement's database; it is visible in the process "
                            "list")
    group.add_argument(f"--{end}-config", dest=f"{end}_config", metavar="PATH",
                       help="read that URL from Placement's configuration file, option "
                            "[placement_database] connection, so that its password is in no "
                            "process list")
    return command
