# SPDX-License-Identifier: Apache-2.0
"""Changes of what was read before, which others may change at the same time."""

import random
import time

from osc_lib import exceptions

from placement_rpc.osc import client

_ATTEMPTS = 8
_FIRST_PAUSE = 0.02
_OVERTAKEN = (409, 412)


def change(read, write):
    """Read, write what follows from it, and begin again when somebody was faster.

    A conflict that is none of time, such as a name in use, is told at once: what was read is
    then still the same.

    :param read: callable without arguments, giving anything that compares
    :param write: callable taking what was read
    :returns: what ``write`` returns
    :raises placement_rpc.osc.client.Refused: the last refusal
    """
    found = read()
    for attempt in range(_ATTEMPTS):
        try:
            return write(found)
        except client.Refused as refused:
            if refused.status not in _OVERTAKEN or attempt + 1 == _ATTEMPTS:
                raise
            # Those who collided do not come back at the same moment.
            time.sleep(random.SystemRandom().uniform(0, _FIRST_PAUSE * 2 ** attempt))
            before, found = found, read()
            if found == before:
                raise
    raise AssertionError("the last attempt returns or raises")


def delete_each(names, delete):
    """Delete several things, and go on when one can not be.

    :param names: list of str
    :param delete: callable taking one of them
    :raises placement_rpc.osc.client.Refused: of the one, where one was to be deleted
    :raises osc_lib.exceptions.CommandError: telling every refusal, where there were several
    """
    if len(names) == 1:
        delete(names[0])
        return
    reasons = []
    for name in names:
        try:
            delete(name)
        except client.Refused as refused:
            reasons.append(f"{name}: {refused}")
    if reasons:
        raise exceptions.CommandError(
            f"{len(reasons)} of {len(names)} were not deleted: {'; '.join(reasons)}")
