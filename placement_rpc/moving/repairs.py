# SPDX-License-Identifier: Apache-2.0
"""What OpenStack Placement's rows may hold and this service's may not, and what is done about it.

Each function takes what was read and returns what this service's store would hold instead. Every
change is reported as a :class:`stores.Finding`. The rules need no more than the rows of one uuid,
except for names and trees: these are few, or read only if something is wrong with them.
"""

import math
import re
import uuid
from collections.abc import Callable, Collection, Iterable

from placement_rpc.moving.stores import Finding, Report
from placement_rpc.objects import fields, inventory

MAX_INT = fields.MAX_INT
#: The least generation of a consumer that has allocations
FIRST_OF_CONSUMER = 1
# For texts that are no uuids; every import gives the same ones.
_NAMESPACE = uuid.UUID("d2c7e4c6-0a3b-5a52-8f65-0d5a9a1c7f21")
_LONGEST_NAME, _LONGEST_ID = 200, 255
_SYMBOL = re.compile(r"[A-Z0-9_]{1,255}")
_LONGEST_SYMBOL = 255
_CUSTOM = "CUSTOM_"


def canonical_uuid(text: str) -> str:
    """Return the uuid that a text stands for, in lower case with dashes.

    A text that is no uuid stands for one that is derived from it.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, text))


def report_uuid(report: Report, kind: str, text: str) -> None:
    """Report a uuid that is not written in lower case with dashes."""
    report(Finding("uuid_unusual", kind, (text,), f"written as {canonical_uuid(text)}"))


def names(kind: str, read: Iterable[tuple], standard: Collection[str],
          report: Report) -> dict[int, str]:
    """Return the names of resource classes, traits or types of consumers.

    :param read: tuples that begin with id and name, in the order of their ids
    :param standard: names that this release knows
    :returns: dict of id to name
    """
    pairs = [(each[0], each[1]) for each in read]
    found, taken = {}, {name for _, name in pairs} | set(standard)
    for id_, name in pairs:
        if _SYMBOL.fullmatch(name):
            found[id_] = name
            if not name.startswith(_CUSTOM) and kind != "consumer_types" and (
                    name not in standard):
                report(Finding("standard_unknown", kind, (name,),
                               "kept; this release does not know it as a standard one"))
            continue
        found[id_] = _free(_symbol(kind, name), id_, taken)
        report(Finding("name_changed", kind, (name,), f"named {found[id_]}"))
    return found


def _symbol(kind, name):
    text = re.sub("[^A-Z0-9_]", "_", name.upper())
    prefix = "" if kind == "consumer_types" else _CUSTOM
    return (prefix + text.removeprefix(prefix))[:_LONGEST_SYMBOL] or "_"


def _free(name, id_, taken):
    """Return a name that is not taken, and take it."""
    end = ""
    while name[:_LONGEST_SYMBOL - len(end)] + end in taken:
        end += f"_{id_}"
    name = name[:_LONGEST_SYMBOL - len(end)] + end
    taken.add(name)
    return name


def provider_name(uuid_: str, name: str | None, report: Report,
                  ambiguous: Collection[str] = ()) -> str:
    """Return the name of a provider.

    :param ambiguous: names that others differ from only in blanks at their end
    """
    if name and len(name) <= _LONGEST_NAME and name.isprintable() and not (
            name.endswith(" ") and name.rstrip(" ") in ambiguous):
        return name
    if name:
        # With the uuid it is no other provider's.
        changed = f"{_printable(name.rstrip(' '))[:_LONGEST_NAME - len(uuid_) - 1]} {uuid_}"
        report(Finding("name_changed", "providers", (uuid_,), f"named {changed}"))
        return changed
    report(Finding("name_missing", "providers", (uuid_,), f"named {uuid_}"))
    return uuid_


def least_generation(kind: str) -> int:
    """Return the least generation of a provider, or of a consumer that has allocations.

    Generation 0 is that of a consumer without allocations: a client that gives it expects none.
    """
    return FIRST_OF_CONSUMER if kind == "consumers" else 0


def generation(kind: str, key: tuple[str, ...], value: int | None, report: Report) -> int:
    """Return the generation of a provider, or of a consumer that has allocations."""
    least = least_generation(kind)
    if value is not None and value >= least:
        return value
    report(Finding("generation_changed", kind, key,
                   f"generation {least} instead of {'none' if value is None else value}"))
    return least


def keystone_id(what: str, consumer: str, value: str | None, incomplete: str,
                report: Report) -> str:
    """Return the project or the user of a consumer.

    :param what: ``project`` or ``user``
    :param value: None if there is no row of the id that the consumer names
    :param incomplete: that of a consumer without any
    """
    if value and len(value) <= _LONGEST_ID and value.isprintable():
        return value
    changed = _printable(value)[:_LONGEST_ID] if value else incomplete
    report(Finding(f"{what}_{'changed' if value else 'missing'}", "consumers", (consumer,),
                   f"{what} {changed}"))
    return changed


def _printable(text):
    return "".join(each if each.isprintable() else "?" for each in text)


def inventory_values(key: tuple[str, ...], values: tuple, report: Report) -> tuple:
    """Return the values of an inventory.

    :param key: of the row
    :param values: total, reserved, min_unit, max_unit, step_size, allocation_ratio
    """
    total, reserved, min_unit, max_unit, step_size, ratio = values
    if 0 <= reserved <= total > 0 and min_unit > 0 < max_unit and step_size > 0 <= ratio <= (
            fields.Ratio.maximum):
        return values
    if total < 1:
        # Nothing fits, as before.
        total = reserved = 1
    reserved = min(max(reserved, 0), total)
    if max_unit < 1:
        # No amount meets both.
        min_unit, max_unit = 2, 1
    if math.isnan(ratio) or ratio < 0:
        ratio = 0.0
    changed = (total, reserved, max(min_unit, 1), max_unit, max(step_size, 1),
               min(ratio, fields.Ratio.maximum))
    report(Finding("values_changed", "inventories", key, "; ".join(
        f"{name} {new} instead of {old}" for name, old, new in zip(
            ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"),
            values, changed, strict=True) if new != old)))
    return changed


def filled_inventory(key: tuple[str, ...], used: int, report: Report) -> tuple:
    """Return the values of an inventory for allocations that have none: they fill it."""
    total = min(used, MAX_INT)
    report(Finding("allocation_without_inventory", "inventories", key,
                   f"kept, with an inventory of {total}, which is full"))
    return total, 0, 1, total, 1, 1.0


def check_capacity(key: tuple[str, ...], values: tuple, used: int, report: Report) -> None:
    """Report an inventory of which more is used than its capacity.

    :param values: as :func:`inventory_values` returns them
    """
    total, reserved, *_, ratio = values
    if used <= total - reserved and ratio >= 1:
        return
    capacity = inventory.capacity_of(total, reserved, ratio)
    if used > capacity:
        report(Finding("over_capacity", "inventories", key,
                       f"kept: {used} of {capacity} are used, and nothing more fits"))


def amount(key: tuple[str, ...], used: list[int], report: Report) -> int:
    """Return the amount of an allocation, given those of all of its rows."""
    total = min(sum(used), MAX_INT)
    if len(used) > 1:
        report(Finding("allocation_twice", "allocations", key,
                       f"one allocation of {total} instead of {len(used)} rows"))
    return total


def trees(providers: Iterable[tuple[int, str, int | None]],
          canonical: Callable[[str], str]) -> dict[str, tuple[str | None, str]]:
    """Return the parent and the root of each provider.

    The root is computed from the parents. A provider whose parent does not exist is a root, and so
    is the smallest uuid of a loop.

    :param providers: tuples of id, uuid and the parent's id
    :param canonical: returns the uuid of a text
    :returns: dict of uuid to tuple of parent (None for a root) and root
    """
    rows = [(id_, canonical(text), text, parent) for id_, text, parent in providers]
    by_id = {id_: uuid_ for id_, uuid_, _, _ in rows}
    parents: dict[str, str | None] = {}
    # Of several rows of one uuid, the one that is written in the usual way comes last.
    for _, uuid_, _, parent in sorted(rows, key=lambda row: (row[1] == row[2], -row[0])):
        parents[uuid_] = by_id.get(parent)                              # type: ignore[arg-type]
    roots: dict[str, str] = {}
    for uuid_ in sorted(parents):
        # In the order of the climb. A list would be searched at each step, and take the square of
        # the depth of a tree.
        path: dict[str, None] = {}
        current = uuid_
        while current not in roots and current not in path:
            path[current] = None
            above = parents[current]
            if above is None:
                roots[current] = current
            else:
                current = above
        if current not in roots:
            climbed = list(path)
            current = min(climbed[climbed.index(current):])
            parents[current], roots[current] = None, current
        for each in path:
            roots[each] = roots[current]
    return {uuid_: (parents[uuid_], roots[uuid_]) for uuid_ in parents}


def report_tree(uuid_: str, read: tuple, found: tuple[str | None, str], report: Report) -> None:
    """Report what :func:`trees` has changed.

    :param read: ids of parent and root, and their uuids; a uuid is None if there is no such
        provider
    :param found: uuids of parent and root
    """
    parent_id, root_id, parent, root = read
    new_parent, new_root = found
    if parent_id is not None and parent is None:
        report(Finding("parent_missing", "providers", (uuid_,), "a root"))
    elif parent != new_parent:
        report(Finding("parent_loop", "providers", (uuid_,),
                       f"a root: its parent {parent} is below it"))
    elif root != new_root:
        was = "none" if root_id is None else root or "a provider that does not exist"
        report(Finding("root_changed", "providers", (uuid_,),
                       f"root {new_root} by its parents, instead of {was}"))
