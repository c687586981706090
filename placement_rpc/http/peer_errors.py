# SPDX-License-Identifier: Apache-2.0
"""The codes and words of OpenStack Placement's errors, by which its clients tell them apart.

The messages in :mod:`placement_rpc.exception` are the same on every transport. On the addresses
of the peer's API, the detail of some errors begins with what the peer says there, which depends on
the request and not on the error alone; the message follows.
"""

from typing import NamedTuple

from placement_rpc import exception

#: The code of an error that the peer distinguishes by its status only
UNDEFINED = "placement.undefined_code"
#: The first microversion at which the peer's errors have a code
SINCE = (1, 23)

_CONCURRENT = exception.ConcurrentUpdate.code
_DUPLICATE = exception.NameInUse.code
_CODES = frozenset((
    UNDEFINED, _CONCURRENT, _DUPLICATE, exception.InventoryInUse.code,
    exception.ProviderInUse.code, exception.ProviderIsParent.code, "placement.query.duplicate_key",
    "placement.query.bad_value", "placement.query.missing_value"))
# The peer has the conditions and gives them codes of others.
_CODES_BY_CLASS = {
    exception.ConsumerConflict: _CONCURRENT, exception.InventoryExists: _CONCURRENT,
    exception.ProviderExists: _DUPLICATE}
# Conditions that the peer does not have.
_OURS = exception.RequestIdReused
_OUR_STATUSES = frozenset((410, 412, 413, 428))
_FIRST_SERVER_ERROR = 500

_PROVIDERS = "/resource_providers"
_PROVIDER = f"{_PROVIDERS}/{{uuid}}"
_INVENTORIES = f"{_PROVIDER}/inventories"
_INVENTORY = f"{_INVENTORIES}/{{resource_class}}"
_CONSUMER = "/allocations/{consumer_uuid}"
_CLASS = "/resource_classes/{name}"
_TRAIT = "/traits/{name}"
_RESHAPER = ("POST", "/reshaper")
_CLAIMS = (("PUT", _CONSUMER), ("POST", "/allocations"), _RESHAPER)
_INVENTORY_CHANGES = (("PUT", _INVENTORIES), ("PUT", _INVENTORY))
_ADDRESSES = (_PROVIDERS, "/allocations", "/resource_classes", "/traits", "/usages", "/reshaper",
              "/allocation_candidates")


class ReshapedProviderNotFound(exception.ProviderNotFound):
    """A reshape has inventories of a provider that does not exist."""

    http_status = 400


class PeerError(NamedTuple):
    """What the peer answers.

    :ivar words: str, with the names of the error's values, and of the parts of the address, in
        braces; ``{text}`` is the error's own message
    :ivar code: str; None for that of the error
    :ivar status: int, HTTP status; None for that of the error
    """

    words: str
    code: str | None = None
    status: int | None = None


_NO_ROOM = ("Unable to allocate inventory: Unable to create allocation for '{resource_class}' on "
            "resource provider '{provider}'. The requested amount would ")
_CONFLICT = PeerError("resource provider generation conflict: {text}")
_UPDATE_CONFLICT = PeerError(
    "update conflict: Inventory for '{resource_class}' on resource provider '{provider}' in "
    "use. {text}")
_IN_INVENTORY = "for resource provider {uuid}: {text}"
_NOT_RESHAPED = PeerError(
    "Resource provider {provider} in inventories not found: {text}",
    exception.ProviderNotFound.code)


# Every attempt met concurrent writers. Clients of the peer repeat the request after these words
# and this code. After a 503 they give up: nova's scheduler would go on to another host.
_COLLIDED = "Another thread concurrently updated the data. Please retry your update. {text}"


def _collided(words=""):
    return PeerError(words + _COLLIDED, _CONCURRENT, 409)


def _at(routes, **entries):
    return {(route, getattr(exception, name)): entry for route in routes
            for name, entry in entries.items()}


# By method and address, and class of the error.
TABLE = {
    **_at(_CLAIMS, StoreBusy=_collided(
        "Inventory and/or allocations changed while attempting to allocate: ")),
    **_at((*_INVENTORY_CHANGES, ("POST", _INVENTORIES), ("DELETE", _INVENTORY),
           ("DELETE", _INVENTORIES), ("PUT", f"{_PROVIDER}/aggregates"), _RESHAPER),
          StoreBusy=_collided("update conflict: ")),
    **_at((("PUT", f"{_PROVIDER}/traits"), ("DELETE", f"{_PROVIDER}/traits")),
          StoreBusy=_collided()),
    **_at([("GET", _PROVIDERS)],
          ResourceClassNotFound=PeerError(
              "Invalid resource class in resources parameter: {text}"),
          TraitNotFound=PeerError('Invalid trait(s) in "required" parameter: {text}')),
    **_at([("GET", "/allocation_candidates")], ResourceClassNotFound=PeerError(
        "Invalid resource class in resources parameter: {text}")),
    **_at([("POST", _PROVIDERS)],
          ResourceClassNotFound=PeerError("Invalid resource class in resources: {text}")),
    **_at([("DELETE", _PROVIDER)],
          ProviderNotFound=PeerError(
              "No resource provider with uuid {provider} found for delete")),
    **_at([("POST", _INVENTORIES)],
          InventoryExists=PeerError("Update conflict: {text}"),
          InvalidInventory=PeerError(f"Unable to create inventory {_IN_INVENTORY}"),
          ResourceClassNotFound=PeerError(f"Unable to create inventory {_IN_INVENTORY}")),
    **_at(_INVENTORY_CHANGES, ConcurrentUpdate=_CONFLICT, InventoryInUse=_UPDATE_CONFLICT,
          InvalidInventory=PeerError(f"Unable to update inventory {_IN_INVENTORY}"),
          InventoryNotFound=PeerError(
              "No inventory record with resource class for resource provider {uuid}: No "
              "inventory of class {resource_class} found.")),
    **_at([("PUT", _INVENTORIES)], ResourceClassNotFound=PeerError(
        f"Unknown resource class in inventory {_IN_INVENTORY}")),
    **_at([("DELETE", _INVENTORIES)], InventoryInUse=PeerError(
        "Inventory for '{resource_class}' on resource provider '{provider}' in use. {text}")),
    **_at([("GET", _INVENTORY)],
          InventoryNotFound=PeerError("No inventory of class {resource_class} for {provider}"),
          ResourceClassNotFound=PeerError("No inventory of class {resource_class} for {uuid}")),
    **_at([("DELETE", _INVENTORY)],
          InventoryNotFound=PeerError(
              "No inventory of class {resource_class} found for delete: {text}"),
          ResourceClassNotFound=PeerError(
              "No inventory of class {resource_class} found for delete: {text}"),
          InventoryInUse=PeerError(
              "Unable to delete inventory of class {resource_class}: Inventory for "
              "'{resource_class}' on resource provider '{provider}' in use. {text}", _CONCURRENT)),
    **_at([("DELETE", _CONSUMER)], ConsumerNotFound=PeerError(
        "No allocations for consumer '{consumer}'")),
    **_at(_CLAIMS,
          ProviderNotFound=PeerError(
              "Allocation for resource provider '{provider}' that does not exist."),
          ResourceClassNotFound=PeerError("Unable to allocate inventory: {text}"),
          CapacityExceeded=PeerError(f"{_NO_ROOM}exceed the capacity. {{text}}"),
          ConstraintsViolated=PeerError(f"{_NO_ROOM}violate inventory constraints. {{text}}")),
    **_at([("PUT", _CONSUMER)], ResourceClassNotFound=PeerError(
        "Unable to allocate inventory for consumer {consumer_uuid}: {text}")),
    **_at([_RESHAPER],
          ConcurrentUpdate=PeerError(
              "resource provider generation conflict for provider {provider}: "
              "actual: {current}, given: {given}"),
          ResourceClassNotFound=PeerError("malformed reshaper data: {text}"),
          InventoryInUse=_UPDATE_CONFLICT),
    (_RESHAPER, ReshapedProviderNotFound): _NOT_RESHAPED,
    **_at([("DELETE", _TRAIT)],
          TraitStandard=PeerError("Cannot delete standard trait {trait}.")),
    **_at([("PUT", _CLASS)],
          ResourceClassExists=PeerError("Resource class already exists: {resource_class}"),
          ResourceClassStandard=PeerError(
              "Cannot update standard resource class {resource_class}")),
    **_at([("DELETE", _CLASS)],
          ResourceClassStandard=PeerError(
              "Error in delete resource class: Cannot delete standard resource class "
              "{resource_class}."),
          ResourceClassInUse=PeerError(
              "Error in delete resource class: Cannot delete resource class {resource_class}. "
              "Class is in use in inventory. {text}")),
}
# CapacityExceeded without any capacity: there is no inventory of the class.
_NO_INVENTORY = PeerError(
    "Unable to allocate inventory: Inventory for '{resource_class}' on resource provider "
    "'{provider}' invalid. {text}")


def is_peers(address):
    """Return whether an address is one of the peer's API.

    :param address: str, the template of a route; None if there is no such address
    """
    return address is None or address == "/" or address.startswith(_ADDRESSES)


def _entry(method, address, error):
    if isinstance(error, exception.CapacityExceeded) and not error.kwargs.get("capacity", True) \
            and (method, address) in _CLAIMS:
        return _NO_INVENTORY
    return TABLE.get(((method, address), type(error)))


def detail(method, address, parts, error):
    """Return the text of an error as the peer begins it.

    :param method: str, of the request
    :param address: str, the template of its route
    :param parts: dict of the variable parts of the address
    :param error: :class:`placement_rpc.exception.PlacementException`
    """
    found = _entry(method, address, error)
    if found is None:
        return error.text
    return exception.fill(found.words, {**parts, **error.kwargs, "text": error.text})


def status(method, address, error):
    """Return the HTTP status of an error as the peer gives it."""
    found = _entry(method, address, error)
    return error.http_status if found is None or found.status is None else found.status


def code(method, address, version, error):
    """Return the code of an error as the peer gives it.

    :param version: tuple of int, the microversion
    """
    if version < SINCE or not is_peers(address) or isinstance(error, _OURS):
        return error.code
    found = _entry(method, address, error)
    if found is not None and found.code is not None:
        return found.code
    if error.http_status in _OUR_STATUSES or error.http_status >= _FIRST_SERVER_ERROR:
        return error.code
    given = _CODES_BY_CLASS.get(type(error), error.code)
    return given if given in _CODES else UNDEFINED
