# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider (generic-resource-pools)."""

from placement_rpc.api import as_uuid
from placement_rpc.http import preconditions
from placement_rpc.http.call import Answer

# The first microversion whose bodies have the generation of the provider.
_GENERATIONS = (1, 19)


def shown(call):
    """List the aggregates of a provider."""
    return _answered(call, call.api.get_aggregates(call.context, call.uuid()))


def replaced(call):
    """Replace the aggregates of a provider."""
    uuid, wanted, given = call.uuid(), call.body, None
    if isinstance(wanted, dict):
        given, wanted = wanted["resource_provider_generation"], wanted["aggregates"]
    found = call.api.set_aggregates(
        call.context, uuid, wanted, call.generation(uuid, given), request_id=call.request_id)
    # In the order in which they were given, as OpenStack Placement answers. Two spellings of one
    # uuid are one aggregate.
    found.aggregates = list(dict.fromkeys(as_uuid("aggregates", each) for each in wanted))
    answer = _answered(call, found)
    return answer if call.spelling.answers_changes else Answer(204, etag=answer.etag)


def _answered(call, found):
    body = {"aggregates": found.aggregates}
    if call.version >= _GENERATIONS:
        body |= call.spelling.generation(found.generation)
    return Answer(body=body, etag=preconditions.tag(found.provider_uuid, found.generation),
                  is_fixed=True)
