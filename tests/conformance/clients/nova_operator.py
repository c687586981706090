# SPDX-License-Identifier: Apache-2.0
"""What operators do through nova: host aggregates, services that go, nova-manage."""

import contextlib
from unittest import mock

from clients import nova_cloud
from clients.nova_cloud import CONTEXT, VCPU, inventory
from nova import objects
from nova.cmd import manage


def aggregates(script):
    """Hosts enter and leave an aggregate, while others change it too."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node", aggregates=["old"])
    name, added = node.hypervisor_hostname, script.uuid("aggregate")
    script.step("add", client.aggregate_add_host, CONTEXT, added, host_name=name)
    script.step("add again", client.aggregate_add_host, CONTEXT, added, rp_uuid=node.uuid)
    script.step("by name", client.get_provider_by_name, CONTEXT, name)
    script.step("remove", client.aggregate_remove_host, CONTEXT, added, name)
    script.step("remove again", client.aggregate_remove_host, CONTEXT, added, name)
    script.step("add an unknown host", client.aggregate_add_host, CONTEXT, added,
                host_name=script.name("none"), raises="ResourceProviderNotFound")
    script.step("add an unknown provider", client.aggregate_add_host, CONTEXT, added,
                rp_uuid=script.uuid("none"), raises="ResourceProviderAggregateRetrievalFailed")
    script.step("remove an unknown host", client.aggregate_remove_host, CONTEXT, added,
                script.name("none"), raises="ResourceProviderNotFound")
    script.step("no uuid", client.aggregate_add_host, CONTEXT, "pony", host_name=name,
                raises="ResourceProviderUpdateFailed")

    def change():
        path = f"/resource_providers/{node.uuid}/aggregates"
        found = script.send("GET", path)
        script.send("PUT", path, {**found, "aggregates": [*found["aggregates"], str(
            script.uuid(f"other {len(found['aggregates'])}"))]})

    for title, times, raises in (("once", 1, None), ("thrice", 3, None),
                                 ("always", 4, "ResourceProviderUpdateConflict")):
        script.wire.meanwhile("PUT", "/aggregates", change, times)
        script.step(f"add while others change it {title}", client.aggregate_add_host, CONTEXT,
                    script.uuid(f"aggregate {title}"), rp_uuid=node.uuid, raises=raises)
    client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    change()
    script.step("set with a stale cache", client.set_aggregates_for_provider, CONTEXT, node.uuid,
                [added], raises="ResourceProviderUpdateConflict")
    script.step("the tree", client.get_provider_tree_and_ensure_root, CONTEXT, node.uuid)


def names(script):
    """Names of providers that a query has to be written with care for."""
    cloud = nova_cloud.Cloud(script)
    # nova writes a name into a query as it is, and does not find some again.
    lost = "ResourceProviderNotFound"
    for label, raises in (("with blank", None), ("ünicode", None), ("semi;colon", lost),
                          ("q?mark", None), ("sla/sh", None), ("per%20cent", lost),
                          ("am&persand", lost), ("pl+us", lost), ("ha#sh", lost)):
        name = script.name(label)
        script.step(f"create {label}", cloud.client.get_provider_tree_and_ensure_root, CONTEXT,
                    script.uuid(label), name=name)
        script.step(f"find {label}", cloud.client.get_provider_by_name, CONTEXT, name,
                    raises=raises)
    script.step("a long name", cloud.client.get_provider_tree_and_ensure_root, CONTEXT,
                script.uuid("long"), name="n" * 201, raises="ResourceProviderCreationFailed")
    script.step("no uuid", cloud.client.get_provider_tree_and_ensure_root, CONTEXT, "pony",
                name=script.name("pony"), raises="ResourceProviderRetrievalFailed")


def deleted_service(script):
    """A compute service is deleted, with its servers and an evacuated one."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node, other = (cloud.host(label, aggregates=["zone"]) for label in ("node", "other"))
    tree = client.get_provider_tree_and_ensure_root(CONTEXT, node.uuid)
    tree.new_child(script.name("gpu"), node.uuid, uuid=script.uuid("gpu"))
    tree.update_inventory(script.uuid("gpu"), {"VGPU": inventory(4)})
    tree.new_child(script.name("slice"), script.uuid("gpu"), uuid=script.uuid("slice"))
    client.update_from_provider_tree(CONTEXT, tree)
    cloud.claim("server", {node.uuid: {VCPU: 1}, script.uuid("gpu"): {"VGPU": 1}})
    cloud.claim("evacuated", {node.uuid: {VCPU: 1}, other.uuid: {VCPU: 1}})
    cloud.claim("forgotten", {script.uuid("gpu"): {"VGPU": 1}})
    script.step("without its servers", client.delete_resource_provider, CONTEXT, node)
    script.step("what is left", client.get_providers_in_tree, CONTEXT, node.uuid)

    def cascade(title, *servers):
        with _database(servers, ["evacuated"], script):
            script.step(title, client.delete_resource_provider, CONTEXT, node, cascade=True)
        script.step(f"{title}: what is left", client.get_providers_in_tree, CONTEXT, node.uuid)

    cascade("with its servers", "server")
    cascade("with all", "forgotten")
    client.delete_resource_provider(CONTEXT, other)
    for label in ("server", "evacuated", "forgotten"):
        script.step(f"what {label} holds", cloud.held, label)
    script.step("the same host again", cloud.host, "node")


@contextlib.contextmanager
def _database(servers, evacuated, script):
    """Have nova's database say which servers are on a host, and which were evacuated from it."""
    with mock.patch.object(objects.InstanceList, "get_uuids_by_host_and_node",
                           return_value=[script.uuid(label) for label in servers]), \
            mock.patch.object(objects.MigrationList, "get_by_filters", return_value=[
                objects.Migration(instance_uuid=script.uuid(label)) for label in evacuated]), \
            mock.patch.object(objects.Migration, "instance", None):
        yield


def audit(script):
    """nova-manage placement audit, of one provider at a time."""
    cloud = nova_cloud.Cloud(script)
    node, pool = cloud.host("node"), cloud.host("pool", {"DISK_GB": inventory(100)})
    cloud.claim("known", {node.uuid: {VCPU: 1}})
    cloud.claim("orphan", {node.uuid: {VCPU: 1}})
    cloud.claim("spread", {node.uuid: {VCPU: 1}, pool.uuid: {"DISK_GB": 1}})
    commands = manage.PlacementCommands()
    with mock.patch.object(manage.PlacementCommands, "_get_instances_and_current_migrations",
                           return_value=([script.uuid("known")], [])):
        for title, delete in (("look", False), ("delete", True), ("look again", False)):
            script.step(title, commands.audit, verbose=True, provider_uuid=node.uuid,
                        delete=delete)
        script.step("of none", commands.audit, provider_uuid=script.uuid("none"))
    for label in ("known", "orphan", "spread"):
        script.step(f"what {label} holds", cloud.held, label)


def healed(script):
    """nova-manage placement heal_allocations writes what is missing, or only who it belongs to."""
    cloud = nova_cloud.Cloud(script)
    client = cloud.client
    node = cloud.host("node", {VCPU: inventory(4)})
    put = client.put_allocations
    script.step("missing ones", put, CONTEXT, script.uuid("one"),
                cloud.payload({node.uuid: {VCPU: 1}}, None))
    script.step("as if it were missing", put, CONTEXT, script.uuid("one"),
                cloud.payload({node.uuid: {VCPU: 1}}, None), raises="AllocationUpdateFailed")
    found = script.step("held", cloud.held, "one")
    script.step("another owner", put, CONTEXT, script.uuid("one"), {
        **found, "project_id": script.uuid("another project")})
    script.step("held by the other", cloud.held, "one")
    script.step("more than there is", put, CONTEXT, script.uuid("two"),
                cloud.payload({node.uuid: {VCPU: 5}}, None))
    script.step("with a generation", put, CONTEXT, script.uuid("two"),
                cloud.payload({node.uuid: {VCPU: 1}}, 1), raises="AllocationUpdateFailed")
    script.step("nothing", put, CONTEXT, script.uuid("two"), cloud.payload({}, None))
    for title, total in (("it shrinks", 1), ("it grows", 8)):
        path = f"/resource_providers/{node.uuid}/inventories"
        found = script.send("GET", path)
        found["inventories"][VCPU].update(total=total, max_unit=total)
        script.send("PUT", path, found)
        script.step(f"as much, after {title}", put, CONTEXT, script.uuid("one"), cloud.payload(
            {node.uuid: {VCPU: 1}}, cloud.held("one")["consumer_generation"]))
        script.step(f"more, after {title}", put, CONTEXT, script.uuid("one"), cloud.payload(
            {node.uuid: {VCPU: 2}}, cloud.held("one")["consumer_generation"]))


def nothing_for_nobody(script):
    """An empty set of allocations for a consumer that there is not, and then a real one."""
    cloud = nova_cloud.Cloud(script)
    node = cloud.host("node", {VCPU: inventory(4)})
    for title, allocations in (("nothing", {}), ("something", {node.uuid: {VCPU: 1}})):
        script.step(title, cloud.client.put_allocations, CONTEXT, script.uuid("one"),
                    cloud.payload(allocations, None), raises="AllocationUpdateFailed",
                    may_return=True)
