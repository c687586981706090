# SPDX-License-Identifier: Apache-2.0
"""What nova-compute does: a node's tree of providers, from its first start on."""

from unittest import mock

from clients import nova_cloud
from clients.nova_cloud import CONTEXT, DISK_GB, MEMORY_MB, VCPU, inventory
from nova import exception, objects
from nova.compute import manager


def first_start(script):
    """A node appears, starts again, and reports only what has changed."""
    cloud = nova_cloud.Cloud(script)
    node = cloud.node("node")
    name = node.hypervisor_hostname
    tree = script.step("a new node", cloud.client.get_provider_tree_and_ensure_root, CONTEXT,
                       node.uuid, name=name)
    tree.update_inventory(name, nova_cloud.of_a_host())
    tree.update_traits(name, ["HW_CPU_X86_AVX2", "COMPUTE_NODE", script.custom("GOLD")])
    tree.update_aggregates(name, [script.uuid("aggregate")])
    script.step("report it", cloud.client.update_from_provider_tree, CONTEXT, tree)
    script.step("report the same", cloud.client.update_from_provider_tree, CONTEXT, tree)
    tree.update_inventory(name, {**nova_cloud.of_a_host(), script.custom("FPGA"): inventory(2)})
    tree.remove_traits(name, "HW_CPU_X86_AVX2")
    script.step("report a change", cloud.client.update_from_provider_tree, CONTEXT, tree)
    cloud.client.clear_provider_cache()
    script.step("start again", cloud.client.get_provider_tree_and_ensure_root, CONTEXT, node.uuid,
                name=name)
    script.step("name from the cache", cloud.client.get_resource_provider_name, CONTEXT, node.uuid)
    script.step("name of none", cloud.client.get_resource_provider_name, CONTEXT,
                script.uuid("none"), raises="ResourceProviderNotFound")
    script.step("traits of none", cloud.client.get_provider_traits, CONTEXT, script.uuid("none"),
                raises="ResourceProviderTraitRetrievalFailed")


def children(script):
    """Child providers appear, change and vanish."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    name, gpus, numa = (script.name(label) for label in ("node", "gpu", "numa"))
    tree = script.step("a new node", client.get_provider_tree_and_ensure_root, CONTEXT,
                       script.uuid("node"), name=name)
    tree.update_inventory(name, {DISK_GB: inventory(100)})
    tree.new_child(numa, name, uuid=script.uuid("numa"))
    tree.update_inventory(numa, {VCPU: inventory(8), MEMORY_MB: inventory(8192)})
    tree.update_traits(numa, [script.custom("NUMA")])
    tree.new_child(gpus, numa, uuid=script.uuid("gpu"))
    tree.update_inventory(gpus, {"VGPU": inventory(4)})
    tree.update_aggregates(gpus, [script.uuid("aggregate")])
    script.step("report children", client.update_from_provider_tree, CONTEXT, tree)
    script.step("read by a child", client.get_providers_in_tree, CONTEXT, script.uuid("gpu"))
    client.clear_provider_cache()
    tree = script.step("read the tree", client.get_provider_tree_and_ensure_root, CONTEXT,
                       script.uuid("node"))
    script.step("read a subtree", client.get_provider_subtree_and_ensure_root, CONTEXT,
                script.uuid("node"))
    tree.remove(gpus)
    script.step("remove a child", client.update_from_provider_tree, CONTEXT, tree)
    tree.remove(numa)
    tree.update_inventory(name, {})
    script.step("remove all", client.update_from_provider_tree, CONTEXT, tree)
    script.step("what is left", client.get_providers_in_tree, CONTEXT, script.uuid("node"))


def moved_child(script):
    """A child goes from one parent to another, which nova does in two steps."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    name, first, second, gpu = (script.name(label) for label in ("node", "first", "second", "gpu"))
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, script.uuid("node"), name=name)
    for child in (first, second):
        tree.new_child(child, name, uuid=script.uuid(child))
    tree.new_child(gpu, first, uuid=script.uuid("gpu"))
    tree.update_inventory(gpu, {"VGPU": inventory(4)})
    script.step("below the first", client.update_from_provider_tree, CONTEXT, tree)
    tree.remove(gpu)
    script.step("gone", client.update_from_provider_tree, CONTEXT, tree)
    tree.new_child(gpu, second, uuid=script.uuid("gpu"))
    tree.update_inventory(gpu, {"VGPU": inventory(4)})
    script.step("below the second", client.update_from_provider_tree, CONTEXT, tree)
    script.step("tree", client.get_providers_in_tree, CONTEXT, script.uuid("node"))


def several_nodes(script):
    """Nodes without a common tree, as ironic's are, of which one goes away."""
    cloud = nova_cloud.Cloud(script)
    labels = ("a", "b", "c")
    for label in labels:
        script.step(f"node {label}", cloud.host, label, {script.custom("BAREMETAL"): inventory(1)})
    cloud.claim("server", {script.uuid("b"): {script.custom("BAREMETAL"): 1}})
    script.step("allocations of a node", cloud.client.get_allocations_for_provider_tree, CONTEXT,
                script.name("b"))
    script.step("allocations of an unknown one", cloud.client.get_allocations_for_provider_tree,
                CONTEXT, script.name("none"), raises="ValueError")
    cloud.client.clear_provider_cache()
    for label in labels:
        tree = cloud.client.get_provider_tree_and_ensure_root(CONTEXT, script.uuid(label))
    tree.update_inventory(script.uuid("b"), {
        script.custom("BAREMETAL"): inventory(1, reserved=1)})
    script.step("reserve the whole node", cloud.client.update_from_provider_tree, CONTEXT, tree)
    tree.remove(script.uuid("b"))
    script.step("remove one that is in use", cloud.client.update_from_provider_tree, CONTEXT,
                tree, raises="ResourceProviderSyncFailed")
    cloud.client.invalidate_resource_provider(script.uuid("a"))
    script.step("delete another", cloud.client.delete_resource_provider, CONTEXT, cloud.node("a"))
    script.step("it is gone", cloud.client.get_providers_in_tree, CONTEXT, script.uuid("a"))


def shared_disk(script):
    """A pool that shares its disk comes with the tree of each node in its aggregate."""
    cloud = nova_cloud.Cloud(script)
    script.step("pool", cloud.host, "pool", {DISK_GB: inventory(10000)},
                ["MISC_SHARES_VIA_AGGREGATE"], ["storage"])
    inventories = nova_cloud.of_a_host()
    del inventories[DISK_GB]
    script.step("node", cloud.host, "node", inventories, ["COMPUTE_NODE"], ["storage"])
    cloud.client.clear_provider_cache()
    tree = script.step("tree with the pool", cloud.client.get_provider_tree_and_ensure_root,
                       CONTEXT, script.uuid("node"))
    tree.update_inventory(script.uuid("pool"), {DISK_GB: inventory(20000)})
    script.step("more in the pool", cloud.client.update_from_provider_tree, CONTEXT, tree)
    script.step("candidates with the pool", cloud.candidates)
    cloud.claim("server", {script.uuid("node"): {VCPU: 1}, script.uuid("pool"): {DISK_GB: 10}})
    script.step("allocations of the tree", cloud.client.get_allocations_for_provider_tree, CONTEXT,
                script.name("node"))


def refused_reports(script):
    """Reports that Placement refuses."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node", {**nova_cloud.of_a_host(), "VGPU": inventory(4)})
    cloud.claim("server", {node.uuid: {VCPU: 2, "VGPU": 1}})

    def report(title, raises=None, inventories=None, traits=None):
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
        if inventories is not None:
            tree.update_inventory(node.uuid, inventories)
        if traits is not None:
            tree.update_traits(node.uuid, traits)
        script.step(title, client.update_from_provider_tree, CONTEXT, tree, raises=raises)

    host = nova_cloud.of_a_host()
    report("without a class that is in use", "InventoryInUse", host)
    report("without any inventory", "InventoryInUse", {})
    report("an unknown class", "ResourceProviderSyncFailed",
           {**host, "NO_SUCH_CLASS": inventory(1)})
    report("a class with a bad name", "ResourceProviderSyncFailed",
           {**host, "CUSTOM_bad": inventory(1)})
    report("nothing in all", "ResourceProviderSyncFailed", {**host, DISK_GB: inventory(0)})
    report("more reserved than there is", "ResourceProviderSyncFailed",
           {**host, "VGPU": inventory(4, reserved=5)})
    report("an amount below zero", "ResourceProviderSyncFailed",
           {**host, "VGPU": inventory(4, reserved=-1)})
    report("a field that there is not", "ResourceProviderSyncFailed",
           {**host, "VGPU": inventory(4, pony=1)})
    report("all reserved", inventories={**host, "VGPU": inventory(4, reserved=4)})
    report("less than is used", inventories={**host, VCPU: inventory(1), "VGPU": inventory(1)})
    report("an unknown trait", "ResourceProviderSyncFailed", traits=["NO_SUCH_TRAIT"])
    report("a trait with a bad name", "ResourceProviderSyncFailed", traits=["CUSTOM_bad"])
    script.step("what there is now", client.get_provider_tree_and_ensure_root, CONTEXT, node.uuid)
    script.step("a second node of the name", client.get_provider_tree_and_ensure_root, CONTEXT,
                script.uuid("second"), name=node.hypervisor_hostname,
                raises="ResourceProviderCreationFailed")
    script.step("a child of none", client.get_provider_tree_and_ensure_root, CONTEXT,
                script.uuid("child"), name=script.name("child"),
                parent_provider_uuid=script.uuid("none"), raises="ResourceProviderCreationFailed")


def resource_tracker(script):
    """The cycle of the resource tracker, with a driver that changes how it lays out its node."""
    cloud = nova_cloud.Cloud(script)
    node, gpu = cloud.node("node"), script.name("gpu")

    def flat(tree, name, allocations):
        tree.update_inventory(name, {**nova_cloud.of_a_host(), "VGPU": inventory(4)})

    def nested(tree, name, allocations):
        if "VGPU" in tree.data(name).inventory and allocations is None:
            raise exception.ReshapeNeeded()
        if not tree.exists(gpu):
            tree.new_child(gpu, name, uuid=script.uuid("gpu"))
        for each in (allocations or {}).values():
            its = each["allocations"]
            vgpus = its[node.uuid]["resources"].pop("VGPU", None)
            if vgpus:
                its[script.uuid("gpu")] = {"resources": {"VGPU": vgpus}}
        tree.update_inventory(name, nova_cloud.of_a_host())
        tree.update_inventory(gpu, {"VGPU": inventory(4)})

    driver = nova_cloud.Driver(flat)
    tracker = cloud.tracker(node, driver)

    def cycle(title, startup=False, raises=None):
        script.step(title, tracker._update_to_placement, CONTEXT, node, startup, raises=raises)

    cycle("first cycle", startup=True)
    cycle("nothing changed")
    other = cloud.new_client()
    cloud.claim("one", {node.uuid: {VCPU: 1, "VGPU": 1}}, other)
    cloud.claim("two", {node.uuid: {VCPU: 2, "VGPU": 2}}, other)
    cycle("with servers")
    driver.describe = nested
    cycle("another layout while it runs", raises="ReshapeNeeded")
    cycle("another layout at the start", startup=True)
    cycle("after it")
    for label in ("one", "two"):
        script.step(f"what {label} holds", cloud.held, label)
    driver.traits = {"COMPUTE_NODE": True, "COMPUTE_DEVICE_TAGGING": True}
    cycle("a new trait of the driver")
    cloud.client.delete_allocation_for_instance(CONTEXT, script.uuid("one"), force=True)
    # The tracker's knowledge of the generation is out of date where deletions raise it.
    driver.traits = {"COMPUTE_NODE": True, "COMPUTE_DEVICE_TAGGING": False}
    cycle("after a deletion")
    script.step("the tree", cloud.new_client().get_provider_tree_and_ensure_root, CONTEXT,
                node.uuid)


def deleted_servers(script):
    """The resource tracker takes away what deleted servers hold."""
    cloud = nova_cloud.Cloud(script)
    node = cloud.host("node")
    tracker = cloud.tracker(node, nova_cloud.Driver(None))
    for label in ("tracked", "migration", "deleted", "unknown"):
        cloud.claim(label, {node.uuid: {VCPU: 1}})
    tracker.tracked_instances = {script.uuid("tracked")}

    def find(context, uuid, expected_attrs):
        if uuid == script.uuid("unknown"):
            raise exception.InstanceNotFound(instance_id=uuid)
        return objects.Instance(uuid=uuid, deleted=True, hidden=False)

    with mock.patch.object(objects.Instance, "get_by_uuid", side_effect=find):
        script.step("clean up", tracker._remove_deleted_instances_allocations, CONTEXT, node,
                    [objects.Migration(uuid=script.uuid("migration"))], {})
    script.step("what is left", cloud.client.get_allocations_for_resource_provider, CONTEXT,
                node.uuid)


def disabled_service(script):
    """A compute service is disabled and enabled again."""
    cloud = nova_cloud.Cloud(script)
    node = cloud.host("node", traits=["COMPUTE_NODE"])
    interface = manager.ComputeVirtAPI(mock.Mock(reportclient=cloud.client))
    for title, enabled in (("disable", False), ("disable again", False), ("enable", True)):
        script.step(title, interface.update_compute_provider_status, CONTEXT, node.uuid, enabled)
        script.step(f"{title}: candidates", cloud.candidates, {
            "trait:COMPUTE_STATUS_DISABLED": "required"})
    script.step("of no provider", interface.update_compute_provider_status, CONTEXT,
                script.uuid("none"), False, raises="ResourceProviderTraitRetrievalFailed")


def reshape(script):
    """Inventories and allocations go to a child, in one request."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node, gpu = cloud.host("node", {**nova_cloud.of_a_host(), "VGPU": inventory(4)}), "gpu"
    cloud.claim("server", {node.uuid: {VCPU: 1, "VGPU": 3}})

    def moved(total=4, amount=3):
        """Return a tree and the allocations with the GPUs in a child."""
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
        if not tree.exists(script.uuid(gpu)):
            tree.new_child(script.name(gpu), node.uuid, uuid=script.uuid(gpu))
        tree.update_inventory(node.uuid, nova_cloud.of_a_host())
        tree.update_inventory(script.uuid(gpu), {"VGPU": inventory(total)})
        allocations = {script.uuid("server"): {
            "allocations": {node.uuid: {"resources": {VCPU: 1}},
                            script.uuid(gpu): {"resources": {"VGPU": amount}}},
            "project_id": cloud.project, "user_id": cloud.user, "consumer_generation":
                cloud.held("server")["consumer_generation"]}}
        return tree, allocations

    script.step("to a child that is too small", client.update_from_provider_tree, CONTEXT,
                *moved(total=2), raises="ReshapeFailed")
    script.step("without the allocations", client.update_from_provider_tree, CONTEXT, moved()[0],
                {}, raises="ReshapeFailed")
    tree, allocations = moved()
    script.wire.meanwhile("POST", "/reshaper", lambda: script.send(
        "PUT", f"/traits/{script.custom('OTHER')}") or cloud.claim(
            "another", {node.uuid: {VCPU: 1}}, cloud.new_client()))
    script.step("while another claims", client.update_from_provider_tree, CONTEXT, tree,
                allocations, raises="PlacementReshapeConflict")
    tree, allocations = moved()
    allocations[script.uuid("server")]["consumer_generation"] += 1
    script.step("with an old consumer", client.update_from_provider_tree, CONTEXT, tree,
                allocations, raises="PlacementReshapeConflict")
    script.step("again", client.update_from_provider_tree, CONTEXT, *moved())
    script.step("what the server holds", cloud.held, "server")
    script.step("the tree", client.get_provider_tree_and_ensure_root, CONTEXT, node.uuid)
