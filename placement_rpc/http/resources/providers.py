# SPDX-License-Identifier: Apache-2.0
"""Resource providers (generic-resource-pools; resource-providers-get-by-request)."""

from placement_rpc import exception
from placement_rpc.api import ResourceRequest, as_name, as_uuid
from placement_rpc.http import errors, preconditions
from placement_rpc.http.call import NO_CONTENT, Answer


def listed(call):
    """List all providers, or those that match the query."""
    call.refuse_condition()
    position = call.position()
    return _list(call, _chosen(call), position)


def requested(call):
    """List the providers that have room for a request (POST ?request)."""
    call.refuse_condition()
    position = call.position()
    return _list(call, _with_room(call, **call.body), position)


def _list(call, providers, position):
    return Answer(body={call.spelling.collection: [
        call.spelling.of_provider(each, call.version, call.prefix) for each in providers]},
        position=position)


def _with_room(call, resources, **values):
    try:
        return call.api.get_by_request(
            call.context, ResourceRequest(resources=resources, **values)).objects
    except exception.ResourceClassNotFound as error:
        raise errors.BadRequest(reason=f"Invalid resource class in resources: {error}") from None


def _chosen(call):
    query = call.query
    member_of = [_aggregates(query["member_of"])] if "member_of" in query else []
    name = query.get("name")
    if name is not None and not _may_be_a_name(name):
        return []
    if "resources" in query:
        found = _with_room(call, amounts(query["resources"]), member_of=member_of)
    elif "uuid" in query:
        found = _one(call, query["uuid"], member_of)
    else:
        return call.api.list_providers(
            call.context, name=name, member_of=member_of or None).objects
    return [each for each in found if name in (None, each.name)
            and ("uuid" not in query or each.uuid == as_uuid("uuid", query["uuid"]))]


def _may_be_a_name(text):
    try:
        return bool(as_name(text))
    except exception.InvalidInput:
        return False


def _one(call, uuid, member_of):
    try:
        found = call.api.get_provider(call.context, uuid)
        if member_of and not set(member_of[0]) & set(
                call.api.get_aggregates(call.context, uuid).aggregates):
            return []
    except exception.ProviderNotFound:
        return []
    return [found]


def _aggregates(text):
    """Parse a uuid, or ``in:`` and several, into a list of uuids."""
    return text.removeprefix("in:").split(",") if text.startswith("in:") else [text]


def amounts(text):
    """Parse the amounts of a query parameter.

    :param text: str, like ``VCPU:2,MEMORY_MB:1024``
    :returns: dict of class name to int
    :raises BadRequest: if the text has another form or names a class twice
    """
    found = {}
    for part in text.split(","):
        name, _, amount = part.partition(":")
        if not (name and amount.isascii() and amount.isdigit() and len(amount) < 20):
            raise errors.BadRequest(
                reason="Badly formed resources parameter. Expected resources query string "
                       "parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. "
                       f"Got: {text[:200]}")
        if name in found:
            raise errors.BadRequest(
                reason=f"Badly formed resources parameter: {name[:80]} is named twice")
        found[name] = int(amount)
    return found


def explained(call):
    """Show for each provider whether a request fits and, if not, why (POST ?explain)."""
    call.refuse_condition()
    position = call.position()
    body = dict(call.body)
    limit, marker = body.pop("limit", None), body.pop("marker", None)
    try:
        found = call.api.explain(
            call.context, ResourceRequest(**body), marker=marker, limit=limit).objects
    except (exception.ResourceClassNotFound, exception.ProviderNotFound) as error:
        raise errors.BadRequest(reason=str(error)) from None
    return Answer(position=position, body={call.spelling.collection: [
        {"uuid": each.provider_uuid, "name": each.name, "generation": each.generation,
         "fits": each.fits, "reasons": each.reasons} for each in found]})


def created(call):
    """Create a provider."""
    call.refuse_condition()
    made = call.api.create_provider(
        call.context, call.body["name"], call.body.get("uuid"), request_id=call.request_id)
    return Answer(201, location=call.spelling.address(call.prefix, made.uuid),
                  etag=preconditions.tag(made.uuid, made.generation))


def shown(call):
    """Show a provider."""
    found = call.api.get_provider(call.context, call.uuid())
    return _answered(call, found)


def renamed(call):
    """Rename a provider."""
    uuid = call.uuid()
    found = call.api.update_provider(
        call.context, uuid, call.body["name"], call.generation(uuid),
        request_id=call.request_id)
    if call.spelling.answers_changes:
        return _answered(call, found)
    return Answer(204, etag=preconditions.tag(found.uuid, found.generation))


def _answered(call, provider):
    return Answer(body=call.spelling.of_provider(provider, call.version, call.prefix),
                  etag=preconditions.tag(provider.uuid, provider.generation), is_fixed=True)


def deleted(call):
    """Delete a provider."""
    uuid = call.uuid()
    call.api.delete_provider(
        call.context, uuid, call.generation(uuid), request_id=call.request_id)
    return NO_CONTENT
