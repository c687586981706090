# SPDX-License-Identifier: Apache-2.0
"""The client's end of the RPC contract: what a nova-compute or a scheduler imports.

::

    api = PlacementAPI(transport_url="rabbit://user:secret@broker/")
    api.claim_allocations(context, Claim(
        consumer_uuid=instance.uuid, project_id=instance.project_id, user_id=instance.user_id,
        allocations={node.uuid: {"VCPU": 2, "MEMORY_MB": 2048}}))

A call returns the result, or raises an error of :mod:`placement_rpc.exception`. A call that may
succeed later is retried until its deadline, always under the same request id, so that the service
does it once however often it is sent.
"""

from placement_rpc.client.allocations import AllocationCalls
from placement_rpc.client.base import KEEP
from placement_rpc.client.compute_nodes import ComputeNodeCalls
from placement_rpc.client.inventories import InventoryCalls
from placement_rpc.client.providers import ProviderCalls
from placement_rpc.client.reshape import ReshapeCalls
from placement_rpc.client.resource_classes import ResourceClassCalls
from placement_rpc.client.service import ServiceCalls
from placement_rpc.client.summaries import SummaryCalls
from placement_rpc.client.traits import TraitCalls
from placement_rpc.objects.candidates import (
    AllocationCandidates,
    CandidateGroup,
    CandidatesRequest,
)
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import Inventory, InventoryList, capacity_of
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.resource_class import canonical
from placement_rpc.objects.usage import UNKNOWN_TYPE
from placement_rpc.rpc.client import new_request_id
from placement_rpc.rpc.endpoint import as_name, as_uuid
from placement_rpc.versions.contract import RPC_VERSION

__all__ = ["KEEP", "RPC_VERSION", "UNKNOWN_TYPE", "AllocationCandidates", "CandidateGroup",
           "CandidatesRequest", "Claim", "Inventory", "InventoryList", "PlacementAPI",
           "ResourceRequest", "as_name", "as_uuid", "canonical", "capacity_of", "new_request_id"]


class PlacementAPI(ProviderCalls, InventoryCalls, AllocationCalls, ReshapeCalls, TraitCalls,
                   ResourceClassCalls, ComputeNodeCalls, SummaryCalls, ServiceCalls):
    """Calls to the placement service. Thread-safe; make one per process, after it forked.

    The constructor's parameters are those of :class:`placement_rpc.rpc.client.Client`.

    Every method takes ``context`` first: any :class:`oslo_context.context.RequestContext`, or
    None. Every method takes ``timeout``: seconds for the whole call; None for the configured
    deadline. Every change takes ``request_id``; None for a new one.

    In addition to the errors that it names, a method may raise InvalidInput and its subclasses
    for bad input, DeadlineExceeded if the time is over and the outcome unknown (its subclass
    ReadTimedOut for a call that changes nothing), StoreBusy if the time is over and every attempt
    met concurrent writers, so that nothing was changed, and UnsupportedCall if the service is too
    old for the call.
    """
