# SPDX-License-Identifier: Apache-2.0
"""The inventories of a compute node, computed from its columns (compute-node-inventory, item 4).

Pure functions: the same node and the same options give the same inventories.
"""

import collections

from placement_rpc import exception
from placement_rpc.accounting import inventories
from placement_rpc.objects import class_names, fields
from placement_rpc.objects.base import BROKEN
from placement_rpc.objects.nova import numa

# nova's kinds of PCI devices, and their classes in the specification.
_PCI_CLASSES = {"type-PCI": "PCI_GENERIC", "type-PF": "PCI_SRIOV_PF", "type-VF": "PCI_SRIOV_VF"}
# nova's other kind has no class in the specification, so such devices have no inventory.
_NO_CLASS = frozenset(("vdpa",))
_MB_A_GB = 1024
#: The classes whose inventory follows from a node's columns.
CLASSES = frozenset(class_names.canonical(name) for name in (
    "VCPU", "MEMORY_MB", "DISK_GB", *_PCI_CLASSES.values(), "NUMA_SOCKETS", "NUMA_CORES",
    "NUMA_THREADS", "NUMA_MEMORY"))
#: Those of these classes that are PCI devices.
DEVICES = frozenset(map(class_names.canonical, _PCI_CLASSES.values()))


def devices_by_class(kinds):
    """Return numbers of devices by class.

    :param kinds: dict of nova's kind of device, such as ``type-VF``, to a number
    :returns: dict of class name to int
    :raises InvalidInput: for an unknown kind, or if a number is not a whole number
    """
    if not isinstance(kinds, dict):
        raise exception.InvalidInput(what="pci_in_use", reason="it is not a mapping")
    found = {}
    for kind, number in kinds.items():
        name = _class_of("pci_in_use", kind)
        if name is not None:
            found[name] = fields.WholeNumber().coerce(None, f"pci_in_use[{kind}]", number)
    return found


def _class_of(what, kind):
    """Return the name of the class of a kind of device; None for a kind without a class.

    :raises InvalidInput: for an unknown kind
    """
    if kind in _NO_CLASS:
        return None
    if kind not in _PCI_CLASSES:
        raise exception.InvalidInput(
            what=what, reason=f"{str(kind)[:64]!r} is not a kind of device; use one of "
                              f"{', '.join(_PCI_CLASSES)}")
    return class_names.canonical(_PCI_CLASSES[kind])


def checked_devices(value):
    """Check the numbers of devices in use that a caller reports.

    :param value: dict of class name to int; None if they are not reported
    :returns: dict of class name, in its current spelling, to int
    :raises InvalidInput: for a class that is not one of devices, or if a number is not a whole
        number
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise exception.InvalidInput(what="devices_in_use", reason="they are not a mapping")
    found = {}
    for name, number in value.items():
        kind = fields.ClassName().coerce(None, "devices_in_use", name)
        if kind not in DEVICES:
            raise exception.InvalidInput(
                what="devices_in_use", reason=f"{kind} is not a class of PCI devices; use one of "
                                              f"{', '.join(sorted(DEVICES))}")
        found[kind] = fields.WholeNumber().coerce(None, f"devices_in_use[{kind}]", number)
    return found


def inventories_of(node, options, shares_disk=False, devices_in_use=None):
    """Return the inventories of a node; there is none for a class with a total of 0.

    :param node: :class:`placement_rpc.objects.nova.compute_node.ComputeNode`
    :param options: ``conf.compute_nodes``
    :param shares_disk: bool, whether its disk belongs to another provider (4b)
    :param devices_in_use: dict of class name to the number of devices that are claimed or
        allocated, which a node's pools do not count; None for none
    :returns: dict of class name to the columns of its inventory, in the order of the classes
    :raises InvalidInput: if a value of the node is not valid; it names the node
    """
    try:
        found = [
            _of_column(node, "vcpus", "VCPU", _ratio(node, "cpu", options),
                       options.reserved_cpus),
            _of_column(node, "memory_mb", "MEMORY_MB", _ratio(node, "ram", options),
                       options.reserved_memory_mb),
            *([] if shares_disk else [_disk(node, options)]),
            *_devices(node, options, devices_in_use or {}), *_numa(node)]
    except exception.PlacementException as error:
        raise exception.InvalidInput(
            what=f"compute node {node.label}", reason=error.text) from None
    except BROKEN as error:
        raise exception.InvalidInput(
            what=f"compute node {node.label}",
            reason=(str(error) or type(error).__name__)[:200]) from None
    return dict(sorted(filter(None, found)))


def _of_column(node, column, resource_class, ratio, reserved, max_unit=None):
    """Return the class and the columns of the inventory of a column; None for a total of 0."""
    total = node.value(column)
    if total is None or total < 0:
        raise exception.InvalidInput(
            what=column, reason="it is missing" if total is None else f"{total} is negative")
    return _inventory(resource_class, total, reserved, max_unit, ratio)


def _inventory(resource_class, total, reserved=0, max_unit=None, allocation_ratio=1.0):
    if not total:
        return None
    most = total if max_unit is None else max(1, min(total, max_unit))
    name = class_names.canonical(resource_class)
    return name, inventories.checked(name, {
        "total": total, "reserved": min(reserved, total), "min_unit": 1, "max_unit": most,
        "step_size": 1, "allocation_ratio": allocation_ratio})


def _ratio(node, kind, options):
    name = f"{kind}_allocation_ratio"
    ratio = node.value(name) or getattr(options, name)
    if ratio < 0:
        raise exception.InvalidInput(what=name, reason=f"{ratio:g} is negative")
    return ratio


def _disk(node, options):
    # A disk that is overcommitted has a negative one.
    least = node.value("disk_available_least")
    return _of_column(node, "local_gb", "DISK_GB", _ratio(node, "disk", options),
                      -(-options.reserved_disk_mb // _MB_A_GB),
                      least if options.disk_available_least_is_max_unit else None)


def _devices(node, options, in_use):
    """Return the inventories of the classes of PCI devices (4c)."""
    pools = node.value("pci_device_pools")
    counts = collections.Counter({class_names.canonical(name): number
                                  for name, number in in_use.items()})
    pools = pools.objects if pools else []
    # Either an adapter (PF) or its virtual functions (VF) can be used, but not both.
    split = {_place(pool) for pool in pools if pool.tags.get("dev_type") == "type-VF"}
    for pool in pools:
        kind = pool.tags.get("dev_type", "type-PCI")
        name = _class_of("pci_stats", kind)
        if pool.count < 0:
            raise exception.InvalidInput(what="pci_stats", reason=f"{pool.count} is negative")
        if name is not None and not (kind == "type-PF" and _place(pool) in split):
            counts[name] += pool.count
    most = {class_names.canonical(name): int(number)
            for name, number in options.pci_max_units.items()}
    return [_inventory(name, total, max_unit=most.get(name)) for name, total in counts.items()]


def _place(pool):
    return pool.vendor_id, pool.value("numa_node"), pool.tags.get("physical_network")


def _numa(node):
    """Return the inventories of the NUMA classes (4d).

    The total is that of all cells; max_unit is the amount of the largest cell, since the amount
    of one server comes from one cell.
    """
    cells = numa.amounts(node.value("numa_topology"))
    amounts = {
        "NUMA_SOCKETS": [1 for _ in cells], "NUMA_CORES": [cell.cores for cell in cells],
        "NUMA_THREADS": [cell.threads for cell in cells],
        "NUMA_MEMORY": [cell.memory for cell in cells]}
    for name, values in amounts.items():
        if any(value < 0 for value in values):
            raise exception.InvalidInput(
                what="numa_topology", reason=f"{name} of a cell is negative")
    return [_inventory(name, sum(values), max_unit=max(values))
            for name, values in amounts.items() if values]
