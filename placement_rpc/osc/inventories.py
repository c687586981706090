# SPDX-License-Identifier: Apache-2.0
"""``list inventory``, ``set inventory``, ``delete inventory``, and ``usage``."""

import decimal

from osc_lib import exceptions
from osc_lib.command import command

from placement_rpc.osc import client as placement_client
from placement_rpc.osc import formatting, resource_types, retry

_VALUES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
_NOT_FOUND = 404


class ListInventories(resource_types.OfProvider, command.Lister):
    """List the inventories of a resource provider"""

    def take_action(self, options):
        document, _ = self.client.read(self.kind.path(options.uuid, "inventories"))
        return ("resource_class", *_VALUES), [
            [name, *(inventory[value] for value in _VALUES)]
            for name, inventory in sorted(document["inventories"].items())]


class ListPoolInventories(ListInventories):
    """List the inventories of a resource pool"""

    kind = resource_types.POOL


class SetInventory(resource_types.OfProvider, command.ShowOne):
    """Create or change the inventory that a resource provider has of a resource class.

    Values that are not given stay as they are, or are the service's defaults in a new inventory.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--resource-class", required=True, metavar="CLASS")
        parser.add_argument("--total", type=int, help="total amount")
        parser.add_argument("--reserved", type=int,
                            help="amount that cannot be allocated")
        parser.add_argument("--min-unit", type=int, help="minimum amount of an allocation")
        parser.add_argument("--max-unit", type=int, help="maximum amount of an allocation")
        parser.add_argument("--step-size", type=int,
                            help="amounts of allocations are multiples of this")
        parser.add_argument("--allocation-ratio", type=float,
                            help="overcommitment: the capacity is (total - reserved) * allocation "
                                 "ratio")
        return parser

    def take_action(self, options):
        client = self.client
        given = {name: getattr(options, name) for name in _VALUES
                 if getattr(options, name) is not None}
        path = self.kind.path(options.uuid, "inventories", options.resource_class)
        retry.change(
            lambda: _present(client, path),
            lambda found: self._write(client, options, path, given, *found))
        document, _ = client.read(path)
        return (("resource_class", *_VALUES),
                (options.resource_class, *(document[value] for value in _VALUES)))

    def _write(self, client, options, path, given, present, etag):
        if present is not None:
            client.send("PUT", path, {**present, **given}, etag)
            return
        if "total" not in given:
            raise exceptions.CommandError(
                f"{self.kind.name} {options.uuid} has no inventory of {options.resource_class}; "
                "give --total to create it")
        client.send("POST", self.kind.path(options.uuid, "inventories"),
                    {"resource_class": options.resource_class, **given})


def _present(client, path):
    """Return an inventory, with its generation if it has one, and its ETag; None if missing."""
    try:
        document, etag = client.read(path)
    except placement_client.Refused as refused:
        if refused.status != _NOT_FOUND:
            raise
        # If the provider is missing, the following request fails with that reason.
        return None, None
    document.pop("resource_class", None)
    return document, etag


class SetPoolInventory(SetInventory):
    """Create or change the inventory that a resource pool has of a resource class.

    Values that are not given stay as they are, or are the service's defaults in a new inventory.
    """

    kind = resource_types.POOL


class DeleteInventory(resource_types.OfProvider, command.Command):
    """Delete the inventory of a resource class, unless it has allocations"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--resource-class", required=True, metavar="CLASS")
        return parser

    def take_action(self, options):
        self.client.send(
            "DELETE", self.kind.path(options.uuid, "inventories", options.resource_class))


class DeletePoolInventory(DeleteInventory):
    """Delete the inventory of a resource class, unless it has allocations"""

    kind = resource_types.POOL


class ListUsages(resource_types.OfProvider, command.Lister):
    """Show how much of each inventory of a resource provider is used"""

    def take_action(self, options):
        usages, _ = self.client.read(self.kind.path(options.uuid, "usages"))
        inventories, _ = self.client.read(self.kind.path(options.uuid, "inventories"))
        rows = []
        for name, used in sorted(usages["usages"].items()):
            capacity = _capacity(inventories["inventories"].get(name))
            share = round(100 * used / capacity, 1) if capacity else None
            rows.append((name, used, capacity, share))
        return ("resource_class", "used", "capacity", "percent"), formatting.without_none(
            options, rows)


def _capacity(inventory):
    # The inventory may have been deleted between the two requests.
    if inventory is None:
        return None
    # In decimal arithmetic, as in the service: 100 at a ratio of 0.29 are 29.
    ratio = decimal.Decimal(repr(inventory["allocation_ratio"]))
    return int((inventory["total"] - inventory["reserved"]) * ratio)
