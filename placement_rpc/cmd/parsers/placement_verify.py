# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage placement verify``."""

import argparse

from placement_rpc.cmd import arguments
from placement_rpc.cmd.parsers import placement_database

_LONGEST_WAIT = 3600
#: Differences of each kind that a table has.
LIMIT = 50
_DESCRIPTION = """\
Compare every row of a database of OpenStack Placement with the store, and print the differences.
Nothing is changed, and both may be in use meanwhile: what differs is read again after a moment.

A difference is called younger if use explains it: a row has changed while it was compared, or
since the last import, or was deleted since. The next import brings what is younger in Placement.
Run it after the last import, with Placement stopped: then there must be no difference at all.

Exits with 0 if there are no differences, 1 if there are any, and 2 if the stores could not be
compared: a database cannot be reached, is not one of Placement, or the arguments are wrong."""


def add_command(commands):
    """Add ``verify`` to the group.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = placement_database.add_command(
        commands, "verify", "compare every row of Placement's database with the store",
        _DESCRIPTION)
    command.add_argument("--allow-younger", action="store_true",
                         help="exit with 0 if all differences are younger")
    command.add_argument("--wait", type=_seconds, default=1.0, metavar="SECONDS",
                         help="how long to wait before what differs is read again (default: "
                              "%(default)s); more tells more of the rows that change all the time")
    command.add_argument("--limit", type=_whole_number, default=None, metavar="N",
                         help="how many differences of each kind to print; all are counted "
                              f"(default: {LIMIT} in a table, all in JSON and YAML)")
    arguments.add_format(command)
    command.set_defaults(run="manage_placement_verify.run", failure=2)


def _seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= _LONGEST_WAIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_LONGEST_WAIT}")
    return number


def _whole_number(text):
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
