# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands have, and what their texts mean."""

import argparse
import uuid as uuids

from osc_lib import exceptions


def uuid(text):
    """A uuid, for argparse: what can be none is said before anything is written.

    :param text: str
    :returns: str, in its one spelling
    :raises argparse.ArgumentTypeError: when it is none
    """
    try:
        return str(uuids.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a uuid") from None


def positive(text):
    """A whole number above zero, for argparse.

    :param text: str
    :returns: int
    :raises argparse.ArgumentTypeError: when it is something else
    """
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def amount(text):
    """``CLASS=AMOUNT``, for argparse.

    :param text: str
    :returns: (str, int)
    :raises argparse.ArgumentTypeError: when it is something else
    """
    name, separator, number = text.partition("=")
    if not (name and separator and number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form CLASS=AMOUNT")
    return name, int(number)


def aggregates(text):
    """``AGG[,AGG]``, for argparse.

    :param text: str
    :returns: list of str
    :raises argparse.ArgumentTypeError: when one is no uuid
    """
    return [uuid(each) for each in text.split(",")]


def allocation(text):
    """``rp=UUID,CLASS=AMOUNT[,CLASS=AMOUNT]``, for argparse.

    :param text: str
    :returns: (str, dict): the provider and the amounts by class
    :raises argparse.ArgumentTypeError: when it is something else
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
    """A dict of pairs that were given one by one.

    :param pairs: list of (str, value)
    :param what: str, what the first of each pair is
    :returns: dict
    :raises osc_lib.exceptions.CommandError: when one was given twice, since only one of the
        values can be meant
    """
    found = {}
    for name, value in pairs:
        if name in found:
            raise exceptions.CommandError(f"{what} {name} is given twice")
        found[name] = value
    return found


def add_resource(parser, **how):
    """Add ``--resource CLASS=AMOUNT``, which may be repeated."""
    parser.add_argument("--resource", type=amount, action="append", metavar="CLASS=AMOUNT",
                        **how)


def resources_of(options):
    """What the ``--resource`` options ask for; an empty dict where there is none."""
    return without_repeats(options.resource or [], "resource class")
