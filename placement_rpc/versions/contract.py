# SPDX-License-Identifier: Apache-2.0
"""The table of calls: what each RPC method is, declared once for both ends.

A client reads from it since when a call exists, in which queue it waits and whether it can be a
cast; a server also reads which calls are settled in batches, and which policy rules admit a call
that comes through the HTTP facade. The manager's methods carry no such data: a method without an
entry here cannot be exposed. The table is kept with the releases and not on the manager's methods,
since a client must read it without loading the service.

Contract versions:

* 1.0: newton: providers, inventories, claims, compute nodes, get by request
* 1.1: ocata: custom resource classes, generations of consumers, limits
* 1.2: 2026.2: batches, find and claim in one call, moves, sync_compute_node, events, explain
* 1.3: 2027.1: traits, trees, entity tags and types of consumers, claims that keep the owner,
  sets of claims, reshapes, candidates with groups, headroom, pages of all providers and of all
  consumers, reasons of changes; not released yet, so calls may still be added
"""

import dataclasses
from collections.abc import Mapping

from placement_rpc.versions import releases

#: The newest version of the contract.
RPC_VERSION = releases.CURRENT.contract

#: The request queues in addition to the service's own. Bulk traffic must not delay
#: latency-sensitive calls: when a fleet starts, ten thousand resource trackers report their
#: inventories in the same minute in which schedulers claim.
CLAIMS, FLEET = "claims", "fleet"


# Entries of an answer that is not large.
_FEW = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One RPC method.

    :param since: the version of the contract that introduced it
    :param queue: the request queue in which it waits; None for the service's own
    :param batched: whether a server settles many such calls in one transaction
    :param remembered: whether a server may have the answer in memory: it looks for those of many
        such calls together, and works on the others one by one
    :param castable: whether it can be sent as a durable command
    :param slow: whether it may take long, so that a client repeats it later than other calls
    :param rules: names of the policy rules, each of which admits the call when it comes through
        the HTTP facade; a call without rules is not made by the facade
    :param arguments: argument name to the version that introduced it, if later than the call
    :param implied: argument name to the value that means what calls without the argument mean to
        older services: such an argument is not sent to them
    :param everywhere: whether every live service must know the contract that introduced the call,
        since an older one would misread or undo what it changes
    :param consumer: the argument that is, or names, the consumer whose owner the policy rules can
        refer to, if it is a single one; None for a call about no single consumer
    :param project: the argument that is the project that the policy rules can refer to
    :param large: whether its answer may be large; a worker makes few such answers at a time, so
        that they do not delay other calls
    :param limited_by: the argument whose field ``limit`` bounds the answer; None if the argument
        ``limit`` does
    """

    since: str = "1.0"
    queue: str | None = None
    batched: bool = False
    remembered: bool = False
    castable: bool = False
    slow: bool = False
    rules: tuple[str, ...] = ()
    arguments: Mapping[str, str] = dataclasses.field(default_factory=dict)
    implied: Mapping[str, object] = dataclasses.field(default_factory=dict)
    everywhere: bool = False
    consumer: str | None = None
    project: str | None = None
    large: bool = False
    limited_by: str | None = None

    def is_large(self, arguments: object) -> bool:
        """Return whether the answer to a call may be large: if it names no low limit.

        :param arguments: as they travel
        """
        return self.large and not 0 < self._limit(arguments) <= _FEW

    def _limit(self, arguments):
        """Return the limit that a call gives; 0 if there is none."""
        path = ("limit",) if self.limited_by is None else (
            self.limited_by, "placement_object.data", "limit")
        found = arguments
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found if type(found) is int else 0


def _rules(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"placement:{prefix}:{name}" for name in names)


_PROVIDERS, _CLASSES = "resource_providers", "resource_classes"
_TRAITS, _PROVIDER_TRAITS = "traits", f"{_PROVIDERS}:traits"
_INVENTORIES, _AGGREGATES = f"{_PROVIDERS}:inventories", f"{_PROVIDERS}:aggregates"

#: dict of method name to :class:`Call`
CALLS = {
    "create_provider": Call(queue=FLEET, rules=_rules(_PROVIDERS, "create")),
    "update_provider": Call(
        queue=FLEET, rules=_rules(_PROVIDERS, "update"), arguments={"may_move": "1.3"}),
    "delete_provider": Call(rules=_rules(_PROVIDERS, "delete")),
    # Also a list of one provider, and the read of a generation before a change that checks it.
    "get_provider": Call(rules=(
        *_rules(_PROVIDERS, "show", "list", "update", "delete"),
        *_rules(_INVENTORIES, "create", "update", "delete"), *_rules(_AGGREGATES, "update"),
        *_rules(_PROVIDER_TRAITS, "update", "delete"))),
    "list_providers": Call(
        slow=True, large=True, rules=_rules(_PROVIDERS, "list"),
        arguments={"member_of": "1.2"} | dict.fromkeys((
            "uuid", "not_member_of", "in_tree", "required", "forbidden", "resources"), "1.3")),
    "set_inventory": Call(
        queue=FLEET, batched=True, rules=_rules(_INVENTORIES, "update", "delete"),
        arguments={"allow_below_use": "1.3"}, implied={"allow_below_use": False}),
    "add_inventory": Call(queue=FLEET, rules=_rules(_INVENTORIES, "create")),
    "update_inventory": Call(
        queue=FLEET, rules=_rules(_INVENTORIES, "update"),
        arguments={"allow_below_use": "1.3"}, implied={"allow_below_use": False}),
    "delete_inventory": Call(queue=FLEET, rules=_rules(_INVENTORIES, "delete")),
    "get_inventory": Call(rules=_rules(_INVENTORIES, "list", "show")),
    "claim_allocations": Call(
        queue=CLAIMS, batched=True, castable=True, rules=_rules("allocations", "update"),
        consumer="claim"),
    "set_allocations": Call(
        since="1.3", queue=CLAIMS, batched=True, rules=_rules("allocations", "manage", "update"),
        consumer="claims"),
    "reshape": Call(
        since="1.3", slow=True, everywhere=True, rules=("placement:reshaper:reshape",)),
    "release_allocations": Call(
        queue=CLAIMS, batched=True, castable=True, rules=_rules("allocations", "delete"),
        arguments={"consumer_generation": "1.1", "consumer_tags": "1.3"},
        consumer="consumer_uuid"),
    # Also before a change by a service of release 2026.2, to which the owner has to be named.
    "get_allocations": Call(rules=_rules("allocations", "list", "update", "delete"),
                            consumer="consumer_uuid"),
    "get_provider_allocations": Call(
        rules=_rules(f"{_PROVIDERS}:allocations", "list"), large=True),
    "get_usages": Call(rules=_rules(_PROVIDERS, "usages")),
    "get_by_request": Call(
        slow=True, large=True, limited_by="wanted", rules=_rules(_PROVIDERS, "list")),
    "get_allocation_candidates": Call(
        since="1.3", slow=True, large=True, limited_by="wanted",
        rules=_rules("allocation_candidates", "list")),
    # Also a list of one provider that has to be in some aggregates.
    "get_aggregates": Call(rules=(*_rules(_AGGREGATES, "list"), *_rules(_PROVIDERS, "list"))),
    "set_aggregates": Call(queue=FLEET, rules=_rules(_AGGREGATES, "update")),
    "resource_class_list": Call(rules=_rules(_CLASSES, "list")),
    "resource_class_get": Call(rules=_rules(_CLASSES, "show")),
    "resource_class_create": Call(since="1.1", rules=_rules(_CLASSES, "create", "update")),
    "resource_class_rename": Call(since="1.1", rules=_rules(_CLASSES, "update")),
    "resource_class_delete": Call(since="1.1", rules=_rules(_CLASSES, "delete")),
    "get_project_usages": Call(since="1.3", project="project_id", rules=("placement:usages",)),
    "list_traits": Call(since="1.3", rules=_rules(_TRAITS, "list", "show")),
    "create_trait": Call(since="1.3", everywhere=True, rules=_rules(_TRAITS, "update")),
    "delete_trait": Call(since="1.3", everywhere=True, rules=_rules(_TRAITS, "delete")),
    "get_provider_traits": Call(since="1.3", rules=_rules(_PROVIDER_TRAITS, "list")),
    "set_provider_traits": Call(
        since="1.3", queue=FLEET, everywhere=True,
        rules=_rules(_PROVIDER_TRAITS, "update", "delete")),
    "object_class_action_versions": Call(slow=True),
    "object_action": Call(slow=True),
    "object_backport_versions": Call(),
    "get_request_result": Call(),
    "ping": Call(),
    "get_versions": Call(),
    "claim_batch": Call(slow=True, since="1.2"),
    "claim_by_request": Call(slow=True, since="1.2"),
    "move_allocations": Call(since="1.2"),
    "sync_compute_node": Call(
        slow=True, since="1.2", queue=FLEET, remembered=True,
        arguments={"allow_below_use": "1.3"}, implied={"allow_below_use": False}),
    "explain": Call(
        slow=True, large=True, since="1.2", rules=_rules(_PROVIDERS, "explain"),
        arguments={"funnel": "1.3"}),
    "get_headroom": Call(
        since="1.3", slow=True, large=True, rules=_rules(_PROVIDERS, "headroom")),
    "list_provider_summaries": Call(
        since="1.3", slow=True, large=True, rules=("placement:provider_summaries:list",)),
    "list_consumers": Call(
        since="1.3", slow=True, large=True, rules=("placement:consumers:list",),
        project="project_id"),
    # Lists include the position at which they are current.
    "get_event_positions": Call(since="1.2", rules=(
        *_rules("events", "list"), *_rules(_PROVIDERS, "list", "explain"),
        *_rules("allocations", "list"), *_rules(f"{_PROVIDERS}:allocations", "list"))),
    "list_events": Call(slow=True, large=True, since="1.2", rules=_rules("events", "list")),
    "verify_index": Call(slow=True, since="1.2"),
}

# The first contract with custom classes, and the names of the fields that name classes.
_CUSTOM_SINCE = "1.1"
_NAMING = frozenset(("objects", "resource_class", "allocations", "resources"))


def is_plain(method: str, arguments: Mapping[str, object]) -> bool:
    """Return whether every release understands a call as it is.

    False for a call that carries objects, too: these have versions of their own.
    """
    call = CALLS[method]
    return call.since == "1.0" and not any(
        value is not None and (hasattr(value, "obj_to_primitive") or name in call.arguments)
        for name, value in arguments.items()) and not _names_custom(arguments)


def sent(method: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that a client sends.

    An argument that contract 1.3 or a later one added is left out if it is None, since an older
    service would refuse it. Those of 1.1 and 1.2 have always been sent.
    """
    added = CALLS[method].arguments
    return {name: value for name, value in arguments.items() if value is not None
            or releases.number(added.get(name, "1.0")) < releases.number("1.3")}


def without_implied(method: str, arguments: Mapping[str, object], release: releases.Release,
                    ) -> dict[str, object]:
    """Return the arguments without those that a release lacks and whose value it assumes.

    :param arguments: argument name to value
    """
    call = CALLS[method]
    return {name: value for name, value in arguments.items() if not (
        name in call.implied and value == call.implied[name]
        and _newer(call.arguments[name], release))}


def missing(method: str, arguments: Mapping[str, object], release: releases.Release) -> list[str]:
    """Return the parts of a call that a release does not understand.

    :param arguments: dict of argument name to value, which may contain versioned objects
    :returns: list of calls, arguments and object fields; empty if the release understands all
    """
    call = CALLS[method]
    if _newer(call.since, release):
        return [method]
    found = newer_arguments(method, arguments, release)
    for value in arguments.values():
        found += _fields(value, release.objects)
    if release.number < releases.number(_CUSTOM_SINCE) and _names_custom(arguments):
        found.append("a custom resource class")
    return found


def newer_arguments(method: str, arguments: Mapping[str, object],
                    release: releases.Release) -> list[str]:
    """Return the arguments of a call that a release does not know, as ``method(argument)``.

    Those that are None do not count. What they contain is not looked at.
    """
    added = CALLS[method].arguments
    return [f"{method}({name})" for name, value in arguments.items()
            if value is not None and _newer(added.get(name, "1.0"), release)]


def _names_custom(value):
    """Return whether a value names a class that a release without custom classes lacks."""
    if hasattr(value, "obj_attr_is_set"):
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
    """Return the fields of objects that objects of these versions do not have."""
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
