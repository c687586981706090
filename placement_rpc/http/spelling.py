# SPDX-License-Identifier: Apache-2.0
"""Two spellings of one resource: resource providers, and the draft's resource pools."""

import dataclasses
import functools

_ALWAYS = (1, 0)
# Pools have the links of this microversion at every one.
_OF_POOLS = (1, 1)
#: The first microversion with parents and roots.
TREES = (1, 14)
#: The last one without
BEFORE_TREES = (TREES[0], TREES[1] - 1)
# Relation, path below the provider, and first microversion of each link.
_LINKS = (("self", "", _ALWAYS), ("inventories", "/inventories", _ALWAYS),
          ("usages", "/usages", _ALWAYS), ("aggregates", "/aggregates", (1, 1)),
          ("traits", "/traits", (1, 6)), ("allocations", "/allocations", (1, 11)))


@functools.cache
def _links(version):
    return [(name, path) for name, path, since in _LINKS if version >= since]


@dataclasses.dataclass(frozen=True, slots=True)
class Spelling:
    """How a provider appears in addresses and bodies.

    :param collection: str, the first part of the address, and the key of a list
    :param has_generations: bool, whether bodies carry generations
    :param needs_etag: bool, whether PUT requires If-Match
    :param answers_changes: bool, whether the answer to a change has the new state in its body
    """

    collection: str
    has_generations: bool
    needs_etag: bool
    answers_changes: bool

    def address(self, prefix, uuid):
        """Return the path of a provider."""
        return f"{prefix}/{self.collection}/{uuid}"

    def of_provider(self, provider, version, prefix):
        """Return the body for a provider, as a dict.

        :param provider: :class:`placement_rpc.objects.resource_provider.ResourceProvider`
        :param version: tuple of int, the microversion
        """
        uuid = provider.uuid
        address = self.address(prefix, uuid)
        found = {"uuid": uuid, "name": provider.name}
        if self.has_generations:
            found["generation"] = provider.generation
        if self.has_generations and version >= TREES:
            # A service of release 2026.2 knows no trees: each provider is a root.
            found["parent_provider_uuid"] = provider.value("parent_provider_uuid")
            found["root_provider_uuid"] = provider.value("root_provider_uuid", uuid)
        found["links"] = [{"rel": name, "href": address + path} for name, path in _links(
            version if self.has_generations else _OF_POOLS)]
        return found

    def generation(self, value):
        """Return the part of a body that has a provider's generation, as a dict."""
        return {"resource_provider_generation": value} if self.has_generations else {}


#: generic-resource-pools
PROVIDERS = Spelling("resource_providers", has_generations=True, needs_etag=False,
                     answers_changes=True)
#: generic-resource-pools-draft
POOLS = Spelling("resource_pools", has_generations=False, needs_etag=True,
                 answers_changes=False)
