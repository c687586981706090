# SPDX-License-Identifier: Apache-2.0
"""Claims in the bodies of requests, at every microversion, and the answers to those refused."""

import contextlib
import re

from placement_rpc import exception
from placement_rpc.api import Claim, as_uuid
from placement_rpc.http import errors, preconditions
from placement_rpc.objects import fields
from placement_rpc.schemas import common

_SUFFIX = re.compile(common.SUFFIX)
_MAPPINGS = fields.Mappings()


class GenerationConflict(exception.Conflict):
    """A consumer is not at the generation that the request names."""

    code = exception.ConcurrentUpdate.code
    message = "consumer generation conflict - expected {expected} but got {given}"


def of_body(call, uuid, body):
    """Return the claim in the body of a request, or in a part of it.

    Requests before 1.8 do not name the owner, so a consumer that has allocations keeps its own.
    Each accepted claim raises the generation of its consumer.

    :param call: :class:`placement_rpc.http.call.Call`
    :param uuid: str, uuid of the consumer
    :param body: dict, as its schema describes it
    :raises BadRequest: if a key is not a uuid, or is the same uuid as another one
    :raises ConstraintsViolated: if an amount is larger than any inventory can give
    """
    claim = Claim(
        consumer_uuid=uuid, allocations=_amounts(body["allocations"]), raise_generation=True,
        project_id=body.get("project_id", call.defaults.incomplete_consumer_project_id),
        user_id=body.get("user_id", call.defaults.incomplete_consumer_user_id))
    if "project_id" not in body:
        claim.keep_owner = True
    if "consumer_generation" in body:
        claim.consumer_generation = _generation(body["consumer_generation"])
    if "consumer_type" in body:
        claim.consumer_type = body["consumer_type"]
    mappings = {suffix: uuids for suffix, uuids in body.get("mappings", {}).items()
                if _is_mapping(suffix, uuids)}
    if mappings:
        claim.mappings = mappings
    return claim


def _is_mapping(suffix, uuids):
    """Return whether a mapping is one of a group.

    OpenStack Placement does not look at that of the group without a suffix.
    """
    if suffix:
        return _SUFFIX.fullmatch(suffix)
    try:
        return bool(_MAPPINGS.coerce(None, "mappings", {suffix: uuids}))
    except exception.InvalidInput:
        return False


def of_bodies(call, by_consumer):
    """Return the claims of many consumers, a list.

    :param by_consumer: dict of a consumer's uuid to the body of its claim
    :raises BadRequest: if a key is not a uuid, or is the same uuid as another one
    :raises ConstraintsViolated: if an amount is larger than any inventory can give
    """
    return [of_body(call, uuid, body)
            for uuid, body in by_uuid(by_consumer, "consumer").items()]


def _generation(given):
    """Return the generation that a consumer must have; 0 is that of one without allocations."""
    if given is None:
        return 0
    # No consumer has generation 0, which therefore conflicts as a negative one does.
    return preconditions.given_generation(given or -1)


def _amounts(allocations):
    """Return the amounts of a claim, a dict of provider uuid to dict of class name to int."""
    if isinstance(allocations, list):
        # The last entry of a provider counts.
        found = {as_uuid("uuid", each["resource_provider"]["uuid"]): each["resources"]
                 for each in allocations}
    else:
        found = {uuid: each["resources"]
                 for uuid, each in by_uuid(allocations, "resource provider").items()}
    for uuid, resources in found.items():
        for name, amount in resources.items():
            if amount > common.MAX_INT:
                # The service would refuse such a number as no amount.
                raise exception.ConstraintsViolated(
                    provider=uuid, resource_class=name[:255], requested=str(amount)[:80],
                    reason=f"no max_unit is above {common.MAX_INT}")
    return found


def by_uuid(values, what):
    """Return a dict with its keys in the canonical spelling of uuids."""
    found = {}
    for key, value in values.items():
        try:
            uuid = as_uuid(what, key)
        except exception.InvalidInput:
            raise errors.BadRequest(
                reason=f"JSON does not validate: {key!r} is not the uuid of a {what}") from None
        if uuid in found:
            raise errors.BadRequest(
                reason=f"JSON does not validate: the {what} {uuid} is named twice")
        found[uuid] = value
    return found


@contextlib.contextmanager
def refusals(call, wanted):
    """Answer refusals of claims with the statuses of OpenStack Placement.

    :param call: :class:`placement_rpc.http.call.Call`
    :param wanted: dict of a consumer's uuid to the body of its claim
    :raises GenerationConflict: if a consumer is not at the generation that its body names
    """
    try:
        with errors.bad_request(exception.ProviderNotFound, exception.ResourceClassNotFound):
            yield
    except exception.ConsumerConflict as error:
        if call.is_about_condition(error) or "given" not in error.kwargs:
            raise
        given = wanted.get(error.kwargs["consumer"], {}).get("consumer_generation")
        judged = error.kwargs["given"]
        if _generation(given) != judged:
            # A repeated request, whose first outcome is answered.
            given = judged or None
        raise GenerationConflict(
            expected=error.kwargs["current"] or "null", given=given) from None
