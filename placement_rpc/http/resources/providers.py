# SPDX-License-Identifier: Apache-2.0
"""Resource providers (generic-resource-pools; resource-providers-get-by-request)."""

import dataclasses
import itertools

from placement_rpc import exception
from placement_rpc.api import ResourceRequest, as_name, as_uuid
from placement_rpc.http import errors, names, older_lists, preconditions, request_groups
from placement_rpc.http.call import NO_CONTENT, Answer, newest
from placement_rpc.http.spelling import BEFORE_TREES

_OF_GROUPS = tuple(each.name for each in dataclasses.fields(request_groups.RequestGroup))
# The first microversion at which a provider that has a parent may get another, or none.
_MAY_MOVE = (1, 37)


def listed(call):
    """List all providers, or those that match the query."""
    call.refuse_condition()
    with errors.bad_request(exception.ResourceClassNotFound, exception.TraitNotFound), \
            errors.too_many_values():
        filters = _filters(call)
        if filters is None:
            return _list(call, [], call.position())
        try:
            found = older_lists.with_position(
                call, lambda: call.api.list_providers(call.context, **filters))
        except exception.ServiceTooOld:
            if not older_lists.can_filter(filters):
                raise
            found = older_lists.list_providers(call, **filters)
    return _list(call, found.objects, found.position)


def _filters(call):
    """Return the arguments of list_providers; None if no provider can have the name.

    :raises ResourceClassNotFound: if no class can have one of the names
    :raises TraitNotFound: if no trait can
    """
    query, group = call.query, request_groups.group(call.query, call.version)
    # An empty name filters nothing.
    name = query.get("name") or None
    names.check_traits(itertools.chain(*group.required, group.forbidden))
    names.check_classes(group.resources)
    if name is not None and not _may_be_a_name(name):
        return None
    found = {"name": name, "uuid": query.get("uuid"), **{
        each: getattr(group, each) for each in _OF_GROUPS}}
    return {key: value for key, value in found.items() if value}


def _may_be_a_name(text):
    try:
        return bool(as_name(text))
    except exception.InvalidInput:
        return False


def _list(call, providers, position):
    return Answer(body={call.spelling.collection: [
        call.spelling.of_provider(each, call.version, call.prefix) for each in providers]},
        position=position, updated_at=newest(providers))


def requested(call):
    """List the providers that have room for a request (POST ?request)."""
    call.refuse_condition()
    with errors.bad_request(exception.ResourceClassNotFound):
        found = older_lists.with_position(call, lambda: call.api.get_by_request(
            call.context, ResourceRequest(**call.body)))
    # Without parents and roots, which the candidates do not carry.
    version = min(call.version, BEFORE_TREES)
    return Answer(
        body={call.spelling.collection: [
            call.spelling.of_provider(each, version, call.prefix) for each in found.objects]},
        position=found.position)


def created(call):
    """Create a provider."""
    return Answer(201, **_created(call, _make(call)))


def created_and_shown(call):
    """Create a provider, and show it (microversion 1.20)."""
    made = _make(call)
    return Answer(
        200, body=call.spelling.of_provider(made, call.version, call.prefix),
        updated_at=newest([made]), **_created(call, made))


def _created(call, made):
    return {"location": call.spelling.address(call.prefix, made.uuid),
            "etag": preconditions.tag(made.uuid, made.generation)}


def _make(call):
    call.refuse_condition()
    name, uuid, parent = (
        call.body.get(key) for key in ("name", "uuid", "parent_provider_uuid"))
    try:
        return call.api.create_provider(call.context, name, uuid, request_id=call.request_id,
                                        parent_provider_uuid=parent)
    except exception.ParentNotFound as error:
        is_own = uuid and as_uuid("uuid", uuid) == error.kwargs["parent"]
        reason = "parent provider UUID cannot be same as UUID" if is_own else error.text
        raise errors.BadRequest(
            reason=f'Unable to create resource provider "{name}", {uuid}: {reason}') from None


def shown(call):
    """Show a provider."""
    found = call.api.get_provider(call.context, call.uuid())
    return _answered(call, found)


def updated(call):
    """Rename a provider, or move it to another parent."""
    uuid, more = call.uuid(), {}
    if "parent_provider_uuid" in call.body:
        more = {"parent_provider_uuid": call.body["parent_provider_uuid"],
                "may_move": None if call.version >= _MAY_MOVE else False}
    try:
        found = call.api.update_provider(
            call.context, uuid, call.body["name"], call.generation(uuid),
            request_id=call.request_id, **more)
    except (exception.ParentFixed, exception.ParentNotFound, exception.TreeLoop) as error:
        reason = error.text
        if isinstance(error, exception.ParentFixed):
            verb = "re-parenting" if more["parent_provider_uuid"] else "un-parenting"
            reason = f"{verb} a provider is not currently allowed."
        raise errors.BadRequest(
            reason=f"Unable to save resource provider {uuid}: {reason}") from None
    if call.spelling.answers_changes:
        return _answered(call, found)
    return Answer(204, etag=preconditions.tag(found.uuid, found.generation))


def _answered(call, provider):
    return Answer(body=call.spelling.of_provider(provider, call.version, call.prefix),
                  etag=preconditions.tag(provider.uuid, provider.generation), is_fixed=True,
                  updated_at=newest([provider]))


def deleted(call):
    """Delete a provider."""
    uuid = call.uuid()
    call.api.delete_provider(
        call.context, uuid, call.generation(uuid), request_id=call.request_id)
    return NO_CONTENT
