# SPDX-License-Identifier: Apache-2.0
"""Allocations of a consumer and of a provider (generic-resource-pools)."""

from placement_rpc import exception
from placement_rpc.api import Claim, as_uuid
from placement_rpc.http import errors, older_lists, older_services, preconditions
from placement_rpc.http.call import NO_CONTENT, Answer, newest


def of_consumer(call):
    """Show the allocations of a consumer; an unknown consumer has none."""
    uuid = _consumer(call)
    held = older_lists.with_position(
        call, lambda: call.api.get_allocations(call.context, uuid))
    generations = {each.provider_uuid: each.provider_generation for each in held.objects}
    etag = preconditions.tag_of_consumer(held.value("consumer"))
    call.check_current(etag)
    return Answer(position=held.position, etag=etag, updated_at=newest([held]), body={
        "allocations": {
            provider: {"generation": generations[provider], "resources": resources}
            for provider, resources in held.by_provider().items()}})


def of_provider(call):
    """List the allocations from a provider, by consumer."""
    uuid = call.uuid()
    found = older_lists.with_position(
        call, lambda: call.api.get_provider_allocations(call.context, uuid))
    consumers = {}
    for each in found.objects:
        consumers.setdefault(each.consumer_uuid, {"resources": {}})["resources"][
            each.resource_class] = each.used
    return Answer(
        position=found.position, etag=preconditions.tag(uuid, found.generation),
        updated_at=newest([found]),
        body={**call.spelling.generation(found.generation), "allocations": consumers})


def claimed(call):
    """Replace the allocations of a consumer."""
    uuid = _consumer(call)
    wanted = _wanted(call.body["allocations"])
    # Requests before 1.8 do not name the owner, so a consumer that has allocations keeps its own.
    is_named = "project_id" in call.body
    claim = Claim(
        consumer_uuid=uuid, allocations=wanted, keep_owner=not is_named,
        project_id=call.body.get("project_id", call.defaults.incomplete_consumer_project_id),
        user_id=call.body.get("user_id", call.defaults.incomplete_consumer_user_id))
    if call.must_be_new:
        claim.consumer_generation = call.expect_generation(0)
    else:
        claim.consumer_tags = call.consumer_tags(uuid)
    try:
        try:
            call.api.claim_allocations(call.context, claim, request_id=call.request_id)
        except exception.ServiceTooOld:
            older_services.claim(call, claim)
    except (exception.ProviderNotFound, exception.ResourceClassNotFound) as error:
        raise errors.BadRequest(reason=f"Unable to allocate: {error}") from None
    return NO_CONTENT


def released(call):
    """Delete the allocations of a consumer."""
    uuid = _consumer(call)
    tags = call.consumer_tags(uuid)
    try:
        call.api.release_allocations(
            call.context, uuid, request_id=call.request_id, consumer_tags=tags)
    except exception.ServiceTooOld:
        older_services.release(call, uuid, tags)
    return NO_CONTENT


def owner(facade, path, _query):
    """Return the consumer of an address; None if it has no allocations."""
    # The facade reads it for itself: no rule of the caller admits this call.
    return facade.api.get_allocations(None, _uuid(path)).value("consumer")


def future_owner(facade, path, query):
    """Return the consumer of an address, or the owner that a PUT would give it."""
    return owner(facade, path, query) or Claim(
        project_id=facade.conf.placement.incomplete_consumer_project_id,
        user_id=facade.conf.placement.incomplete_consumer_user_id)


def _consumer(call):
    return _uuid(call.path)


def _uuid(path):
    try:
        return as_uuid("consumer_uuid", path["consumer_uuid"])
    except exception.InvalidInput:
        raise errors.BadRequest(reason="Malformed consumer_uuid: "
                                       f"{path['consumer_uuid'][:80]}") from None


def _wanted(entries):
    """Return the requested amounts, a dict of provider uuid to dict of class name to int.

    :param entries: list of dicts of resource_provider and resources
    :raises BadRequest: if a class of a provider is given twice
    """
    found = {}
    for entry in entries:
        resources = found.setdefault(entry["resource_provider"]["uuid"], {})
        twice = resources.keys() & entry["resources"].keys()
        if twice:
            raise errors.BadRequest(reason=f"{min(twice)} of one resource provider is given twice")
        resources.update(entry["resources"])
    return found
