# SPDX-License-Identifier: Apache-2.0
"""Allocations of a consumer and of a provider (generic-resource-pools)."""

import types

from placement_rpc import exception
from placement_rpc.api import UNKNOWN_TYPE, as_uuid
from placement_rpc.http import claims, errors, older_lists, older_services, preconditions
from placement_rpc.http.call import NO_CONTENT, Answer, newest


def of_consumer(call):
    """Show the allocations of a consumer; an unknown consumer has none."""
    uuid = _named(call.path)
    if uuid is None:
        return Answer(body={"allocations": {}})
    held = older_lists.with_position(
        call, lambda: call.api.get_allocations(call.context, uuid))
    etag = preconditions.tag_of_consumer(held.value("consumer"))
    call.check_current(etag)
    return Answer(position=held.position, etag=etag, updated_at=newest([held]),
                  body=_body_of(held, call.version))


def _body_of(held, version):
    """Return the allocations of a consumer, and from 1.12 on whose they are."""
    generations = {each.provider_uuid: each.provider_generation for each in held.objects}
    body = {"allocations": {
        provider: {"generation": generations[provider], "resources": resources}
        for provider, resources in held.by_provider().items()}}
    consumer = held.value("consumer")
    if consumer is None:
        return body
    if version >= (1, 12):
        body |= {"project_id": consumer.project_id, "user_id": consumer.user_id}
    if version >= (1, 28):
        body["consumer_generation"] = consumer.generation
    if version >= (1, 38):
        body["consumer_type"] = consumer.value("consumer_type") or UNKNOWN_TYPE
    return body


def of_provider(call):
    """List the allocations from a provider, by consumer."""
    uuid = call.uuid()
    found = older_lists.with_position(
        call, lambda: call.api.get_provider_allocations(call.context, uuid))
    consumers = {}
    for each in found.objects:
        consumer = consumers.setdefault(each.consumer_uuid, {"resources": {}})
        consumer["resources"][each.resource_class] = each.used
        if call.version >= (1, 28):
            consumer["consumer_generation"] = each.value("consumer_generation")
    return Answer(
        position=found.position, etag=preconditions.tag(uuid, found.generation),
        updated_at=newest([found]),
        body={**call.spelling.generation(found.generation), "allocations": consumers})


def claimed(call):
    """Replace the allocations of a consumer."""
    uuid = _uuid(call.path)
    claim = claims.of_body(call, uuid, call.body)
    if call.must_be_new:
        if claim.value("consumer_generation"):
            raise preconditions.failed("a new consumer has no generation")
        claim.consumer_generation = call.expect_generation(0)
    else:
        claim.consumer_tags = call.consumer_tags(uuid)
    with claims.refusals(call, {uuid: call.body}):
        if not claim.allocations:
            call.api.set_allocations(call.context, [claim], request_id=call.request_id)
            return NO_CONTENT
        try:
            call.api.claim_allocations(call.context, claim, request_id=call.request_id)
        except exception.ServiceTooOld:
            older_services.claim(call, claim)
    return NO_CONTENT


def all_claimed(call):
    """Replace the allocations of several consumers, of all or of none."""
    call.refuse_condition()
    wanted = claims.of_bodies(call, call.body)
    with claims.refusals(call, {
            claim.consumer_uuid: body
            for claim, body in zip(wanted, call.body.values(), strict=True)}):
        call.api.set_allocations(call.context, wanted, request_id=call.request_id)
    return NO_CONTENT


def released(call):
    """Delete the allocations of a consumer."""
    uuid = _named(call.path)
    if uuid is None:
        raise exception.ConsumerNotFound(consumer=call.path["consumer_uuid"][:80])
    tags = call.consumer_tags(uuid)
    try:
        call.api.release_allocations(
            call.context, uuid, request_id=call.request_id, consumer_tags=tags)
    except exception.ServiceTooOld:
        older_services.release(call, uuid, tags)
    return NO_CONTENT


def owner(facade, path, _query, _body):
    """Return the consumer of an address; None if it has no allocations."""
    uuid = _named(path)
    # The facade reads it for itself: no rule of the caller admits this call.
    return uuid and facade.api.get_allocations(None, uuid).value("consumer")


def future_owner(facade, path, query, body):
    """Return the consumer of an address; if it has no allocations, the owner in the body.

    The body of a request before microversion 1.8 has none; that is the configured one.
    """
    known = owner(facade, path, query, body)
    if known:
        return known
    defaults = facade.conf.placement
    return types.SimpleNamespace(
        project_id=body.text("project_id") or defaults.incomplete_consumer_project_id,
        user_id=body.text("user_id") or defaults.incomplete_consumer_user_id)


def named_owner(facade, path, query, body):
    """Return the owner in the body, who is to have the allocations; as above if it names none."""
    project_id, user_id = body.text("project_id"), body.text("user_id")
    if project_id is None or user_id is None:
        return future_owner(facade, path, query, body)
    return types.SimpleNamespace(project_id=project_id, user_id=user_id)


def _named(path):
    """Return the uuid of the consumer in an address; None if it is not a uuid."""
    try:
        return as_uuid("consumer_uuid", path["consumer_uuid"])
    except exception.InvalidInput:
        return None


def _uuid(path):
    """As :func:`_named`.

    :raises BadRequest: if it is not a uuid
    """
    uuid = _named(path)
    if uuid is None:
        raise errors.BadRequest(
            reason=f"Malformed consumer_uuid: {path['consumer_uuid'][:80]}")
    return uuid
