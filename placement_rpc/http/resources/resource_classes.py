# SPDX-License-Identifier: Apache-2.0
"""Resource classes (custom-resource-classes)."""

import functools

from placement_rpc import exception
from placement_rpc.http import bodies
from placement_rpc.http.call import NO_CONTENT, Answer, all_pages, newest
from placement_rpc.objects import class_names
from placement_rpc.schemas import common

_NAME = bodies.compiled(common.CUSTOM_CLASS_NAME)


def listed(call):
    """List all resource classes that OpenStack Placement has too, and the custom ones."""
    call.refuse_condition()
    found = all_pages(functools.partial(call.api.resource_class_list, call.context))
    return Answer(body={"resource_classes": [
        _written(call, each.name) for each in found if each.name not in class_names.PREDEFINED]},
                  updated_at=newest(found))


def shown(call):
    """Show a resource class."""
    call.refuse_condition()
    found = call.api.resource_class_get(call.context, call.class_name("name"))
    return Answer(body=_written(call, found.name), updated_at=newest([found]))


def created(call):
    """Create a custom resource class."""
    call.refuse_condition()
    made = call.api.resource_class_create(
        call.context, call.body["name"], request_id=call.request_id)
    return Answer(201, location=_address(call, made.name))


def renamed(call):
    """Rename a custom resource class (before microversion 1.7)."""
    call.refuse_condition()
    found = call.api.resource_class_rename(
        call.context, call.class_name("name"), call.body["name"], request_id=call.request_id)
    return Answer(body=_written(call, found.name))


def confirmed(call):
    """Create a custom resource class, or confirm that it exists (microversion 1.7)."""
    name = call.path["name"]
    location = _address(call, name)
    bodies.check(_NAME, name, "JSON does not validate")
    call.check_exists(lambda: call.api.resource_class_get(call.context, name),
                      exception.ResourceClassNotFound)
    try:
        call.api.resource_class_create(call.context, name, request_id=call.request_id)
    except exception.ResourceClassExists:
        return Answer(204, location=location)
    return Answer(201, location=location)


def deleted(call):
    """Delete a custom resource class."""
    call.refuse_condition()
    call.api.resource_class_delete(
        call.context, call.class_name("name"), request_id=call.request_id)
    return NO_CONTENT


def _address(call, name):
    return f"{call.prefix}/resource_classes/{name}"


def _written(call, name):
    return {"name": name, "links": [{"rel": "self", "href": _address(call, name)}]}
