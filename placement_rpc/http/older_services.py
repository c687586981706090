# SPDX-License-Identifier: Apache-2.0
"""Changes of allocations through services of release 2026.2, during a rolling upgrade.

Contract 1.2 has neither entity tags of consumers nor claims that keep the owner. While a live
service is at that version, the facade does what that release's did: it reads the consumer,
compares its generation, and names its owner. With If-Match, a change by another client in between
is refused, since the claim names the generation. As in that release, a request with If-Match that
is repeated after it succeeded is refused with 412, and a tag of earlier allocations can match
later ones.
"""

from placement_rpc import exception
from placement_rpc.api import Claim
from placement_rpc.http import preconditions


def claim(call, wanted):
    """Make a claim that keeps the owner, or that has entity tags.

    The mappings of the claim are lost, and a claim that changes nothing does not raise the
    generation of its consumer.

    :param call: :class:`placement_rpc.http.call.Call`
    :param wanted: :class:`placement_rpc.objects.claim.Claim` of contract 1.3
    :raises PreconditionFailed: if the consumer has none of the claim's tags
    :raises ServiceTooOld: if the claim names the type of the consumer
    """
    if wanted.value("consumer_type"):
        raise exception.ServiceTooOld(
            what="consumer_type", needed="1.3", found="1.2", who="a service")
    consumer = call.api.get_allocations(call.context, wanted.consumer_uuid).value("consumer")
    tags = wanted.value("consumer_tags")
    owner = consumer if consumer is not None and wanted.value("keep_owner") else wanted
    older = Claim(
        consumer_uuid=wanted.consumer_uuid, allocations=wanted.allocations,
        project_id=owner.project_id, user_id=owner.user_id,
        consumer_generation=wanted.value("consumer_generation"))
    if tags is not None:
        older.consumer_generation = call.expect_generation(_generation(consumer, tags))
    call.api.claim_allocations(call.context, older, request_id=call.request_id)


def release(call, uuid, tags):
    """Release everything that a consumer holds.

    :param tags: list of str, of which the consumer must have one
    :raises PreconditionFailed: if it has none of them
    """
    consumer = call.api.get_allocations(call.context, uuid).value("consumer")
    call.api.release_allocations(
        call.context, uuid, call.expect_generation(_generation(consumer, tags)),
        request_id=call.request_id)


def _generation(consumer, tags):
    """Return the generation of a consumer.

    :raises PreconditionFailed: if the consumer is None or has none of the tags
    """
    if consumer is None or not any(_is_tag_of(consumer, tag) for tag in tags):
        raise preconditions.failed()
    if not consumer.obj_attr_is_set("generation"):
        raise exception.ServiceTooOld(
            what="If-Match", needed="1.1", found="1.0", who="the service that answered")
    return consumer.generation


def _is_tag_of(consumer, tag):
    if tag == preconditions.ANY:
        return True
    row, _, generation = tag.rpartition("-")
    if row and consumer.value("tag"):
        return tag == consumer.tag
    # One of the two was read from a service of release 2026.2, and has the generation only.
    return generation == str(consumer.generation)
