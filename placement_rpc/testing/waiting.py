# SPDX-License-Identifier: Apache-2.0
"""Wait for what no event or thread of a test announces."""

import time


def wait_until(condition, seconds=60, message=None):
    """Wait until a condition holds.

    :param condition: function; its result is returned once it is true
    :param message: function that returns what to say of a condition that does not hold in time
    :raises TimeoutError: if it does not hold in time
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(message() if message else "The condition does not hold")
        time.sleep(0.02)
    return found
