# SPDX-License-Identifier: Apache-2.0
"""Usages of a provider (generic-resource-pools)."""

from placement_rpc.http import preconditions
from placement_rpc.http.call import Answer


def shown(call):
    """Show how much of each class of a provider is used."""
    found = call.api.get_usages(call.context, call.uuid())
    return Answer(
        body={**call.spelling.generation(found.generation), "usages": {
            each.resource_class: each.used for each in found.objects}},
        etag=preconditions.tag(found.provider_uuid, found.generation))
