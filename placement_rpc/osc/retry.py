# SPDX-License-Identifier: Apache-2.0
"""Read-modify-write with retries, and the deletion of several resources."""

import random
import time

from osc_lib import exceptions

from placement_rpc.osc import client

_ATTEMPTS = 8
_FIRST_PAUSE = 0.02
_CONFLICTS = (409, 412)


def change(read, write):
    """Read, write a change based on the result, and retry both after a concurrent change.

    If the state is the same after a conflict, its reason is not a concurrent change but, for
    example, a name in use; it is raised at once.

    :param read: callable without arguments, whose results can be compared
    :param write: callable that takes the result of ``read``
    :returns: what ``write`` returns
    :raises placement_rpc.osc.client.Refused: the last error of ``write``
    """
    found = read()
    for attempt in range(_ATTEMPTS):
        try:
            return write(found)
        except client.Refused as refused:
            if refused.status not in _CONFLICTS or attempt + 1 == _ATTEMPTS:
                raise
            # A random pause, so that conflicting clients do not retry at the same moment.
            time.sleep(random.SystemRandom().uniform(0, _FIRST_PAUSE * 2 ** attempt))
            before, found = found, read()
            if found == before:
                raise
    raise AssertionError("the last attempt returns or raises")


def delete_each(names, delete):
    """Delete several resources; one that cannot be deleted does not stop the others.

    :param names: list of str
    :param delete: callable that takes one of them
    :raises placement_rpc.osc.client.Refused: the error, if there is only one name
    :raises osc_lib.exceptions.CommandError: with all errors, if there are several names
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
