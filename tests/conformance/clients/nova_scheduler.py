# SPDX-License-Identifier: Apache-2.0
"""What nova's scheduler and its interface do: candidates, claims, usages."""

from clients import nova_cloud
from clients.nova_cloud import CONTEXT, DISK_GB, MEMORY_MB, VCPU, inventory
from nova import objects
from nova.limit import placement as limits
from nova.scheduler import utils as scheduler_utils


def candidates(script):
    """Hosts for flavors, images and availability zones."""
    cloud = nova_cloud.Cloud(script)
    gold = script.custom("GOLD")
    cloud.host("small", nova_cloud.of_a_host(1, 4096), ["HW_CPU_X86_AVX2"])
    cloud.host("large", nova_cloud.of_a_host(64), ["HW_CPU_X86_AVX2", gold], ["zone", "fast"])
    cloud.host("disabled", None, ["COMPUTE_STATUS_DISABLED"], ["zone"])
    for title, specs in (
            ("a flavor", None), ("a trait", {"trait:HW_CPU_X86_AVX2": "required"}),
            ("no disabled ones", {"trait:COMPUTE_STATUS_DISABLED": "forbidden"}),
            ("a custom trait", {f"trait:{gold}": "required"}),
            ("more than there is", {"resources:VCPU": "1000"}),
            ("a class that no host has", {"resources:FPGA": "1"}),
            ("an unknown trait", {"trait:CUSTOM_NOT_THERE": "required"}),
            ("an unknown class", {"resources:CUSTOM_NOT_THERE": "1"}),
            ("other resources", {"resources:VCPU": "0", "resources:MEMORY_MB": "2048"})):
        script.step(title, cloud.candidates, specs)
    for title, group in (
            ("a zone", {"aggregates": [[script.uuid("zone")]]}),
            ("one of two aggregates", {
                "aggregates": [[script.uuid("zone"), script.uuid("none")]]}),
            ("two aggregates", {
                "aggregates": [[script.uuid("zone")], [script.uuid("fast")]]}),
            ("not in a zone", {"forbidden_aggregates": {script.uuid("zone")}}),
            ("one host", {"in_tree": script.uuid("small")}),
            ("an unknown host", {"in_tree": script.uuid("none")})):
        request = cloud.request()
        for name, value in group.items():
            setattr(request.get_request_group(None), name, value)
        script.step(title, cloud.client.get_allocation_candidates, CONTEXT, request)
        script.step(f"{title}, for a device", cloud.candidates, None, [objects.RequestGroup(
            requester_id=script.uuid("device"), resources={"VCPU": 1}, **group)])


def groups(script):
    """Devices and ports beside the flavor, on children of a host."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    for label in ("one", "two"):
        node = cloud.host(label)
        tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
        for child, traits, inventories in (
                ("agent", (), {}), ("nic", [script.custom("PHYSNET0")], {
                    "NET_BW_EGR_KILOBIT_PER_SEC": inventory(10000),
                    "NET_BW_IGR_KILOBIT_PER_SEC": inventory(10000)}),
                ("gpu0", [script.custom("GPU")], {"VGPU": inventory(1)}),
                ("gpu1", [script.custom("GPU")], {"VGPU": inventory(1)})):
            name = f"{node.hypervisor_hostname}:{child}"
            parent = f"{node.hypervisor_hostname}:agent" if child == "nic" else node.uuid
            tree.new_child(name, parent, uuid=script.uuid(f"{label} {child}"))
            tree.update_inventory(name, inventories)
            tree.update_traits(name, traits)
        client.update_from_provider_tree(CONTEXT, tree)
    port = script.uuid("port")
    bandwidth = objects.RequestGroup(requester_id=port, resources={
        "NET_BW_EGR_KILOBIT_PER_SEC": 1000, "NET_BW_IGR_KILOBIT_PER_SEC": 1000},
        required_traits={script.custom("PHYSNET0")})
    packets = objects.RequestGroup(requester_id=script.uuid("other"), resources={},
                                   required_traits={script.custom("PHYSNET0")})
    two = {"resources1:VGPU": "1", "resources2:VGPU": "1"}
    script.step("a port", cloud.candidates, None, [bandwidth])
    script.step("two GPUs on two providers", cloud.candidates, {**two, "group_policy": "isolate"})
    script.step("two GPUs anywhere", cloud.candidates, {**two, "group_policy": "none"})
    script.step("two GPUs and no policy", cloud.candidates, two)
    script.step("a group with a trait", cloud.candidates, {
        "resources_A:VGPU": "1", f"trait_A:{script.custom('GPU')}": "required"})
    script.step("a port in one subtree", cloud.candidates, {"group_policy": "none"},
                [bandwidth, packets], request_level_params=objects.RequestLevelParams(
                    same_subtree=[{port, script.uuid("other")}]))
    script.step("a root with a trait", cloud.candidates, {"group_policy": "none"}, [bandwidth],
                request_level_params=objects.RequestLevelParams(
                    root_required={script.custom("GPU")}))
    script.step("a root without one", cloud.candidates, {"group_policy": "none"}, [bandwidth],
                request_level_params=objects.RequestLevelParams(
                    root_forbidden={script.custom("GPU")}))
    found = script.step("a port of a host", cloud.candidates, {"group_policy": "none"}, [
        objects.RequestGroup(requester_id=port, resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000},
                             in_tree=script.uuid("one"))])
    script.step("claim it", client.claim_resources, CONTEXT, script.uuid("server"), found[0][0],
                cloud.project, cloud.user, found[2])
    script.step("held", cloud.held, "server")
    attach = scheduler_utils.ResourceRequest.from_request_groups(
        [objects.RequestGroup(requester_id=port, in_tree=script.uuid("one"), resources={
            "NET_BW_IGR_KILOBIT_PER_SEC": 500})], objects.RequestLevelParams(), "none")
    more = script.step("another port", client.get_allocation_candidates, CONTEXT, attach)
    resources = more[0][0]["allocations"]
    script.step("attach it", client.add_resources_to_instance_allocation, CONTEXT,
                script.uuid("server"), resources)
    script.step("held with it", cloud.held, "server")
    script.step("detach it", client.remove_resources_from_instance_allocation, CONTEXT,
                script.uuid("server"), resources)
    script.step("held without it", cloud.held, "server")


def claims(script):
    """Claims that fit and claims that do not."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node", {VCPU: inventory(4), MEMORY_MB: inventory(
        4096, min_unit=256, max_unit=2048, step_size=256)})

    def claim(title, label, resources, raises=None, allocations=None, version="1.36", **values):
        request = {"allocations": allocations or {node.uuid: {"resources": resources}}}
        script.step(title, client.claim_resources, CONTEXT, script.uuid(label), request,
                    cloud.project, cloud.user, version, raises=raises, **values)

    claim("fits", "one", {VCPU: 2, MEMORY_MB: 512})
    claim("more than is free", "two", {VCPU: 3})
    claim("more than one may have", "two", {MEMORY_MB: 2304})
    claim("less than one may have", "two", {MEMORY_MB: 128})
    claim("no multiple of the step", "two", {MEMORY_MB: 300})
    claim("a class that it has not", "two", {DISK_GB: 1})
    claim("an unknown class", "two", {"CUSTOM_NOT_THERE": 1})
    claim("a bad class", "two", {"not a class": 1})
    claim("nothing of a class", "two", {VCPU: 0})
    claim("no class", "two", {})
    claim("an unknown provider", "two", {}, allocations={
        script.uuid("none"): {"resources": {VCPU: 1}}})
    claim("of a refused consumer", "three", {VCPU: 1})
    claim("the same again", "one", {VCPU: 2, MEMORY_MB: 512})
    claim("with an old generation", "four", {VCPU: 1}, "AllocationUpdateFailed",
          consumer_generation=7)
    claim("at the first version of consumer generations", "five", {VCPU: 1}, version="1.28")
    claim("when it is full", "six", {VCPU: 1})
    for label in ("one", "two", "three", "four", "five", "six"):
        script.step(f"what {label} holds", cloud.held, label)
    script.step("what none holds", client.get_allocations_for_consumer, CONTEXT,
                script.uuid("none"))
    spec = objects.RequestSpec(project_id=cloud.project, user_id=cloud.user, scheduler_hints={})
    script.step("claim of the scheduler", scheduler_utils.claim_resources, CONTEXT, client, spec,
                script.uuid("seven"), {
                    "allocations": {node.uuid: {"resources": {MEMORY_MB: 256}}}}, "1.36")
    script.step("full hosts", cloud.candidates)


def deletions(script):
    """Servers are deleted, once and more often."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node")
    for label in ("one", "two"):
        cloud.claim(label, {node.uuid: {VCPU: 1}})

    def delete(title, label, raises=None, **values):
        script.step(title, client.delete_allocation_for_instance, CONTEXT, script.uuid(label),
                    raises=raises, **values)

    delete("delete", "one")
    delete("delete again", "one")
    delete("delete by force", "two", force=True)
    delete("delete by force again", "two", force=True)
    delete("delete a migration", "none", consumer_type="migration")
    cloud.claim("three", {node.uuid: {VCPU: 1}})
    script.wire.meanwhile("PUT", "/allocations/", lambda: script.send(
        "PUT", f"/allocations/{script.uuid('three')}",
        cloud.payload({node.uuid: {VCPU: 2}}, 1), "1.28"))
    delete("delete while another changes it", "three", "AllocationDeleteFailed")
    script.step("still there", cloud.held, "three")
    script.wire.meanwhile("PUT", "/allocations/", lambda: script.send(
        "DELETE", f"/allocations/{script.uuid('three')}"))
    delete("delete while another deletes it", "three", "AllocationDeleteFailed")
    script.step("what is on the node", client.get_allocations_for_resource_provider, CONTEXT,
                node.uuid)
    script.step("what is on no node", client.get_allocations_for_resource_provider, CONTEXT,
                script.uuid("none"), raises="ResourceProviderAllocationRetrievalFailed")
    cloud.claim("one", {node.uuid: {VCPU: 1}})
    script.step("a new server of an old uuid", cloud.held, "one")


def usages(script):
    """Quotas and unified limits are counted in Placement."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    script.step("of nothing", client.get_usages_counts_for_limits, CONTEXT, cloud.project)
    node = cloud.host("node", {**nova_cloud.of_a_host(), "PCPU": inventory(8)})
    cloud.claim("one", {node.uuid: {VCPU: 2, MEMORY_MB: 512}})
    cloud.claim("two", {node.uuid: {"PCPU": 1, MEMORY_MB: 256, DISK_GB: 5}})
    script.send("PUT", f"/allocations/{script.uuid('three')}", {
        **cloud.payload({node.uuid: {VCPU: 1}}, None), "user_id": script.uuid("another user"),
        "consumer_type": "INSTANCE"})
    script.step("limits", client.get_usages_counts_for_limits, CONTEXT, cloud.project)
    script.step("limits of oslo.limit", limits._get_placement_usages, CONTEXT, cloud.project)
    script.step("quota", client.get_usages_counts_for_quota, CONTEXT, cloud.project)
    for label in ("user", "another user", "none"):
        script.step(f"quota of {label}", client.get_usages_counts_for_quota, CONTEXT,
                    cloud.project, user_id=script.uuid(label))
    script.step("of no project", client.get_usages_counts_for_limits, CONTEXT, "",
                raises="UsagesRetrievalFailed")
    script.step("of a long name", client.get_usages_counts_for_quota, CONTEXT, "x" * 256,
                raises="UsagesRetrievalFailed")
