# SPDX-License-Identifier: Apache-2.0
"""Since which version of the contract there is each call, and each argument of one."""

from placement_rpc.versions import releases

#: The newest version of the contract.
RPC_VERSION = releases.CURRENT.contract
_SINCE = {
    "1.0": (
        "create_provider", "update_provider", "delete_provider", "get_provider",
        "list_providers", "set_inventory", "add_inventory", "update_inventory",
        "delete_inventory", "get_inventory", "claim_allocations", "release_allocations",
        "get_allocations", "get_provider_allocations", "get_usages", "get_by_request",
        "get_aggregates", "set_aggregates", "resource_class_list", "resource_class_get",
        "object_class_action_versions", "object_action", "object_backport_versions",
        "get_request_result", "ping", "get_versions"),
    "1.1": ("resource_class_create", "resource_class_rename", "resource_class_delete"),
    "1.2": ("claim_batch", "claim_by_request", "move_allocations", "sync_compute_node",
            "explain", "get_event_positions", "list_events", "verify_index"),
}
#: dict of call to the version that brought it
METHODS = {method: version for version, methods in _SINCE.items() for method in methods}
# Since when there are classes beside the standard ones, and the fields that name classes.
_CUSTOM_SINCE = "1.1"
_NAMING = frozenset(("objects", "resource_class", "allocations", "resources"))
#: dict of call and argument to the version that brought it, where that is later than the call's
ARGUMENTS = {
    ("release_allocations", "consumer_generation"): "1.1",
    ("list_providers", "member_of"): "1.2",
}


def is_plain(method, arguments):
    """Whether every release knows a call as it is.

    :returns: bool; False too where it carries objects, which have versions of their own
    """
    return METHODS[method] == "1.0" and not any(
        value is not None and (
            hasattr(value, "obj_to_primitive") or (method, name) in ARGUMENTS)
        for name, value in arguments.items()) and not _names_custom(arguments)


def missing(method, arguments, release):
    """What of a call a release does not know.

    :param method: str
    :param arguments: dict of argument name to value, which may hold versioned objects
    :param release: :class:`placement_rpc.versions.releases.Release`
    :returns: list of str, each a call, an argument or an object's field; empty where it knows all
    """
    if _newer(METHODS[method], release):
        return [method]
    found = [f"{method}({name})" for name, value in arguments.items()
             if value is not None and _newer(ARGUMENTS.get((method, name), "1.0"), release)]
    for value in arguments.values():
        found += _fields(value, release.objects)
    if release.number < releases.number(_CUSTOM_SINCE) and _names_custom(arguments):
        found.append("a custom resource class")
    return found


def _names_custom(value):
    """:returns: bool, whether a class is named that no release has of itself"""
    if hasattr(value, "fields"):
        return any(_names_custom(getattr(value, name)) for name in value.fields
                   if value.obj_attr_is_set(name) and name in _NAMING)
    if isinstance(value, dict):
        return any(_names_custom(item) for pair in value.items() for item in pair)
    if isinstance(value, (list, tuple)):
        return any(_names_custom(item) for item in value)
    return isinstance(value, str) and value.startswith("CUSTOM_") and (
        value != "CUSTOM_PCI_SRIOV_PF")


def _newer(version, release):
    return releases.number(version) > release.number


def _fields(value, versions):
    """The fields of objects that say what objects of these versions can not say."""
    if hasattr(value, "lost_at"):
        name = value.obj_name()
        if name not in versions:
            return [name]
        found = [f"{name}.{field}" for field in value.lost_at(versions[name])]
        for field in value.fields:
            if value.obj_attr_is_set(field) and f"{name}.{field}" not in found:
                found += _fields(getattr(value, field), versions)
        return found
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in _fields(item, versions)]
    return []
