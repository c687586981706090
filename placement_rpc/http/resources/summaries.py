# SPDX-License-Identifier: Apache-2.0
"""Pages of all providers, and of consumers, with all that belongs to them."""

import types

from placement_rpc import exception
from placement_rpc.http import errors
from placement_rpc.http.call import Answer


def providers(call):
    """List a page of all resource providers with inventories, usages, traits and aggregates."""
    call.refuse_condition()
    found = call.api.list_provider_summaries(call.context, **_page(call))
    return _answer("provider_summaries", found)


def consumers(call):
    """List a page of consumers with their allocations."""
    call.refuse_condition()
    with errors.bad_request(exception.ProviderNotFound):
        found = call.api.list_consumers(
            call.context, project_id=call.query.get("project_id"),
            user_id=call.query.get("user_id"),
            provider_uuid=call.query.get("resource_provider"), **_page(call))
    # The tag of a consumer is that of another resource.
    return _answer("consumers", found, without="tag")


def _page(call):
    limit = call.query.get("limit")
    return {"marker": call.query.get("marker"), "limit": limit and min(int(limit), 2 ** 31 - 1)}


def _answer(name, found, without=None):
    return Answer(position=found.position, body={
        # Their fields have JSON values.
        name: [{field: each.value(field) for field in each.fields if field != without}
               for each in found.objects],
        "next": found.objects[-1].uuid if found.more else None})


def project(_facade, _path, query, _body):
    """Return the project that is asked for, as the owner that a policy rule can refer to."""
    return types.SimpleNamespace(project_id=query.get("project_id"), user_id=None)
