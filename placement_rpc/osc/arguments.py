# SPDX-License-Identifier: Apache-2.0
"""Arguments of several commands, and the parsing of their values."""

import argparse
import uuid as uuids

from osc_lib import exceptions


def uuid(text):
    """Parse a uuid, for argparse, so that a malformed one is refused before any request.

    :param text: str
    :returns: str, in canonical spelling
    :raises argparse.ArgumentTypeError: if it is not a uuid
    """
    try:
        return str(uuids.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a uuid") from None


def positive(text):
    """Parse a whole number above zero, for argparse.

    :param text: str
    :returns: int
    :raises argparse.ArgumentTypeError: if it is something else
    """
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def amount(text):
    """Parse ``CLASS=AMOUNT``, for argparse.

    :param text: str
    :returns: tuple of str and int
    :raises argparse.ArgumentTypeError: if it is something else
    """
    name, separator, number = text.partition("=")
    if not (name and separator and number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form CLASS=AMOUNT")
    return name, int(number)


def aggregates(text):
    """Parse ``AGG[,AGG]``, for argparse.

    :param text: str
    :returns: list of str
    :raises argparse.ArgumentTypeError: if one is not a uuid
    """
    return [uuid(each) for each in text.split(",")]


def allocation(text):
    """Parse ``rp=UUID,CLASS=AMOUNT[,CLASS=AMOUNT]``, for argparse.

    :param text: str
    :returns: tuple of the provider's uuid and a dict of class name to amount
    :raises argparse.ArgumentTypeError: if it is something else
    """
    first, *rest = text.split(",")
    key, _, provider = first.partition("=")
    if key != "rp" or not provider or not rest:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not of the form rp=UUID,CLASS=AMOUNT[,CLASS=AMOUNT]")
    pairs = [amount(each) for each in rest]
    resources = dict(pairs)
    if len(resources) < len(pairs):
        raise argparse.ArgumentTypeError(f"{text!r} names a resource class twice")
    return uuid(provider), resources


def without_repeats(pairs, what):
    """Return a dict of pairs that were given as separate options.

    :param pairs: list of tuples of str and value
    :param what: str, the name of the keys in the error
    :raises osc_lib.exceptions.CommandError: if a key is given twice, since only one of the values
        can be meant
    """
    found = {}
    for name, value in pairs:
        if name in found:
            raise exceptions.CommandError(f"{what} {name} is given twice; give it once")
        found[name] = value
    return found


def add_resource(parser, **how):
    """Add ``--resource CLASS=AMOUNT``, which can be repeated."""
    parser.add_argument("--resource", type=amount, action="append", metavar="CLASS=AMOUNT",
                        **how)


def resources_of(options):
    """Return the amounts of the ``--resource`` options, an empty dict if there are none."""
    return without_repeats(options.resource or [], "resource class")
