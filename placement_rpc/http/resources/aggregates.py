# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider (generic-resource-pools)."""

from placement_rpc.http import preconditions
from placement_rpc.http.call import Answer


def shown(call):
    """List the aggregates of a provider."""
    return _answered(call.api.get_aggregates(call.context, call.uuid()))


def replaced(call):
    """Replace the aggregates of a provider."""
    uuid = call.uuid()
    answer = _answered(call.api.set_aggregates(
        call.context, uuid, call.body, call.generation(uuid), request_id=call.request_id))
    return answer if call.spelling.answers_changes else Answer(204, etag=answer.etag)


def _answered(found):
    return Answer(body={"aggregates": found.aggregates},
                  etag=preconditions.tag(found.provider_uuid, found.generation), is_fixed=True)
