# SPDX-License-Identifier: Apache-2.0
"""Usages of a provider (generic-resource-pools), and of a project (microversion 1.9)."""

import types

from placement_rpc.http import preconditions
from placement_rpc.http.call import Answer

# Asked for instead of a type: all consumers together.
_ALL = "all"
_COUNT = "consumer_count"


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


def of_types(call):
    """Show how much of each class the consumers of a project use, by their types."""
    call.refuse_condition()
    query = dict(call.query)
    together = query.get("consumer_type") == _ALL
    if together:
        del query["consumer_type"]
    found = call.api.get_project_usages(call.context, **query)
    usages = {name: {**each["usages"], _COUNT: each["consumers"]}
              for name, each in found.by_type.items()}
    if together and usages:
        usages = {_ALL: {**found.usages, _COUNT: sum(each[_COUNT] for each in usages.values())}}
    return Answer(body={"usages": usages})


def project(_facade, _path, query, _body):
    """Return the project that is asked for, as the owner that a policy rule can refer to."""
    return types.SimpleNamespace(project_id=query.get("project_id"), user_id=None)
