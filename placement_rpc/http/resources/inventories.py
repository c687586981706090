# SPDX-License-Identifier: Apache-2.0
"""Inventories (generic-resource-pools)."""

from placement_rpc import exception
from placement_rpc.api import Inventory, canonical, capacity_of
from placement_rpc.http import errors, names, preconditions
from placement_rpc.http.call import NO_CONTENT, Answer, newest

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
    expected = call.generation(uuid, call.body.get("resource_provider_generation"))
    with errors.bad_request(exception.ResourceClassNotFound), \
            preconditions.before_values(call, uuid, expected):
        names.check_classes(call.body["inventories"])
        found = call.api.set_inventory(
            call.context, uuid, [
                _given(call, name, values) for name, values in call.body["inventories"].items()],
            expected, request_id=call.request_id, allow_below_use=_allow_below_use(call))
    return _all(call, found)


def added(call):
    """Add the inventory of a class."""
    uuid, name = call.uuid(), call.body["resource_class"]
    # An inventory that does not exist yet is not based on anything that was read: the generation
    # in the body is ignored.
    expected = call.generation(uuid)
    with errors.bad_request(exception.ResourceClassNotFound), \
            preconditions.before_values(call, uuid, expected):
        found = call.api.add_inventory(
            call.context, uuid, _given(call, name, call.body), expected,
            request_id=call.request_id)
    made = _one(call, found, canonical(name))
    answered = {"body": made.body, "updated_at": made.updated_at} if (
        call.spelling.answers_changes) else {}
    return Answer(
        201, etag=made.etag, **answered,
        location=f"{call.spelling.address(call.prefix, uuid)}/inventories/{name}")


def updated(call):
    """Change the inventory of a class; the one in the address counts, not one in the body."""
    uuid, name = call.uuid(), call.class_name()
    expected = call.generation(uuid, call.body.get("resource_provider_generation"))
    # The address of a pool's inventory is that of a resource, as the draft says.
    missing = (exception.InventoryNotFound,) if call.spelling.has_generations else ()
    with errors.bad_request(*missing), preconditions.before_values(call, uuid, expected):
        found = call.api.update_inventory(
            call.context, uuid, _given(call, name, call.body), expected,
            request_id=call.request_id, allow_below_use=_allow_below_use(call))
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


def record(name, values):
    """Return the inventory of a class.

    :param values: dict of the other fields; a generation among them is ignored
    """
    return Inventory(resource_class=name, **{
        field: values[field] for field in _FIELDS if field in values})


def _given(call, name, values):
    """Return the inventory in a body.

    :raises InvalidInventory: if nothing could be allocated of it, before 1.26
    """
    found = record(name, values)
    if call.version < _ALL_RESERVED and capacity_of(
            found.total, found.value("reserved", 0), found.value("allocation_ratio", 1.0)) <= 0:
        raise exception.InvalidInventory(resource_class=name, reason=(
            f"{found.value('reserved', 0)} reserved of a total of {found.total} leave no "
            "capacity. The reserved value is greater than or equal to total."))
    return found


def _values(inventory):
    return {name: getattr(inventory, name) for name in _FIELDS}


def _all(call, found):
    return Answer(
        body={**call.spelling.generation(found.generation), "inventories": {
            each.resource_class: _values(each) for each in found.objects}},
        etag=preconditions.tag(found.provider_uuid, found.generation),
        # As in OpenStack Placement, no inventories have no time.
        updated_at=newest([found]) if found.objects else None)


def _one(call, found, name):
    for each in found.objects:
        if each.resource_class == name:
            body = {**call.spelling.generation(found.generation), **_values(each)}
            if not call.spelling.has_generations:
                body["resource_class"] = each.resource_class
            return Answer(body=body, updated_at=newest([found]), etag=preconditions.tag(
                found.provider_uuid, found.generation))
    raise exception.InventoryNotFound(provider=found.provider_uuid, resource_class=name)
