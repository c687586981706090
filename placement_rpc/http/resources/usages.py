# SPDX-License-Identifier: Apache-2.0
"""Usages of a provider (generic-resource-pools), and of a project (microversion 1.9)."""

import types

from placement_rpc.http import preconditions
from placement_rpc.http.call import Answer


def shown(call):
    """Show how much of each class of a provider is used."""
    found = call.api.get_usages(call.context, call.uuid())
    return Answer(
        body={**call.spelling.generation(found.generation), "usages": {
            each.resource_class: each.used for each in found.objects}},
        etag=preconditions.tag(found.provider_uuid, found.generation))


def of_project(call):
    """Show how much of each class a project uses, or one of its users."""
    call.refuse_condition()
    found = call.api.get_project_usages(call.context, **call.query)
    return Answer(body={"usages": found.usages})


def project(_facade, _path, query):
    """Return the project that is asked for, as the owner that a policy rule can refer to."""
    found = query.get("project_id")
    return types.SimpleNamespace(
        project_id=found[-1] if isinstance(found, list) else found, user_id=None)
