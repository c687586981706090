# SPDX-License-Identifier: Apache-2.0
"""The part of the demo about requests with groups: find and claim, explain, and headroom."""

import uuid

import rich.box
import rich.table

from placement_rpc.api import CandidateGroup, CandidatesRequest
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import Inventory

_SHARES, _FAST = "MISC_SHARES_VIA_AGGREGATE", "CUSTOM_DEMO_GPU_FAST"
# Of every fifth node, how many physical GPUs it has, and how many virtual ones each of them gives.
_EVERY, _GPUS, _VIRTUAL = 5, 2, 4
_FLAVORS = {"small": {"VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 50},
            "large": {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 160}}


def show(console, fleet):
    """Give some nodes GPUs, and ask for them.

    :param fleet: the demo's providers
    """
    api = fleet.api
    _add_traits(api, fleet.pool, _SHARES)
    gpus = _add_gpus(api, [node for node in fleet.names if node != fleet.pool])
    console.print(f"\n[bold]Requests with groups[/bold]: {gpus} GPUs in trees with their nodes; "
                  "the NFS share gives disk to the nodes of row 1")
    _claim(console, api)
    _explain(console, api)
    _headroom(console, api)


def _add_traits(api, provider, *names):
    found = api.get_provider_traits(None, provider)
    api.set_provider_traits(None, provider, [*found.traits, *names], found.generation)


def _add_gpus(api, nodes):
    """Give every fifth node GPUs, some of them fast; return their number."""
    api.create_trait(None, _FAST)
    number = 0
    for node in sorted(nodes)[::_EVERY]:
        for _ in range(_GPUS):
            gpu = api.create_provider(
                None, f"gpu-{number}-{uuid.uuid4()}", parent_provider_uuid=node).uuid
            api.set_inventory(None, gpu, [Inventory(resource_class="VGPU", total=_VIRTUAL)])
            if number % 3 == 0:
                _add_traits(api, gpu, _FAST)
            number += 1
    return number


def _request(amount, required=()):
    """Return a request for a small server and for two GPUs of one node."""
    return CandidatesRequest(
        groups=[CandidateGroup(resources=_FLAVORS["small"]), *(
            CandidateGroup(suffix=f"_GPU{number}", resources={"VGPU": amount},
                           required=[[each] for each in required]) for number in range(2))],
        group_policy="isolate")


def _claim(console, api):
    """Find and claim in one call, and release it again."""
    wanted = _request(1)
    found = api.get_allocation_candidates(None, wanted)
    consumer = str(uuid.uuid4())
    claimed = api.claim_by_request(
        None, wanted, Claim(consumer_uuid=consumer, project_id="demo", user_id="demo"))
    console.print(f"  {wanted.text}: {found.count} candidates; one of them is claimed from "
                  f"{len(claimed.allocations)} providers in one call")
    api.release_allocations(None, consumer)


def _explain(console, api):
    """Show for a request that nothing can serve which rule is to blame."""
    wanted = _request(3, required=[_FAST])
    found = api.explain(None, wanted, funnel=True, limit=1)
    table = rich.table.Table(title=f"Why nothing has room for {wanted.text}, {_FAST}",
                             box=rich.box.SIMPLE_HEAD)
    for column, justify in (("providers", "right"), ("trees", "right"), ("that", "left"),
                            ("rule", "left"), ("group", "left")):
        table.add_column(column, justify=justify)
    for step in found.funnel:
        table.add_row(f"{step['providers']:,}", f"{step['trees']:,}", step["detail"],
                      step["rule"], step["group"] or "")
    console.print(table)


def _headroom(console, api):
    """Show how many more servers of each size fit, and what is in their way."""
    table = rich.table.Table(title="How many more fit", box=rich.box.SIMPLE_HEAD)
    for column, justify in (("flavour", "left"), ("in all", "right"), ("row 1", "right"),
                            ("binds first, in so many trees", "left")):
        table.add_column(column, justify=justify)
    for name, resources in _FLAVORS.items():
        found = api.get_headroom(None, CandidatesRequest(
            groups=[CandidateGroup(resources=resources)]), by="aggregate")
        binding = sorted(found.limits, key=lambda limit: -limit["trees"])
        table.add_row(
            name, f"{found.count:,}" + ("" if found.is_exact else f" to {found.at_most:,}"),
            f"{sum(part['count'] for part in found.parts):,}",
            ", ".join(f"{limit['resource_class']}: {limit['trees']}" for limit in binding))
    console.print(table)
