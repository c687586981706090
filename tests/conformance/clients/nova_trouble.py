# SPDX-License-Identifier: Apache-2.0
"""Concurrent writers, a Placement that is away, and answers that get lost, seen by nova."""

import functools

from clients import nova_cloud
from clients.nova_cloud import CONTEXT, VCPU, inventory


def away(script):
    """The service is away, and is back."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node")
    server = cloud.claim("server", {node.uuid: {VCPU: 1}})
    tracker = cloud.tracker(node, nova_cloud.Driver(
        lambda tree, name, _allocations: tree.update_inventory(name, nova_cloud.of_a_host(32))))

    def all_of_it(when, raises=None):
        script.step(f"{when}: candidates", cloud.candidates)
        script.step(f"{when}: claim", client.claim_resources, CONTEXT, script.uuid(when), {
            "allocations": {node.uuid: {"resources": {VCPU: 1}}}}, cloud.project, cloud.user,
            "1.36")
        script.step(f"{when}: held", client.get_allocations_for_consumer, CONTEXT, server.uuid)
        script.step(f"{when}: put", client.put_allocations, CONTEXT, server.uuid, cloud.payload(
            {node.uuid: {VCPU: 2}}, 1), raises=raises and "PlacementAPIConnectFailure")
        script.step(f"{when}: delete", client.delete_allocation_for_instance, CONTEXT,
                    script.uuid(when))
        script.step(f"{when}: delete by force", client.delete_allocation_for_instance, CONTEXT,
                    script.uuid(when), force=True)
        script.step(f"{when}: move", client.move_allocations, CONTEXT, server.uuid,
                    script.uuid("migration"))
        script.step(f"{when}: usages", client.get_usages_counts_for_limits, CONTEXT, cloud.project,
                    raises=raises)
        script.step(f"{when}: aggregate", client.aggregate_add_host, CONTEXT,
                    script.uuid("aggregate"), rp_uuid=node.uuid,
                    raises=raises and "PlacementAPIConnectFailure")
        script.step(f"{when}: tracker", tracker._update_to_placement, CONTEXT, node, False,
                    raises=raises)
        script.step(f"{when}: delete the provider", client.delete_resource_provider, CONTEXT,
                    node, raises=raises)

    with script.wire.refused():
        all_of_it("away", "ConnectFailure")
    all_of_it("back")


def lost_answers(script):
    """A change is carried out, and its answer gets lost."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    wire = script.wire
    wire.lose_answer("POST", "/resource_providers$")
    script.step("create a provider", client.get_provider_tree_and_ensure_root, CONTEXT,
                script.uuid("node"), name=script.name("node"),
                raises="ResourceProviderCreationFailed")
    node = script.step("create it again", cloud.host, "node")
    cloud.client.clear_provider_cache()
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    tree.update_inventory(node.uuid, {VCPU: inventory(4)})
    wire.lose_answer("PUT", "/inventories")
    script.step("set inventories", client.update_from_provider_tree, CONTEXT, tree,
                raises="AttributeError")
    script.step("set them again", client.update_from_provider_tree, CONTEXT, tree,
                raises="ResourceProviderUpdateConflict")
    script.step("look again", client.get_provider_tree_and_ensure_root, CONTEXT, node.uuid)

    def claim(title, raises=None):
        script.step(title, client.claim_resources, CONTEXT, script.uuid("server"), {
            "allocations": {node.uuid: {"resources": {VCPU: 1}}}}, cloud.project, cloud.user,
            "1.36", raises=raises)

    wire.lose_answer("PUT", "/allocations/")
    claim("claim")
    claim("claim again")
    script.step("held once", cloud.held, "server")
    wire.lose_answer("PUT", "/allocations/")
    script.step("delete", client.delete_allocation_for_instance, CONTEXT, script.uuid("server"))
    script.step("delete again", client.delete_allocation_for_instance, CONTEXT,
                script.uuid("server"))
    wire.lose_answer("DELETE", "/resource_providers/")
    script.step("delete the provider", client.delete_resource_provider, CONTEXT, node,
                raises="ConnectFailure")
    script.step("delete it again", client.delete_resource_provider, CONTEXT, node)


def concurrent_reports(script):
    """Two processes write the same providers, traits, classes and consumers."""
    cloud = nova_cloud.Cloud(script)
    client, node = cloud.client, cloud.node("node")
    name = node.hypervisor_hostname
    script.wire.meanwhile("POST", "/resource_providers", lambda: script.send(
        "POST", "/resource_providers", {"uuid": node.uuid, "name": name}))
    tree = script.step("a provider that appears", client.get_provider_tree_and_ensure_root,
                       CONTEXT, node.uuid, name=name)
    tree.update_inventory(node.uuid, {VCPU: inventory(8), script.custom("FPGA"): inventory(2)})
    tree.update_traits(node.uuid, [script.custom("GOLD")])
    script.wire.meanwhile("PUT", "/resource_classes/", lambda: script.send(
        "PUT", f"/resource_classes/{script.custom('FPGA')}"))
    script.wire.meanwhile("PUT", "/traits/", lambda: script.send(
        "PUT", f"/traits/{script.custom('GOLD')}"))
    script.step("classes and traits that appear", client.update_from_provider_tree, CONTEXT, tree)

    def write(kind, addition):
        """Change inventories, traits or aggregates of the node as another does."""
        path = f"/resource_providers/{node.uuid}/{kind}"
        found = script.send("GET", path)
        if kind == "inventories":
            found[kind][VCPU]["reserved"] += 1
        else:
            found[kind].append(addition)
        script.send("PUT", path, found)

    kinds = ("inventories", "traits", "aggregates")
    for number, (theirs, ours) in enumerate((a, b) for a in kinds for b in kinds):
        addition = script.uuid(f"other {number}")
        if theirs == "traits":
            addition = script.custom(f"OTHER_{number}")
            script.send("PUT", f"/traits/{addition}")
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
        if ours == "inventories":
            tree.update_inventory(node.uuid, {VCPU: inventory(100 + number)})
        elif ours == "traits":
            tree.add_traits(node.uuid, script.custom(f"MINE_{number}"))
        else:
            tree.add_aggregates(node.uuid, script.uuid(f"mine {number}"))
        script.wire.meanwhile("PUT", f"{node.uuid}/{ours}", functools.partial(
            write, theirs, addition))
        script.step(f"{ours} while {theirs} change", client.update_from_provider_tree, CONTEXT,
                    tree, raises="ResourceProviderUpdateConflict")
    script.step("what there is", cloud.new_client().get_provider_tree_and_ensure_root, CONTEXT,
                node.uuid)


def vanished(script):
    """What nova has in its cache is deleted by another."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node")
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    script.send("DELETE", f"/resource_providers/{node.uuid}")
    tree.update_inventory(node.uuid, {VCPU: inventory(8)})
    script.step("set its inventories", client.update_from_provider_tree, CONTEXT, tree,
                raises="ResourceProviderSyncFailed")
    node = cloud.host("node")
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    script.send("DELETE", f"/resource_providers/{node.uuid}")
    tree.update_traits(node.uuid, ["COMPUTE_NODE"])
    script.step("set its traits", client.update_from_provider_tree, CONTEXT, tree,
                raises="ResourceProviderSyncFailed")
    node = cloud.host("node")
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    script.send("DELETE", f"/resource_providers/{node.uuid}")
    tree.update_aggregates(node.uuid, [script.uuid("aggregate")])
    script.step("set its aggregates", client.update_from_provider_tree, CONTEXT, tree,
                raises="ResourceProviderSyncFailed")
    cloud.host("node")
    script.step("claim of a new one", cloud.claim, "server", {node.uuid: {VCPU: 1}})
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    tree.remove(node.uuid)
    script.step("delete it while it is in use", client.update_from_provider_tree, CONTEXT, tree,
                raises="ResourceProviderSyncFailed")
    script.send("DELETE", f"/allocations/{script.uuid('server')}")
    script.send("DELETE", f"/resource_providers/{node.uuid}")
    client.get_provider_tree_and_ensure_root(CONTEXT, script.uuid("new"), name=script.name("new"))
    script.step("delete what is gone", client._delete_provider, node.uuid)
