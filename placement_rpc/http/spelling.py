# SPDX-License-Identifier: Apache-2.0
"""Resource providers, and the draft's resource pools: one thing with two spellings."""

import dataclasses

_ALWAYS = (1, 0)
# What is linked to since which microversion.
_LINKS = (("self", "", _ALWAYS), ("inventories", "/inventories", _ALWAYS),
          ("usages", "/usages", _ALWAYS), ("aggregates", "/aggregates", (1, 1)))


@dataclasses.dataclass(frozen=True, slots=True)
class Spelling:
    """How a provider is written.

    :param collection: str, its address, and the key of a list
    :param has_generations: bool, whether bodies carry generations
    :param needs_etag: bool, whether a PUT has to name the state that was read
    :param answers_changes: bool, whether a change answers what it made
    """

    collection: str
    has_generations: bool
    needs_etag: bool
    answers_changes: bool

    def address(self, prefix, uuid):
        """:returns: str, the path of a provider"""
        return f"{prefix}/{self.collection}/{uuid}"

    def of_provider(self, provider, version, prefix):
        """A provider as it is answered.

        :param provider: :class:`placement_rpc.objects.resource_provider.ResourceProvider`
        :param version: tuple of int, the microversion
        """
        address = self.address(prefix, provider.uuid)
        found = {"uuid": provider.uuid, "name": provider.name}
        if self.has_generations:
            found["generation"] = provider.generation
        found["links"] = [{"rel": name, "href": address + path} for name, path, since in _LINKS
                          if version >= since or not self.has_generations]
        return found

    def generation(self, value):
        """:returns: dict with a provider's generation, to be part of a body"""
        return {"resource_provider_generation": value} if self.has_generations else {}


#: generic-resource-pools
PROVIDERS = Spelling("resource_providers", has_generations=True, needs_etag=False,
                     answers_changes=True)
#: generic-resource-pools-draft
POOLS = Spelling("resource_pools", has_generations=False, needs_etag=True,
                 answers_changes=False)
