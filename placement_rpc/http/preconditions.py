# SPDX-License-Identifier: Apache-2.0
"""ETags, If-Match and If-None-Match (generic-resource-pools-draft, REST API impact; RFC 9110).

The tag of a provider and of everything below it is its uuid and its generation: what changes any
of them changes the generation.
"""

import re

from placement_rpc import exception

_TAG = re.compile(r'\s*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)')
_OURS = re.compile(r'"([0-9a-f-]{36})-([0-9]{1,19})"')

ANY = "*"
_NEWEST = 2 ** 63 - 1


def tag(uuid, generation):
    """:returns: str, the strong ETag of something at a generation"""
    return f'"{uuid}-{generation}"'


def tags(header):
    """What an If-Match or If-None-Match header names.

    :param header: str; None for none
    :returns: None for no header, :data:`ANY`, or a list of tags; an empty one where it is broken
    """
    if header is None:
        return None
    if header.strip() == ANY:
        return ANY
    found, at = [], 0
    while at < len(header):
        match = _TAG.match(header, at)
        if match is None:
            return []
        found.append(match[1])
        at = match.end()
    return found


def generations(wanted, uuid):
    """The generations at which a change may be made.

    :param wanted: as :func:`tags` returns it
    :returns: list of int; None where any is right
    :raises PreconditionFailed: where none is of that uuid
    """
    if wanted is None or wanted == ANY:
        return None
    matches = (_OURS.fullmatch(each) for each in wanted)
    found = [int(match[2]) for match in matches
             if match and match[1] == uuid and int(match[2]) <= _NEWEST]
    if not found:
        raise failed()
    return found


def failed(reason="no ETag of If-Match is the current one"):
    """:returns: :class:`PreconditionFailed`"""
    return exception.PreconditionFailed(reason=reason)


def is_not_modified(header, current):
    """Whether a client has what it asks for already.

    :param header: str, If-None-Match; None for none
    :param current: str, the current tag
    """
    wanted = tags(header)
    return wanted == ANY or (
        bool(wanted) and current in {each.removeprefix("W/") for each in wanted})
