# SPDX-License-Identifier: Apache-2.0
"""Traits, and the traits of resource providers (microversion 1.6)."""

import functools

from placement_rpc import exception
from placement_rpc.http import errors, names, preconditions
from placement_rpc.http.call import NO_CONTENT, NOW, Answer, all_pages, newest
from placement_rpc.objects.fields import is_trait_name
from placement_rpc.objects.trait import is_custom


def listed(call):
    """List traits; ``name`` and ``associated`` select among them."""
    call.refuse_condition()
    found = all_pages(functools.partial(
        call.api.list_traits, call.context, **_wanted(call.query)))
    return Answer(body={"traits": [each.name for each in found]}, updated_at=newest(found))


def _wanted(query):
    """Return the arguments of list_traits."""
    wanted = {}
    if "name" in query:
        operator, colon, value = query["name"].partition(":")
        if not colon:
            raise errors.BadRequest(
                reason="Badly formatted name parameter. Expected name query string parameter in "
                       "form: ?name=[in|startswith]:[name1,name2|prefix]. "
                       f"Got: \"{query['name'][:200]}\"")
        if operator == "in":
            # No trait has another name.
            wanted["names"] = [name for name in value.split(",") if is_trait_name(name)]
        elif operator == "startswith":
            wanted["prefix"] = value
    if "associated" in query:
        associated = query["associated"].lower()
        if associated not in ("true", "false"):
            raise errors.BadRequest(
                reason='The query parameter "associated" only accepts "true" or "false"')
        wanted["associated"] = associated == "true"
    return wanted


def shown(call):
    """Say whether a trait exists."""
    call.refuse_condition()
    return Answer(204, updated_at=newest([_found(call, call.path["name"])]))


def created(call):
    """Create a trait, or confirm that it exists."""
    name = _custom(call.path["name"])
    call.check_exists(lambda: _found(call, name), exception.TraitNotFound)
    location = f"{call.prefix}/traits/{name}"
    try:
        made = call.api.create_trait(call.context, name, request_id=call.request_id)
    except exception.TraitExists as error:
        return Answer(204, location=location, updated_at=error.kwargs["updated_at"])
    return Answer(201, location=location, updated_at=made.updated_at)


def _found(call, name):
    """Return a trait.

    :raises TraitNotFound: if there is none of the name
    """
    for trait in call.api.list_traits(call.context, names=[name]).objects if is_trait_name(
            name) else ():
        return trait
    raise exception.TraitNotFound(traits=name[:255])


def _custom(name):
    """Return the name of a custom trait.

    :raises BadRequest: if a custom trait cannot have it
    """
    if not is_custom(name):
        raise errors.BadRequest(
            reason="The trait is invalid. A valid trait must be no longer than 255 characters, "
                   "start with the prefix \"CUSTOM_\" and use following characters: "
                   "\"A\"-\"Z\", \"0\"-\"9\" and \"_\"")
    return name


def deleted(call):
    """Delete a trait."""
    call.refuse_condition()
    name = call.path["name"]
    if not is_trait_name(name):
        raise exception.TraitNotFound(traits=name[:255])
    call.api.delete_trait(call.context, name, request_id=call.request_id)
    return NO_CONTENT


def of_provider(call):
    """List the traits of a provider."""
    return _answered(call.api.get_provider_traits(call.context, call.uuid()))


def replaced(call):
    """Replace the traits of a provider."""
    uuid = call.uuid()
    generation = call.generation(uuid, call.body["resource_provider_generation"])
    with errors.bad_request(exception.TraitNotFound), \
            preconditions.before_values(call, uuid, generation):
        names.check_traits(call.body["traits"])
        found = call.api.set_provider_traits(
            call.context, uuid, call.body["traits"], generation, request_id=call.request_id)
    return _answered(found)


def cleared(call):
    """Remove all traits of a provider."""
    uuid = call.uuid()
    call.api.set_provider_traits(
        call.context, uuid, [], call.generation(uuid), request_id=call.request_id)
    return NO_CONTENT


def _answered(found):
    return Answer(
        body={"traits": found.traits, "resource_provider_generation": found.generation},
        etag=preconditions.tag(found.provider_uuid, found.generation), is_fixed=True,
        updated_at=found.updated_at if found.traits else NOW)
