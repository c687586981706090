# SPDX-License-Identifier: Apache-2.0
"""The NUMA topology of a node: its cells, with their processors and memory."""

import dataclasses
import typing

from oslo_versionedobjects import fields

from placement_rpc import exception, json_text
from placement_rpc.objects.nova import base


@base.NovaObjectRegistry.register
class NUMAPagesTopology(base.NovaObject):
    """Memory pages of one size, in kB, and their number."""

    # Version 1.0: Initial version
    # Version 1.1: Added reserved
    VERSION = "1.1"

    fields = {
        "size_kb": fields.IntegerField(),
        "total": fields.IntegerField(),
        "used": fields.IntegerField(default=0),
        "reserved": fields.IntegerField(default=0),
    }

    added = {"reserved": "1.1"}


@base.NovaObjectRegistry.register
class NetworkMetadata(base.NovaObject):
    """Networks near a cell."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "physnets": fields.SetOfStringsField(),
        "tunneled": fields.BooleanField(),
    }


@base.NovaObjectRegistry.register
class NUMACell(base.NovaObject):
    """A NUMA cell.

    ``cpuset`` and ``pcpuset`` are the threads for shared and for dedicated use, ``siblings`` the
    set of threads of each core; ``memory`` is in MB.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added mempages
    # Version 1.2: Added cpu_usage, memory_usage, pinned_cpus and siblings
    # Version 1.3: Added network_metadata
    # Version 1.4: Added pcpuset
    # Version 1.5: Added socket
    VERSION = "1.5"

    fields = {
        "id": fields.IntegerField(read_only=True),
        "cpuset": fields.SetOfIntegersField(),
        "pcpuset": fields.SetOfIntegersField(),
        "memory": fields.IntegerField(),
        "cpu_usage": fields.IntegerField(default=0),
        "memory_usage": fields.IntegerField(default=0),
        "pinned_cpus": fields.SetOfIntegersField(),
        "siblings": fields.ListOfSetsOfIntegersField(),
        "mempages": fields.ListOfObjectsField("NUMAPagesTopology"),
        "network_metadata": fields.ObjectField("NetworkMetadata"),
        "socket": fields.IntegerField(nullable=True),
    }

    added = {"mempages": "1.1", "cpu_usage": "1.2", "memory_usage": "1.2", "pinned_cpus": "1.2",
             "siblings": "1.2", "network_metadata": "1.3", "pcpuset": "1.4", "socket": "1.5"}

    @property
    def threads(self) -> set[int]:
        """All threads of the cell"""
        return self.value("cpuset", set()) | self.value("pcpuset", set())

    @property
    def cores(self) -> int:
        """The number of cores; a thread without known siblings counts as a core"""
        groups = [group for group in self.value("siblings", []) if group]
        return len(groups) + len(self.threads - set().union(*groups))


@base.NovaObjectRegistry.register
class NUMATopology(base.NovaObject):
    """The cells of a node."""

    # Version 1.0: Initial version
    # Version 1.1: Moved to a list of cells
    # Version 1.2: NUMACell 1.2 and later
    VERSION = "1.2"

    fields = {"cells": fields.ListOfObjectsField("NUMACell")}

    @classmethod
    def of_text(cls, text: str | None) -> typing.Self | None:
        """Return the topology in a ``numa_topology`` column.

        :param text: JSON of an object, or of the dicts of old releases (``{"cells": [{"id": 0,
            "cpus": "0-3", "mem": {"total": 4096, "used": 0}, "cpu_usage": 0}]}``); None for none
        :raises InvalidInput: if the text is malformed
        """
        found = _loaded(text)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise exception.InvalidInput(
                what="numa_topology", reason="it is neither an object nor null")
        if "nova_object.data" in found:
            return cls.read(found)
        try:
            return cls(cells=_cells_of_dicts(found["cells"]))
        except base.BROKEN as error:
            raise exception.InvalidInput(
                what="numa_topology", reason=f"{type(error).__name__}: {error}"[:200]) from None


# More threads than any machine has; a short text can name huge ranges.
_MAX_THREADS = 65536


@dataclasses.dataclass(frozen=True, slots=True)
class CellAmounts:
    """The amounts of a cell: numbers of cores and threads, and memory in MB."""

    cores: int
    threads: int
    memory: int


def amounts(text: str | None) -> list[CellAmounts]:
    """Return the amounts of the cells in a ``numa_topology`` column.

    They are read directly from the text, since making the objects of a topology takes half of the
    time of a node's migration.

    :param text: as for :meth:`NUMATopology.of_text`
    :raises InvalidInput: if the text is malformed
    """
    found = _loaded(text)
    if found is None:
        return []
    if not (isinstance(found, dict) and "nova_object.data" in found):
        topology = NUMATopology.of_text(text)
        return [CellAmounts(cell.cores, len(cell.threads), cell.memory)
                for cell in (topology.cells if topology else ())]
    with base.refusals("numa_topology"):
        return [_amounts_of(cell) for cell in _data(found, NUMATopology)["cells"]]


def _amounts_of(cell):
    data = _data(cell, NUMACell)
    threads = {*data["cpuset"], *data.get("pcpuset", ())}
    groups = [set(group) for group in data.get("siblings", ()) if group]
    if not all(type(each) is int for each in threads.union(*groups)) or (
            type(data["memory"]) is not int):
        raise ValueError("a cell has values that are not numbers")
    return CellAmounts(len(groups) + len(threads - set().union(*groups)), len(threads),
                       data["memory"])


def _data(primitive, cls):
    """Return the data of an object in wire format.

    :raises ValueError: if it is of another class
    """
    if primitive["nova_object.name"] != cls.__name__:
        raise ValueError(f"it is not a {cls.__name__}")
    cls.obj_class_from_name(cls.__name__, primitive["nova_object.version"])
    return primitive["nova_object.data"]


def _loaded(text):
    """Return the JSON value of a column; None for an empty one, and for an empty object.

    :raises InvalidInput: if it is not JSON
    """
    if text is None:
        return None
    try:
        found = json_text.loads(text)
        # Old releases of nova read an object without cells as a node without a topology.
        return None if found == {} else found
    except (ValueError, TypeError, RecursionError) as error:
        raise exception.InvalidInput(what="numa_topology", reason=str(error)[:200]) from None


def _cells_of_dicts(dicts):
    """Return the cells of the dicts of old releases.

    :raises ValueError: if they have more threads than a machine can have
    """
    cells, left = [], _MAX_THREADS
    for values in dicts:
        cell = _cell_of_dict(values, left)
        left -= len(cell.cpuset)
        cells.append(cell)
    return cells


def _cell_of_dict(values, most):
    memory = values["mem"]
    total, used = (memory["total"], memory.get("used", 0)) if isinstance(memory, dict) else (
        memory, 0)
    cpus = values["cpus"]
    return NUMACell(
        id=values["id"], cpuset=_range(cpus, most) if isinstance(cpus, str) else set(cpus),
        pcpuset=set(), memory=total, memory_usage=used, cpu_usage=values.get("cpu_usage", 0),
        pinned_cpus=set(), siblings=[set(group) for group in values.get("siblings", ())],
        mempages=[])


def _range(text, most):
    """Parse a text like ``0-3,8`` into a set of int.

    :param most: how many numbers the text may name, repeated ones included
    :raises ValueError: if it names more
    """
    found = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        most -= len(numbers)
        if most < 0:
            raise ValueError(f"it has more than {_MAX_THREADS} threads")
        found.update(numbers)
    return found
