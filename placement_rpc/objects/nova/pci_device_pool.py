# SPDX-License-Identifier: Apache-2.0
"""Pools of PCI devices of one kind on a node."""

import typing

from oslo_versionedobjects import base as ovo
from oslo_versionedobjects import fields

from placement_rpc import exception
from placement_rpc.objects.nova import base


@base.NovaObjectRegistry.register
class PciDevicePool(base.NovaObject):
    """Devices of one vendor and product; ``count`` is how many of them are free."""

    # Version 1.0: Initial version
    # Version 1.1: Added numa_node
    VERSION = "1.1"

    fields = {
        "product_id": fields.StringField(),
        "vendor_id": fields.StringField(),
        "numa_node": fields.IntegerField(nullable=True),
        "tags": fields.DictOfNullableStringsField(),
        "count": fields.IntegerField(),
    }

    added = {"numa_node": "1.1"}

    @classmethod
    def of_dict(cls, values: dict) -> typing.Self:
        """Return a pool from nova's old dict format, which has tags among the fields.

        :raises InvalidInput: if it is malformed
        """
        if not isinstance(values, dict):
            raise exception.InvalidInput(what="pci_stats", reason="a pool is not a mapping")
        own = {name: values[name] for name in cls.fields if name in values and name != "tags"}
        tags = {str(name): value for name, value in values.items() if name not in cls.fields}
        extra = values.get("tags") or {}
        try:
            return cls(tags={**tags, **extra}, **{"numa_node": None, **own})
        except base.BROKEN as error:
            raise exception.InvalidInput(what="pci_stats", reason=str(error)[:200]) from None


@base.NovaObjectRegistry.register
class PciDevicePoolList(ovo.ObjectListBase, base.NovaObject):
    """The pools of a node."""

    # Version 1.0: Initial version
    # Version 1.1: PciDevicePool 1.1
    VERSION = "1.1"

    fields = {"objects": fields.ListOfObjectsField("PciDevicePool")}

    @classmethod
    def of_stats(cls, stats: dict | list | None) -> typing.Self:
        """Return the pools in a ``pci_stats`` column.

        :param stats: its JSON value: an object, or the list of dicts of old releases; None for
            none
        :raises InvalidInput: if it is malformed
        """
        if stats is None:
            return cls(objects=[])
        if isinstance(stats, dict):
            return cls.read(stats)
        if not isinstance(stats, list):
            raise exception.InvalidInput(
                what="pci_stats", reason="it is neither an object nor a list of mappings")
        return cls(objects=[PciDevicePool.of_dict(values) for values in stats])
