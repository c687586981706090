# SPDX-License-Identifier: Apache-2.0
"""Every release: its version of the contract, of each object, and of each payload.

A release is added at the end and never changed any more once it is out. The first two are what
the specifications of their time say: newton has resource pools, compute node inventory and get
by request, all of standard resource classes; ocata has custom resource classes, generations of
consumers, and limits. ``tests/unit/test_manifests.py`` holds the last one equal to the objects.
"""

import dataclasses
import re

_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}", re.ASCII)


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """One release.

    :param name: str
    :param contract: str, the newest version of the RPC contract that it knows
    :param objects: dict of the name of an object that calls carry, or that is in one, to its
        version
    :param payloads: dict of the name of an event's payload to its version
    """

    name: str
    contract: str
    objects: dict
    payloads: dict

    @property
    def number(self):
        """tuple of int, the contract's version, for comparing"""
        return number(self.contract)

    @property
    def versions(self):
        """dict of the name of every object, payloads included, to its version"""
        return {**self.objects, **self.payloads}


def is_version(value):
    """:returns: bool, whether it is a text as ``1.2``"""
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


def number(version):
    """:param version: str, as ``1.2``; :returns: tuple of int"""
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
#: Every release that there was, the oldest first.
RELEASES = (_NEWTON, _OCATA, _OF_2026_2)
#: This release.
CURRENT = RELEASES[-1]


def of_contract(version):
    """The newest release that speaks no newer version of the contract.

    :param version: str, as ``1.2``
    :returns: :class:`Release`; None where all are newer, or it is no version
    """
    if not is_version(version):
        return None
    asked = number(version)
    return max((each for each in RELEASES
                if each.number <= asked and each.number[0] == asked[0]),
               key=lambda each: each.number, default=None)


def lower(one, other):
    """:returns: dict of object name to the older of two versions; None for both of this release

    :param one: dict of object name to version; None for those of this release
    """
    if one is None or other is None:
        return one or other
    return {name: min((versions[name] for versions in (one, other) if name in versions),
                      key=number) for name in one | other}


def named(text):
    """A release by its name, or by its version of the contract.

    :param text: str
    :returns: :class:`Release`; None where there is none such
    """
    for each in RELEASES:
        if text in (each.name, each.contract):
            return each
    return None
