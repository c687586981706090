# SPDX-License-Identifier: Apache-2.0
"""The tests of the peer that fail here on purpose, each with the reason.

A test that is listed and passes fails the run: the list can only shrink.
"""


def mark(file, tests):
    """Mark the tests of a file that fail on purpose.

    :param file: str, the name of a gabbi file without its suffix
    :param tests: list of dict, the file's tests
    """
