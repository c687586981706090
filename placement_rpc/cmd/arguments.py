# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands have, and their types.

Programs print their help without loading anything else, so this module imports nothing else.
"""

import argparse
import datetime
import uuid

# Seconds: a year, and three centuries.
_LONGEST = 366 * 86400.0
_OLDEST = 10 ** 10
_MOST_DIGITS = 19
_MAX_PORT = 65535
#: The formats of a command that prints rows, and of one that prints more than one table.
ROWS = ("table", "json", "csv", "yaml")
DOCUMENT = ("table", "json")


def add_format(command, formats=ROWS):
    """Add ``--format``, whose value :func:`placement_rpc.cmd.output.style_of` understands.

    :param command: the parser of the command
    :param formats: tuple of str, the formats that the command can print
    """
    command.add_argument("--format", choices=("auto", *formats), default="auto",
                         help="default: auto, a table on a terminal and JSON elsewhere")


def add_batch(command, default):
    """Add ``--batch``, the rows of one transaction.

    :param command: the parser of the command
    :param default: int
    """
    command.add_argument("--batch", type=positive, default=default, metavar="N",
                         help="rows that are written in one transaction (default: %(default)s); "
                              "more are faster and take longer to repeat after an interruption")


def positive(text):
    """Parse a whole number above zero, for argparse.

    :param text: str
    :returns: int
    :raises argparse.ArgumentTypeError: if it is something else
    """
    if not (_is_whole(text) and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def seconds(text):
    """Parse a number of seconds, for argparse.

    :param text: str
    :returns: float, from 0 to that of a year
    :raises argparse.ArgumentTypeError: if it is something else
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def age(text):
    """Parse a whole number of seconds that have passed, for argparse.

    :param text: str
    :returns: int
    :raises argparse.ArgumentTypeError: if it is something else
    """
    if not _is_whole(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    if int(text) > _OLDEST:
        raise argparse.ArgumentTypeError(f"{text} seconds are more than {_OLDEST}")
    return int(text)


def moment(text):
    """Parse a time in ISO 8601, for argparse; local time without a zone.

    :param text: str
    :returns: datetime in UTC
    :raises argparse.ArgumentTypeError: if it is not a time, or not one in UTC
    """
    try:
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time in ISO 8601, such as 2026-11-28T12:00") from None


def given_uuid(text):
    """Parse a uuid in any spelling, for argparse.

    :param text: str
    :returns: str, in lower case and with dashes
    :raises argparse.ArgumentTypeError: if it is something else
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a uuid") from None


def port(text):
    """Parse the number of a port, for argparse.

    :param text: str
    :returns: int
    :raises argparse.ArgumentTypeError: if it is something else
    """
    if not (_is_whole(text) and int(text) <= _MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to {_MAX_PORT}")
    return int(text)


def url(text):
    """Take a URL, for argparse.

    :param text: str
    :returns: str
    :raises argparse.ArgumentTypeError: if it is empty, as of a shell's variable that is not set
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _is_whole(text):
    # Python reads no more than some thousand digits.
    return text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS
