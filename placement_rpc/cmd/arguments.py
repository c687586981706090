# SPDX-License-Identifier: Apache-2.0
"""Types of arguments that several commands have."""

import argparse


def positive(text):
    """Parse a whole number above zero, for argparse.

    :param text: str
    :returns: int
    :raises argparse.ArgumentTypeError: if it is something else
    """
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)
