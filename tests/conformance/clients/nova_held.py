# SPDX-License-Identifier: Apache-2.0
"""What nova does while the data of its Placement is brought over: it reads, and changes nothing.

The scripts follow each other with the same seed, and the store is held during the second.
"""

from clients import nova_cloud
from clients.nova_cloud import CONTEXT, MEMORY_MB, VCPU


def before(script):
    """A node with a server."""
    cloud = nova_cloud.Cloud(script)
    node = cloud.host("node")
    cloud.claim("server", {node.uuid: {VCPU: 1}})
    script.step("held", cloud.held, "server")


def held(script):
    """Every change is refused without harm."""
    cloud, client, node = _at_work(script)
    _work(script, cloud, node, refused=True)
    script.step("create a node", client.get_provider_tree_and_ensure_root, CONTEXT,
                script.uuid("new"), name=script.name("new"),
                raises="ResourceProviderCreationFailed")


def released(script):
    """All goes on by itself."""
    cloud, client, node = _at_work(script)
    _work(script, cloud, node)
    script.step("create a node", client.get_provider_tree_and_ensure_root, CONTEXT,
                script.uuid("new"), name=script.name("new"))


def _at_work(script):
    cloud = nova_cloud.Cloud(script)
    return cloud, cloud.client, cloud.node("node")


def _work(script, cloud, node, refused=False):
    """Do one thing of each kind.

    :param refused: whether the service refuses changes
    """
    client = cloud.client
    script.step("candidates", cloud.candidates)
    script.step("read", cloud.held, "server")
    script.step("usages", client.get_usages_counts_for_limits, CONTEXT, cloud.project)
    script.step("claim", client.claim_resources, CONTEXT, script.uuid("another"), {
        "allocations": {node.uuid: {"resources": {VCPU: 1, MEMORY_MB: 64}}}}, cloud.project,
        cloud.user, "1.36")
    script.step("put", client.put_allocations, CONTEXT, script.uuid("third"),
                cloud.payload({node.uuid: {VCPU: 1}}, None))
    script.step("move", client.move_allocations, CONTEXT, script.uuid("server"),
                script.uuid("migration"))
    script.step("move back", client.move_allocations, CONTEXT, script.uuid("migration"),
                script.uuid("server"))
    script.step("delete", client.delete_allocation_for_instance, CONTEXT, script.uuid("server"),
                raises="AllocationDeleteFailed" if refused else None)
    script.step("delete by force", client.delete_allocation_for_instance, CONTEXT,
                script.uuid("server"), force=True,
                raises="AllocationDeleteFailed" if refused else None)
    script.step("aggregate", client.aggregate_add_host, CONTEXT, script.uuid("aggregate"),
                rp_uuid=node.uuid, raises="ResourceProviderUpdateFailed" if refused else None)
    tracker = cloud.tracker(node, nova_cloud.Driver(
        lambda tree, name, _allocations: tree.update_inventory(name, nova_cloud.of_a_host(32))))
    script.step("report", tracker._update_to_placement, CONTEXT, node, False,
                raises="ResourceProviderSyncFailed" if refused else None)
