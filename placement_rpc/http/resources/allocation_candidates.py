# SPDX-License-Identifier: Apache-2.0
"""The allocations that a request could get (microversion 1.10)."""

from placement_rpc import exception
from placement_rpc.http import candidates_query, errors, microversion
from placement_rpc.http.call import Answer


def listed(call):
    """List allocations that a request could get, and what their providers have."""
    call.refuse_condition()
    with errors.bad_request(exception.ResourceClassNotFound, exception.TraitNotFound,
                            exception.AnswerTooLarge):
        found = call.api.get_allocation_candidates(
            call.context, candidates_query.parse(call.query, call.version),
            microversion=microversion.text(call.version))
    return Answer(stream=found.chunks(), position=found.position)
