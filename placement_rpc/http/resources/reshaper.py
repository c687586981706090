# SPDX-License-Identifier: Apache-2.0
"""Changes of inventories and allocations in one transaction (microversion 1.30)."""

from placement_rpc import exception
from placement_rpc.api import InventoryList
from placement_rpc.http import claims, names, preconditions
from placement_rpc.http.call import NO_CONTENT
from placement_rpc.http.peer_errors import ReshapedProviderNotFound
from placement_rpc.http.resources import inventories


def reshaped(call):
    """Change the inventories of providers, and allocations: all of them or none."""
    call.refuse_condition()
    providers = claims.by_uuid(call.body["inventories"], "resource provider")
    consumers = claims.by_uuid(call.body["allocations"], "consumer")
    with claims.refusals(call, consumers):
        try:
            _check_classes(call, providers)
            call.api.reshape(
                call.context, [_inventories(uuid, given) for uuid, given in providers.items()],
                claims.of_bodies(call, consumers), request_id=call.request_id)
        except exception.ProviderNotFound as error:
            if error.kwargs["provider"] not in providers:
                raise
            raise ReshapedProviderNotFound(**error.kwargs) from None
    return NO_CONTENT


def _check_classes(call, providers):
    """Report missing providers and stale generations before names that no class can have.

    :param providers: dict of uuid to the body of a ``PUT .../inventories``
    :raises ResourceClassNotFound: if there is such a name, and all providers are as expected
    """
    try:
        names.check_classes(name for given in providers.values() for name in given["inventories"])
    except exception.ResourceClassNotFound:
        for uuid, given in providers.items():
            preconditions.check_provider(
                call, uuid, preconditions.given_generation(given["resource_provider_generation"]))
        raise


def _inventories(uuid, given):
    """Return the inventories of a provider.

    :param given: dict, the body of a ``PUT .../inventories``
    """
    return InventoryList(
        provider_uuid=uuid,
        generation=preconditions.given_generation(given["resource_provider_generation"]),
        objects=[inventories.record(name, values)
                 for name, values in given["inventories"].items()])
