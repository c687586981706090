# SPDX-License-Identifier: Apache-2.0
"""The client's calls about resource providers and their aggregates."""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

from oslo_context.context import RequestContext

from placement_rpc import exception
from placement_rpc.client.base import KEEP, Keep, any_list
from placement_rpc.objects import codec
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.fields import RequestId, WholeNumber
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from placement_rpc.rpc.client import Client, given_or_new

LOG = logging.getLogger(__name__)
# How many providers, from the last one on, are tried as the one after which a page begins.
_TRIED = 3
# The namespace of the uuids of providers that are created without one.
_NEW_PROVIDERS = uuid.UUID("6e7d1f0c-3d3c-5b0b-9f5e-0d6b7a0c9a11")


class ProviderCalls(Client):

    def create_provider(self, context: RequestContext | None, name: str,
                        provider_uuid: str | None = None, request_id: str | None = None,
                        timeout: float | None = None,
                        parent_provider_uuid: str | None = None) -> ResourceProvider:
        """Create a resource provider, at generation 0.

        :param name: 1 to 200 printable characters
        :param provider_uuid: None for a new one
        :param parent_provider_uuid: None for the root of a new tree
        :raises NameInUse: if another provider has the name
        :raises ProviderExists: if another provider has the uuid
        :raises ParentNotFound: if there is no such parent
        :raises UpgradeInProgress: if it has a parent, and a live service knows no trees, or if
            its name begins or ends with a blank, which an older service does not accept
        """
        request_id = RequestId().coerce(None, "request_id", given_or_new(request_id))
        if provider_uuid is None:
            # Derived from the request, so that a repeated request names the same provider.
            provider_uuid = str(uuid.uuid5(_NEW_PROVIDERS, request_id))
        provider = ResourceProvider(uuid=provider_uuid, name=name)
        if parent_provider_uuid is not None:
            provider.parent_provider_uuid = parent_provider_uuid
        return self._change(context, "create_provider", request_id, timeout, provider=provider)

    def update_provider(self, context: RequestContext | None, provider_uuid: str, name: str,
                        generation: int | None = None, request_id: str | None = None,
                        timeout: float | None = None,
                        parent_provider_uuid: str | Keep | None = KEEP,
                        may_move: bool | None = None) -> ResourceProvider:
        """Rename a resource provider, or move it to another place in the trees.

        All that is below it moves with it. The generation of each provider whose root is another
        then rises.

        :param generation: the provider's, as the caller read it; None to accept any
        :param parent_provider_uuid: None to make it a root; not given, it stays where it is
        :param may_move: False to refuse another parent, or none, for a provider that has one
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if the provider is at another generation
        :raises NameInUse: if another provider has the name
        :raises ParentNotFound: if there is no such parent
        :raises ParentFixed: if it has another parent, and may not be moved
        :raises TreeLoop: if the parent is the provider itself, or below it
        :raises UpgradeInProgress: if a parent is given, and a live service knows no trees
        """
        provider = ResourceProvider(uuid=provider_uuid, name=name)
        if generation is not None:
            provider.generation = generation
        if not isinstance(parent_provider_uuid, Keep):
            provider.parent_provider_uuid = parent_provider_uuid
        return self._change(context, "update_provider", request_id, timeout, provider=provider,
                            may_move=may_move)

    def delete_provider(self, context: RequestContext | None, provider_uuid: str,
                        generation: int | None = None, request_id: str | None = None,
                        timeout: float | None = None) -> None:
        """Delete a resource provider that has neither allocations nor children.

        :raises ProviderNotFound: if there is no such provider
        :raises ProviderIsParent: if it has children
        :raises ProviderInUse: if it has allocations
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        self._change(context, "delete_provider", request_id, timeout,
                     provider_uuid=provider_uuid, generation=generation)

    def get_provider(self, context: RequestContext | None, provider_uuid: str,
                     timeout: float | None = None) -> ResourceProvider:
        """Return a resource provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_provider", timeout, provider_uuid=provider_uuid)

    def list_providers(self, context: RequestContext | None, name: str | None = None,
                       member_of: Sequence[Sequence[str]] | None = None,
                       marker: str | None = None, limit: int | None = None,
                       timeout: float | None = None, uuid: str | None = None,
                       not_member_of: Sequence[str] | None = None, in_tree: str | None = None,
                       required: Sequence[Sequence[str]] | None = None,
                       forbidden: Sequence[str] | None = None,
                       resources: Mapping[str, int] | None = None) -> ResourceProviderList:
        """Return resource providers, the oldest first. All conditions have to be met.

        The list carries the ``position`` of an event up to which it includes every change, and
        ``more``, whether there are others after the limit; both are None if the service is older.

        :param name: only the provider of this name
        :param uuid: only the provider of this uuid
        :param not_member_of: aggregate uuids: only providers that are in none of them
        :param in_tree: only providers of the tree of this one
        :param required: lists of traits: only providers that have one of each list
        :param forbidden: traits: only providers that have none of them
        :param resources: amounts by class: only providers that have them free
        :param member_of: lists of aggregate uuids: only providers that are in one of each list
        :param marker: uuid of the provider after which to begin
        :param limit: the most providers to return; None for all
        :raises ProviderNotFound: if there is no provider of the marker
        :raises TraitNotFound: if there is no such trait
        :raises ResourceClassNotFound: if there is no such class
        """
        found: list[ResourceProvider] = []
        position = more = None
        ends = time.monotonic() + self._seconds(timeout)
        if limit is not None:
            limit = WholeNumber(minimum=1).coerce(None, "limit", limit)

        def read(marker: str | None) -> ResourceProviderList:
            return self._call(
                context, "list_providers", max(0, ends - time.monotonic()), name=name,
                member_of=member_of, marker=marker, uuid=uuid, not_member_of=not_member_of,
                limit=None if limit is None else limit - len(found), in_tree=in_tree,
                required=required, forbidden=forbidden, resources=resources)

        while limit is None or len(found) < limit:
            page = _page_after(found, marker, read)
            position = page.value("position") if position is None else position
            found += page.objects
            more = page.value("more")
            # A service before contract 1.3 does not say whether there is more.
            if not page.value("more", bool(page.objects) and name is None):
                break
        return codec.stored(ResourceProviderList, objects=found, position=position, more=more)

    def get_aggregates(self, context: RequestContext | None, provider_uuid: str,
                       timeout: float | None = None) -> ProviderAggregates:
        """Return the aggregates of a provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_aggregates", timeout, provider_uuid=provider_uuid)

    def set_aggregates(self, context: RequestContext | None, provider_uuid: str,
                       aggregates: Iterable[str], generation: int | None = None,
                       request_id: str | None = None,
                       timeout: float | None = None) -> ProviderAggregates:
        """Put a provider into these aggregates and no others.

        :param aggregates: list, tuple or set of uuids
        :param generation: the provider's, as the caller read it; None to accept any
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if the provider is at another generation
        """
        wanted = ProviderAggregates(
            provider_uuid=provider_uuid, aggregates=any_list("aggregates", aggregates))
        # Sorted, so that a repeated request has the same fingerprint.
        wanted.aggregates = sorted(wanted.aggregates)
        if generation is not None:
            wanted.generation = generation
        return self._change(context, "set_aggregates", request_id, timeout, aggregates=wanted)


def _page_after(found: list[ResourceProvider], marker: str | None,
                read: Callable[[str | None], ResourceProviderList]) -> ResourceProviderList:
    """Read the page after the last provider that was found.

    If that provider has been deleted since, the page after the provider before it is the same one.
    If several have been deleted, the list is read again.

    :param found: emptied if the list is read again
    :param marker: the provider after which the list begins; None for the first page
    """
    for provider in found[:-_TRIED - 1:-1]:
        try:
            return read(provider.uuid)
        except exception.ProviderNotFound:
            LOG.debug("Provider %s was deleted while providers were listed", provider.uuid)
    found.clear()
    return read(marker)
