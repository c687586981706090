# SPDX-License-Identifier: Apache-2.0
"""The client's calls about traits, and those of a resource provider."""

from collections.abc import Sequence

from oslo_context.context import RequestContext

from placement_rpc.client.base import any_list
from placement_rpc.objects.trait import ProviderTraits, Trait, TraitList
from placement_rpc.rpc.client import Client


class TraitCalls(Client):

    def list_traits(self, context: RequestContext | None, names: Sequence[str] | None = None,
                    prefix: str | None = None, associated: bool | None = None,
                    marker: str | None = None, limit: int | None = None,
                    timeout: float | None = None) -> TraitList:
        """Return traits in alphabetical order.

        :param names: only those of these names that exist
        :param prefix: only those whose names begin with it
        :param associated: True for those that some provider has, False for the others
        :param marker: the name after which to begin
        :param limit: the most traits to return; None for the most that one answer has
        """
        return self._call(context, "list_traits", timeout, names=names, prefix=prefix,
                          associated=associated, marker=marker, limit=limit)

    def create_trait(self, context: RequestContext | None, name: str,
                     request_id: str | None = None, timeout: float | None = None) -> Trait:
        """Create a custom trait.

        :param name: begins with ``CUSTOM_``
        :raises TraitExists: if there is one of the name
        :raises TraitStandard: if a standard trait has the name
        :raises UpgradeInProgress: if a live service knows no traits
        """
        return self._change(context, "create_trait", request_id, timeout, trait=Trait(name=name))

    def delete_trait(self, context: RequestContext | None, name: str,
                     request_id: str | None = None, timeout: float | None = None) -> None:
        """Delete a custom trait that no provider has.

        :raises TraitNotFound: if there is no such trait
        :raises TraitInUse: if a provider has it
        :raises TraitStandard: if it is a standard trait
        :raises UpgradeInProgress: if a live service knows no traits
        """
        self._change(context, "delete_trait", request_id, timeout, name=name)

    def get_provider_traits(self, context: RequestContext | None, provider_uuid: str,
                            timeout: float | None = None) -> ProviderTraits:
        """Return the traits of a provider, and its generation.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_provider_traits", timeout, provider_uuid=provider_uuid)

    def set_provider_traits(self, context: RequestContext | None, provider_uuid: str,
                            traits: Sequence[str], generation: int | None = None,
                            request_id: str | None = None,
                            timeout: float | None = None) -> ProviderTraits:
        """Give a provider these traits and no others; the same ones change nothing.

        :param generation: the provider's, as the caller read it; None to accept any
        :raises ProviderNotFound: if there is no such provider
        :raises ConcurrentUpdate: if the provider is at another generation
        :raises TraitNotFound: if there is no such trait
        :raises UpgradeInProgress: if a live service knows no traits
        """
        wanted = ProviderTraits(provider_uuid=provider_uuid, traits=any_list("traits", traits))
        if generation is not None:
            wanted.generation = generation
        return self._change(context, "set_provider_traits", request_id, timeout, traits_of=wanted)
