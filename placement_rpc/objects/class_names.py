# SPDX-License-Identifier: Apache-2.0
"""Names of resource classes: the standard ones, their ids, and the specifications' spellings.

Standard classes are those of os-resource-classes; the position in its list is the id of a class.
The specifications of the compute node inventory are older than that list. Their names are accepted
wherever a name is given, and answered with the current name.
"""

import re
from collections.abc import Callable, Collection

import os_resource_classes

from placement_rpc import exception

CustomIds = Callable[[list[str]], dict[str, int]]

PATTERN = re.compile(r"[A-Z0-9_]{1,255}")
CUSTOM_PATTERN = re.compile(r"CUSTOM_[A-Z0-9_]+")

ALIASES = {
    "PCI_GENERIC": "PCI_DEVICE",
    "PCI_SRIOV_VF": "SRIOV_NET_VF",
    "PCI_SRIOV_PF": "CUSTOM_PCI_SRIOV_PF",
    "NUMA_SOCKETS": "NUMA_SOCKET",
    "NUMA_CORES": "NUMA_CORE",
    "NUMA_THREADS": "NUMA_THREAD",
    "NUMA_MEMORY": "NUMA_MEMORY_MB",
}

# Lower ids are reserved for os-resource-classes.
FIRST_CUSTOM_ID = 10000

# The only class of the specifications without a standard counterpart. It exists from the start and
# cannot be changed, like a standard class.
PREDEFINED = {"CUSTOM_PCI_SRIOV_PF": FIRST_CUSTOM_ID}

STANDARD_IDS = {
    **{name: position for position, name in enumerate(os_resource_classes.STANDARDS)},
    **PREDEFINED,
}


def canonical(name: str) -> str:
    """Return the current spelling of a name; any other text is returned unchanged."""
    return ALIASES.get(name, name)


def is_name(name: str) -> bool:
    """Return whether a text is a valid name of a resource class."""
    return PATTERN.fullmatch(name) is not None


def is_custom(name: str) -> bool:
    """Return whether a text is a valid name of a custom class (custom-resource-classes)."""
    return (CUSTOM_PATTERN.fullmatch(name) is not None and len(name) <= 255
            and name not in STANDARD_IDS)


def ids_of(names: Collection[str], custom_ids: CustomIds) -> dict[str, int]:
    """Return the ids of the classes that exist.

    :param names: collection of canonical names
    :param custom_ids: callable of a list of names of custom classes; returns a dict of name to
        id of those that exist. Standard classes never change, so it is not asked for them.
    :returns: dict of name to id
    """
    ids = {name: STANDARD_IDS[name] for name in names if name in STANDARD_IDS}
    others = [name for name in names if name not in STANDARD_IDS]
    return ids | custom_ids(others) if others else ids


def resolve(names: Collection[str], custom_ids: CustomIds) -> dict[str, int]:
    """Return the ids of classes, as :func:`ids_of` does.

    :raises ResourceClassNotFound: for the first name that does not exist
    """
    ids = ids_of(names, custom_ids)
    for name in names:
        if name not in ids:
            raise exception.ResourceClassNotFound(resource_class=name)
    return ids
