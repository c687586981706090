# SPDX-License-Identifier: Apache-2.0
"""Inventories (generic-resource-pools)."""

import contextlib

from placement_rpc import exception
from placement_rpc.api import Inventory, canonical
from placement_rpc.http import errors, preconditions
from placement_rpc.http.call import NO_CONTENT, Answer

_FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
# The first microversions at which a capacity may be set below what is used, and at which the whole
# total may be reserved.
_BELOW_USE, _ALL_RESERVED = (1, 5), (1, 26)


def listed(call):
    """List the inventories of a provider."""
    found = call.api.get_inventory(call.context, call.uuid())
    return _all(call, found)


def shown(call):
    """Show the inventory of one class."""
    found = call.api.get_inventory(call.context, call.uuid())
    return _one(call, found, call.class_name())


def replaced(call):
    """Replace all inventories of a provider."""
    uuid = call.uuid()
    generation = call.generation(uuid, call.body["resource_provider_generation"])
    wanted = [_given(call, name, values) for name, values in call.body["inventories"].items()]
    with _known_classes():
        found = call.api.set_inventory(
            call.context, uuid, wanted, generation, request_id=call.request_id,
            allow_below_use=_allow_below_use(call))
    return _all(call, found)


def added(call):
    """Add the inventory of a class."""
    uuid = call.uuid()
    values = dict(call.body)
    name = values.pop("resource_class")
    generation = call.generation(uuid, values.pop("resource_provider_generation", None))
    wanted = _given(call, name, values)
    with _known_classes():
        found = call.api.add_inventory(
            call.context, uuid, wanted, generation, request_id=call.request_id)
    made = _one(call, found, canonical(name))
    return Answer(
        201, body=made.body if call.spelling.answers_changes else None, etag=made.etag,
        location=f"{call.spelling.address(call.prefix, uuid)}/inventories/{name}")


def updated(call):
    """Change the inventory of a class."""
    uuid, name = call.uuid(), call.class_name()
    values = dict(call.body)
    # The class in the address counts.
    values.pop("resource_class", None)
    generation = call.generation(uuid, values.pop("resource_provider_generation", None))
    found = call.api.update_inventory(
        call.context, uuid, _given(call, name, values), generation, request_id=call.request_id,
        allow_below_use=_allow_below_use(call))
    answer = _one(call, found, name)
    return answer if call.spelling.answers_changes else Answer(204, etag=answer.etag)


def deleted(call):
    """Delete the inventory of a class."""
    uuid, name = call.uuid(), call.class_name()
    call.api.delete_inventory(
        call.context, uuid, name, call.generation(uuid), request_id=call.request_id)
    return NO_CONTENT


def cleared(call):
    """Delete all inventories of a provider."""
    uuid = call.uuid()
    call.api.set_inventory(
        call.context, uuid, [], call.generation(uuid), request_id=call.request_id)
    return NO_CONTENT


def _allow_below_use(call):
    # None is the default of contract 1.3, which older services do not have to understand.
    return None if call.version >= _BELOW_USE and call.spelling.has_generations else False


@contextlib.contextmanager
def _known_classes():
    """Answer 400 instead of 404 for an unknown class, since the body names it."""
    try:
        yield
    except exception.ResourceClassNotFound as error:
        raise errors.BadRequest(
            reason=f"Unknown resource class in inventory: {error}") from None


def _given(call, name, values):
    if call.version < _ALL_RESERVED and values.get("reserved", 0) >= values["total"]:
        raise exception.InvalidInventory(
            resource_class=name, reason=f"{values['reserved']} reserved of a total of "
                                        f"{values['total']}")
    return Inventory(resource_class=name, **values)


def _values(inventory):
    return {name: getattr(inventory, name) for name in _FIELDS}


def _all(call, found):
    return Answer(
        body={**call.spelling.generation(found.generation), "inventories": {
            each.resource_class: _values(each) for each in found.objects}},
        etag=preconditions.tag(found.provider_uuid, found.generation))


def _one(call, found, name):
    for each in found.objects:
        if each.resource_class == name:
            body = {**call.spelling.generation(found.generation), **_values(each)}
            if not call.spelling.has_generations:
                body["resource_class"] = each.resource_class
            return Answer(body=body, etag=preconditions.tag(
                found.provider_uuid, found.generation))
    raise exception.InventoryNotFound(provider=found.provider_uuid, resource_class=name)
