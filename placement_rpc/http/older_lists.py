# SPDX-License-Identifier: Apache-2.0
"""Lists from services of release 2026.2, during a rolling upgrade.

In contract 1.2 lists do not have the position that they include, providers are filtered by name
and by aggregates only, and a search for room is a call of its own. While a live service is at that
version, the facade does what that release's did: several calls for a list.
"""

from placement_rpc import exception
from placement_rpc.api import ResourceRequest, as_uuid
from placement_rpc.objects.resource_provider import ResourceProviderList

_FILTERS = frozenset(("name", "uuid", "member_of", "resources"))


def with_position(call, read):
    """Return a list with the position that it includes, None if no service knows positions.

    :param call: :class:`placement_rpc.http.call.Call`
    :param read: callable that returns a versioned object with ``position``
    """
    found = read()
    if found.value("position") is None:
        # The position is read before the list, or the list could lack a change.
        position = call.position()
        if position is not None:
            found = read()
        found.position = position
    return found


def can_filter(filters):
    """Return whether a service of contract 1.2 has the data of all filters.

    :param filters: dict of arguments of
        :meth:`placement_rpc.client.providers.ProviderCalls.list_providers`
    """
    return filters.keys() <= _FILTERS


def list_providers(call, name=None, uuid=None, member_of=(), resources=None):
    """Return a :class:`ResourceProviderList`; the parameters are those of the client's method.

    :param call: :class:`placement_rpc.http.call.Call`
    :raises ServiceTooOld: if a live service is older than contract 1.2
    """
    position = call.position()
    if resources:
        found = call.api.get_by_request(call.context, ResourceRequest(
            resources=resources, member_of=member_of)).objects
    elif uuid:
        found = _one(call, uuid, member_of)
    else:
        found = call.api.list_providers(
            call.context, name=name, member_of=member_of or None).objects
    return ResourceProviderList(position=position, objects=[
        each for each in found if name in (None, each.name)
        and (uuid is None or each.uuid == as_uuid("uuid", uuid))])


def _one(call, uuid, member_of):
    """Return the provider in a list if it exists and is in the aggregates."""
    try:
        found = call.api.get_provider(call.context, uuid)
        own = set(call.api.get_aggregates(
            call.context, uuid).aggregates) if member_of else set()
    except exception.ProviderNotFound:
        return []
    return [found] if all(own & set(uuids) for uuids in member_of) else []
