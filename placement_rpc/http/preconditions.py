# SPDX-License-Identifier: Apache-2.0
"""ETags, If-Match and If-None-Match (generic-resource-pools-draft, REST API impact; RFC 9110).

The tag of a provider, and of everything below its address, is made of its uuid and its generation,
since every change to them raises the generation. The tag of a consumer is made of its uuid and of
the tag that the service gives it.
"""

import contextlib
import re

from placement_rpc import exception
from placement_rpc.schemas import common

_TAG = re.compile(r'\s*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)')
_OURS = re.compile(r'"([0-9a-f-]{36})-([0-9]{1,19})"')

ANY = "*"
# No consumer has a longer tag, and none needs to be compared with more.
_LONGEST_TAG, _MOST_TAGS = 64, 100


def tag(uuid, generation):
    """Return the strong ETag of a resource at a generation."""
    return f'"{uuid}-{generation}"'


def tag_of_consumer(consumer):
    """Return the strong ETag of a consumer.

    :param consumer: :class:`placement_rpc.objects.consumer.Consumer`; None for one without
        allocations
    :returns: str; None for a consumer without allocations
    """
    if consumer is None:
        return None
    # A service of release 2026.2 gives it no tag.
    return tag(consumer.uuid, consumer.value("tag") or consumer.generation)


def tags(header):
    """Parse an If-Match or If-None-Match header.

    :param header: str; None if the request does not have it
    :returns: None without a header, :data:`ANY`, or a list of tags, empty for a malformed header
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
    """Return the generations at which a change may be made.

    :param wanted: as :func:`tags` returns it
    :returns: list of int; None if any generation will do
    :raises PreconditionFailed: if no tag belongs to the uuid
    """
    if wanted is None or wanted == ANY:
        return None
    matches = (_OURS.fullmatch(each) for each in wanted)
    found = [int(match[2]) for match in matches
             if match and match[1] == uuid and int(match[2]) <= common.MAX_GENERATION]
    if not found:
        raise failed()
    return found


def given_generation(given):
    """Return the generation that a body names; one that nothing can have becomes the highest.

    No provider and no consumer reaches the highest, so it conflicts with all of them, and the
    service answers as for any other generation that is not the current one.

    :param given: int
    """
    return given if 0 <= given <= common.MAX_GENERATION else common.MAX_GENERATION


def consumer_tags(wanted, uuid):
    """Return the tags, of which a consumer must have one.

    :param wanted: as :func:`tags` returns it
    :returns: list of str; None if the consumer may have any tag, or none
    :raises PreconditionFailed: if no tag belongs to the uuid
    """
    if wanted is None:
        return None
    if wanted == ANY:
        return [ANY]
    begin = f'"{uuid}-'
    found = [each[len(begin):-1] for each in wanted if each.startswith(begin)]
    found = [each for each in found if 1 <= len(each) <= _LONGEST_TAG][:_MOST_TAGS]
    if not found:
        raise failed()
    return found


def failed(reason="no ETag of If-Match is the current one"):
    """Return a :class:`PreconditionFailed`."""
    return exception.PreconditionFailed(reason=reason)


def is_not_modified(header, current):
    """Return whether the client's copy is current.

    :param header: str, If-None-Match; None if the request does not have it
    :param current: str, the current tag
    """
    wanted = tags(header)
    return wanted == ANY or (
        bool(wanted) and current in {each.removeprefix("W/") for each in wanted})


@contextlib.contextmanager
def before_values(call, uuid, generation):
    """Report a missing provider or a stale generation before invalid values in the body.

    A client that is told of a conflict reads again and repeats its request.

    :param generation: int, as of :meth:`placement_rpc.http.call.Call.generation`
    :raises ProviderNotFound: instead of an error of the values, if there is no such provider
    :raises ConcurrentUpdate: the same, if it has another generation
    """
    try:
        yield
    except (exception.InvalidInventory, exception.ResourceClassNotFound,
            exception.TraitNotFound):
        check_provider(call, uuid, generation)
        raise


def check_provider(call, uuid, generation):
    """Check that a provider exists, and that a generation is its own; None is that of any.

    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if it has another generation
    """
    current = call.api.get_provider(call.context, uuid).generation
    if generation not in (None, current):
        raise exception.ConcurrentUpdate(
            provider=uuid, current=current, given=generation) from None
