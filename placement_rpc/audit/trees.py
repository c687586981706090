# SPDX-License-Identifier: Apache-2.0
"""The trees of providers as an audit sees them: which are compute nodes, and of which hosts."""

import dataclasses
import functools
import sys
from collections.abc import Collection, Iterable, Mapping

from placement_rpc.objects.summaries import ProviderSummary

_SHARES = "MISC_SHARES_VIA_AGGREGATE"
# Only compute nodes have one of these classes, or traits that begin so.
_OF_NODES = frozenset(("VCPU", "PCPU", "MEMORY_MB"))
_NODE_TRAIT = "COMPUTE_"


@dataclasses.dataclass(slots=True)
class Node:
    """A provider.

    :param classes: names of the classes of its inventories
    """

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    updated_at: str
    classes: frozenset[str]
    is_used: bool
    shares: bool
    looks_like_a_node: bool


def node_of(summary: ProviderSummary) -> Node:
    """Return what an audit needs of a provider."""
    return Node(
        summary.uuid, summary.name, summary.generation, summary.parent_provider_uuid,
        summary.root_provider_uuid, summary.updated_at,
        frozenset(map(sys.intern, summary.inventories)),
        any(each["used"] for each in summary.inventories.values()), _SHARES in summary.traits,
        not _OF_NODES.isdisjoint(summary.inventories)
        or any(trait.startswith(_NODE_TRAIT) for trait in summary.traits))


class Trees:
    """All providers.

    A *compute node* is a tree whose root does not share its inventories, and that has an inventory
    of VCPU, PCPU or MEMORY_MB or a trait ``COMPUTE_...`` anywhere, or whose root has the name or
    the uuid of a host that nova knows.

    :param nodes: every provider
    :param stored_hosts: uuid of a provider or name of its hypervisor to the host of its compute
        service, as the store has them for nova's compute nodes
    :param names: the names of hosts, and the uuids of hypervisors, that nova knows
    """

    def __init__(self, nodes: Iterable[Node], stored_hosts: Mapping[str, str],
                 names: Collection[str]):
        self.nodes: dict[str, Node] = {each.uuid: each for each in nodes}
        known = {name.lower() for name in names}
        roots = [each for each in self.nodes.values() if each.uuid == each.root]
        looking_so = {each.root for each in self.nodes.values() if each.looks_like_a_node}
        self._names: dict[str, set[str]] = {}
        self._short_names: dict[str, set[str]] = {}
        self._hosts: dict[str, set[str]] = {}
        #: uuids of the roots of compute nodes
        self.compute_nodes: set[str] = set()
        for root in roots:
            if root.shares:
                continue
            self._add(root, stored_hosts)
            if root.uuid in looking_so or not known.isdisjoint((root.name.lower(), root.uuid)):
                self.compute_nodes.add(root.uuid)

    def _add(self, root, stored_hosts):
        name = root.name.lower()
        self._names.setdefault(name, set()).add(root.uuid)
        self._short_names.setdefault(name.partition(".")[0], set()).add(root.uuid)
        host = stored_hosts.get(root.uuid) or stored_hosts.get(root.name)
        if host:
            self._hosts.setdefault(host.lower(), set()).add(root.uuid)

    def of_host(self, host: str) -> frozenset[str]:
        """Return the roots of the trees of a host.

        They are those of its name; or those whose compute service runs there, of which there are
        several for bare metal; or the one whose name is the same without a domain, if one of the
        two names has none.
        """
        host = host.lower()
        found = self._names.get(host) or self._hosts.get(host)
        if not found:
            short, dot, _ = host.partition(".")
            found = self._names.get(short, set()) if dot else self._short_names.get(short, set())
            found = found if len(found) == 1 else set()
        return frozenset(found)

    def served(self, services: Iterable[str]) -> set[str]:
        """Return the roots of the trees that have a compute service.

        :param services: names of services and of their nodes, and uuids of nodes
        """
        found: set[str] = set()
        for name in services:
            found |= self.of_host(name) | self._hosts.get(name.lower(), set())
            if name.lower() in self.nodes:
                found.add(name.lower())
        return found

    @functools.cached_property
    def _children(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for each in self.nodes.values():
            if each.parent is not None:
                found.setdefault(each.parent, []).append(each)
        return found

    def below(self, root: str) -> list[Node]:
        """Return the providers of a tree, each after all that are below it."""
        ordered = [self.nodes[root]]
        for each in ordered:
            ordered += sorted(self._children.get(each.uuid, ()), key=lambda node: node.uuid)
        return ordered[::-1]
