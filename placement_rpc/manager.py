# SPDX-License-Identifier: Apache-2.0
"""The server's end of the RPC contract; ``api.py`` is the client's.

Each method checks its arguments, makes one call into the rules, and returns. What a call is (since
which contract, in which queue, batched or not, under which policy rules) stands in
:mod:`placement_rpc.versions.contract`; every call comes through :meth:`Endpoint.enter
<placement_rpc.rpc.endpoint.Endpoint.enter>`.
"""

from placement_rpc.endpoints.compute_nodes import ComputeNodeEndpoint
from placement_rpc.endpoints.providers import ProviderEndpoint
from placement_rpc.endpoints.reshape import ReshapeEndpoint
from placement_rpc.endpoints.resource_classes import ResourceClassEndpoint
from placement_rpc.endpoints.service import ServiceEndpoint
from placement_rpc.endpoints.summaries import SummaryEndpoint
from placement_rpc.endpoints.traits import TraitEndpoint


class Manager(ProviderEndpoint, ReshapeEndpoint, TraitEndpoint, ResourceClassEndpoint,
              ComputeNodeEndpoint, SummaryEndpoint, ServiceEndpoint):
    """Answers the calls of contract 1.x.

    The endpoint of the reshaper has those of inventories and of allocations.

    :param conf: made by :mod:`placement_rpc.conf`
    :param database: the store; its owner closes it
    """
