# SPDX-License-Identifier: Apache-2.0
"""Every release: its version of the contract, of each object, and of each payload.

A release is added at the end, and never changed once it is published. The first two are what the
specifications of their time say: newton has resource pools, compute node inventory and get by
request, all of standard resource classes; ocata has custom resource classes, generations of
consumers, and limits. ``tests/unit/test_manifests.py`` keeps the last one equal to the objects.
"""

import dataclasses
import functools
import re

_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", re.ASCII)


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """One release.

    :param name: str
    :param contract: str, the newest version of the RPC contract that it understands
    :param objects: dict of object name to version, of the objects that calls carry, nested ones
        included
    :param payloads: dict of object name to version, of the payloads of events
    """

    name: str
    contract: str
    objects: dict
    payloads: dict

    @property
    def number(self):
        """tuple of int, the version of the contract, for comparisons"""
        return number(self.contract)

    @property
    def versions(self):
        """dict of the name of every object, payloads included, to its version"""
        return {**self.objects, **self.payloads}


def is_version(value):
    """Return whether a value is a text like ``1.2``."""
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


@functools.lru_cache(1024)
def number(version):
    """Return a version such as ``1.2`` as a tuple of int."""
    return tuple(int(part) for part in version.split("."))


_NEWTON = Release(
    "newton", "1.0",
    objects={
        "Allocation": "1.0", "AllocationList": "1.0", "Claim": "1.0", "ClaimResult": "1.0",
        "Inventory": "1.0", "InventoryList": "1.0", "ProviderAggregates": "1.0",
        "RequestResult": "1.0", "ResourceClass": "1.0", "ResourceClassList": "1.0",
        "ResourceProvider": "1.0", "ResourceProviderList": "1.0", "ResourceRequest": "1.0",
        "Service": "1.0", "ServiceList": "1.0", "Usage": "1.0", "UsageList": "1.0",
        "ComputeNode": "1.16", "ComputeNodeList": "1.16", "HVSpec": "1.2", "NUMACell": "1.2",
        "NUMAPagesTopology": "1.1", "NUMATopology": "1.2", "PciDevicePool": "1.1",
        "PciDevicePoolList": "1.1"},
    payloads={
        "AllocationPayload": "1.0", "CapacityExceededPayload": "1.0",
        "ClaimRefusedPayload": "1.0", "InventoryChange": "1.0", "InventoryPayload": "1.0",
        "ProviderAggregatesPayload": "1.0", "ProviderAllocation": "1.0",
        "ResourceProviderPayload": "1.0", "SnapshotPayload": "1.0",
        "ComputeNodePayload": "1.0"})
_OCATA = Release(
    "ocata", "1.1",
    objects=_NEWTON.objects | {
        "AllocationList": "1.1", "Claim": "1.1", "ClaimResult": "1.1", "Consumer": "1.0",
        "ResourceRequest": "1.1"},
    payloads=_NEWTON.payloads | {"AllocationPayload": "1.1", "ResourceClassPayload": "1.0"})
_OF_2026_2 = Release(
    "2026.2", "1.2",
    objects=_OCATA.objects | {
        "ClaimList": "1.0", "ClaimResult": "1.2", "ClaimResultList": "1.0",
        "Disagreement": "1.0", "EventPage": "1.0", "EventPositions": "1.0",
        "Explanation": "1.0", "ExplanationList": "1.0", "ResourceProvider": "1.1",
        "ResourceRequest": "1.2", "Service": "1.1", "SyncResult": "1.0",
        "ComputeNode": "1.19", "ComputeNodeList": "1.17", "NUMACell": "1.5",
        "NetworkMetadata": "1.0"},
    payloads=_OCATA.payloads)
# Its messages are recorded in tests/upgrade/golden, so that a later change of it is found.
_OF_2027_1 = Release(
    "2027.1", "1.3",
    objects=_OF_2026_2.objects | {
        "Allocation": "1.1", "AllocationCandidates": "1.0", "AllocationList": "1.2",
        "CandidateClaimResult": "1.0", "CandidateGroup": "1.0", "CandidatesRequest": "1.0",
        "Claim": "1.2", "Consumer": "1.1", "ConsumerSummary": "1.0",
        "ConsumerSummaryList": "1.0", "ExplanationList": "1.1", "Headroom": "1.0",
        "InventoryList": "1.1", "ProjectUsages": "1.0", "ProviderSummary": "1.0",
        "ProviderSummaryList": "1.0", "ProviderTraits": "1.0",
        "Reshape": "1.0", "ReshapeResult": "1.0",
        "ResourceClass": "1.1", "ResourceProvider": "1.2", "ResourceProviderList": "1.1",
        "Trait": "1.0", "TraitList": "1.0"},
    payloads=_OF_2026_2.payloads | {
        "AllocationPayload": "1.2", "CapacityExceededPayload": "1.1",
        "ClaimRefusedPayload": "1.1", "ComputeNodePayload": "1.1", "ConsumerPayload": "1.0",
        "InventoryPayload": "1.1", "LostEvent": "1.0", "OutboxReconciledPayload": "1.0",
        "ProviderAggregatesPayload": "1.1", "ProviderTraitsPayload": "1.0",
        "ReconciledConsumer": "1.0", "ReconciledProvider": "1.0",
        "ResourceClassPayload": "1.1", "ResourceProviderPayload": "1.1",
        "SnapshotPayload": "1.1", "StoreImportPayload": "1.0", "TraitPayload": "1.0"})
#: All releases, the oldest first.
RELEASES = (_NEWTON, _OCATA, _OF_2026_2, _OF_2027_1)
#: This release.
CURRENT = RELEASES[-1]


def of_contract(version):
    """Return the newest release whose version of the contract is not newer than a given one.

    :param version: str, like ``1.2``
    :returns: :class:`Release`; None if all are newer or of another major version, or if it is not
        a version
    """
    if not is_version(version):
        return None
    limit = number(version)
    return max((each for each in RELEASES
                if each.number <= limit and each.number[0] == limit[0]),
               key=lambda each: each.number, default=None)


def lower(one, other):
    """Return the older of two versions of each object.

    :param one: dict of object name to version; None for the versions of this release
    :param other: the same
    :returns: the same; None if both are None
    """
    if one is None or other is None:
        return one or other
    return {name: min((versions[name] for versions in (one, other) if name in versions),
                      key=number) for name in one | other}


def named(text):
    """Return the release with a name or a version of the contract; None if there is none."""
    for each in RELEASES:
        if text in (each.name, each.contract):
            return each
    return None
