# SPDX-License-Identifier: Apache-2.0
"""openstacksdk's proxy of Placement, as programs of operators and of other services use it."""

import openstack
from clients.nova_cloud import DISK_GB, MEMORY_MB, VCPU, inventory

_CLASS, _TRAIT = "FPGA", "GOLD"


def _proxy(script, version=None):
    """Return the proxy of a connection.

    :param version: microversion that the connection asks for; None for the one of each resource
    """
    connection = openstack.connect(
        load_yaml_config=False, load_envvars=False, auth_type="admin_token",
        auth={"endpoint": script.url, "token": "admin"},
        **({"placement_default_microversion": version} if version else {}))
    session = connection.placement.session
    session.session = script.wire.attach(session.session)
    return connection.placement


def _each_version(function):
    """Run the same steps with the version of each resource, and with the newest."""
    def script_of_both(script):
        function(script, _proxy(script), "")
        function(script, _proxy(script, "1.39"), " new")
    script_of_both.__doc__ = function.__doc__
    return script_of_both


@_each_version
def resource_providers(script, proxy, suffix):
    """Providers are created, found, renamed, put below another, and deleted."""
    names = [script.name(f"{label}{suffix}") for label in ("root", "child", "lone")]
    uuids = [script.uuid(name) for name in names]
    root = script.step("create", proxy.create_resource_provider, id=uuids[0], name=names[0])
    script.step("create a child", proxy.create_resource_provider, id=uuids[1], name=names[1],
                parent_provider_id=uuids[0])
    script.step("create one of the name", proxy.create_resource_provider, name=names[0],
                id=script.uuid("another"), raises="ConflictException")
    script.step("create one of the uuid", proxy.create_resource_provider, id=uuids[0],
                name=script.name("another"), raises="ConflictException")
    script.step("create below none", proxy.create_resource_provider, name=names[2], id=uuids[2],
                parent_provider_id=script.uuid("none"), raises="BadRequestException")
    script.step("get", proxy.get_resource_provider, uuids[1])
    script.step("get none", proxy.get_resource_provider, script.uuid("none"),
                raises="NotFoundException")
    script.step("find by uuid", proxy.find_resource_provider, uuids[0])
    script.step("find by name", proxy.find_resource_provider, names[0])
    script.step("find none", proxy.find_resource_provider, script.name("none"))
    script.step("find none, strictly", proxy.find_resource_provider, script.name("none"),
                ignore_missing=False, raises="NotFoundException")
    script.step("list a tree", proxy.resource_providers, in_tree=uuids[1])
    script.step("list by name", proxy.resource_providers, name=names[1])
    script.step("list of a bad filter", proxy.resource_providers, resources="VCPU",
                raises="BadRequestException")
    script.step("rename", proxy.update_resource_provider, root, name=f"{names[0]} again")
    script.step("rename to a name in use", proxy.update_resource_provider, uuids[1],
                name=f"{names[0]} again", raises="ConflictException")
    script.step("update none", proxy.update_resource_provider, script.uuid("none"), name="none",
                raises="NotFoundException")
    script.step("delete a parent", proxy.delete_resource_provider, uuids[0],
                raises="ConflictException")
    for uuid in (uuids[1], uuids[0]):
        script.step("delete", proxy.delete_resource_provider, uuid)
    script.step("delete again", proxy.delete_resource_provider, uuids[0])
    script.step("delete again, strictly", proxy.delete_resource_provider, uuids[0],
                ignore_missing=False, raises="NotFoundException")


@_each_version
def inventories(script, proxy, suffix):
    """Inventories one by one and all at once."""
    uuid = script.uuid(f"provider{suffix}")
    proxy.create_resource_provider(id=uuid, name=script.name(f"provider{suffix}"))
    script.step("create", proxy.create_resource_provider_inventory, uuid, VCPU, total=8,
                allocation_ratio=4.0)
    script.step("create again", proxy.create_resource_provider_inventory, uuid, VCPU, total=8,
                raises="ConflictException")
    script.step("create of no class", proxy.create_resource_provider_inventory, uuid, "CUSTOM_NO",
                total=8, raises="BadRequestException")
    script.step("create of nothing", proxy.create_resource_provider_inventory, uuid, MEMORY_MB,
                total=0, raises="BadRequestException")
    script.step("create of none", proxy.create_resource_provider_inventory, script.uuid("none"),
                VCPU, total=8, raises="NotFoundException")
    found = script.step("get", proxy.get_resource_provider_inventory, VCPU, uuid)
    script.step("get none", proxy.get_resource_provider_inventory, DISK_GB, uuid,
                raises="NotFoundException")
    script.step("update", proxy.update_resource_provider_inventory, found, total=16,
                resource_provider_generation=found.resource_provider_generation)
    script.step("update with an old generation", proxy.update_resource_provider_inventory, VCPU,
                uuid, total=17, resource_provider_generation=99, raises="ConflictException")
    generation = proxy.get_resource_provider(uuid).generation
    script.step("update of no class", proxy.update_resource_provider_inventory, DISK_GB, uuid,
                total=1, resource_provider_generation=generation, raises="BadRequestException")
    script.step("set", proxy.set_resource_provider_inventories, uuid, {
        VCPU: inventory(4), MEMORY_MB: inventory(4096)}, generation)
    script.step("set with an old generation", proxy.set_resource_provider_inventories, uuid,
                {VCPU: inventory(4)}, generation, raises="ConflictException")
    script.step("list", proxy.resource_provider_inventories, uuid)
    script.step("list of none", proxy.resource_provider_inventories, script.uuid("none"),
                raises="NotFoundException")
    script.step("delete", proxy.delete_resource_provider_inventory, MEMORY_MB, uuid)
    script.step("delete again", proxy.delete_resource_provider_inventory, MEMORY_MB, uuid)
    script.step("delete again, strictly", proxy.delete_resource_provider_inventory, MEMORY_MB,
                uuid, ignore_missing=False, raises="NotFoundException")
    script.send("PUT", f"/allocations/{script.uuid(f'server{suffix}')}", {
        "allocations": {uuid: {"resources": {VCPU: 1}}}, "project_id": "project",
        "user_id": "user", "consumer_generation": None, "consumer_type": "INSTANCE"})
    script.step("delete what is in use", proxy.delete_resource_provider_inventory, VCPU, uuid,
                raises="ConflictException")
    script.step("set without what is in use", proxy.set_resource_provider_inventories, uuid, {},
                proxy.get_resource_provider(uuid).generation, raises="ConflictException")
    script.step("delete all of what is in use", proxy.delete_resource_provider_inventories, uuid,
                raises="ConflictException")
    script.step("usages", proxy.fetch_resource_provider_usages, uuid)
    script.step("delete a provider in use", proxy.delete_resource_provider, uuid,
                raises="ConflictException")


@_each_version
def names_and_aggregates(script, proxy, suffix):
    """Traits, resource classes and aggregates."""
    trait = script.custom(f"{_TRAIT}{suffix.strip().upper()}")
    resource_class = script.custom(f"{_CLASS}{suffix.strip().upper()}")
    script.step("create a trait", proxy.create_trait, trait)
    script.step("create it again", proxy.create_trait, trait)
    script.step("create a bad one", proxy.create_trait, "bad", raises="BadRequestException")
    script.step("get it", proxy.get_trait, trait)
    script.step("get none", proxy.get_trait, script.custom("NONE"), raises="NotFoundException")
    script.step("list", proxy.traits, name=f"in:{trait},HW_CPU_X86_AVX2")
    script.step("list those in use", proxy.traits, name=f"startswith:{trait}", associated="true")
    script.step("list of a bad filter", proxy.traits, name="pony", raises="BadRequestException")
    script.step("create a class", proxy.create_resource_class, name=resource_class)
    script.step("create it again", proxy.create_resource_class, name=resource_class,
                raises="ConflictException")
    script.step("create a bad one", proxy.create_resource_class, name="bad",
                raises="BadRequestException")
    script.step("get it", proxy.get_resource_class, resource_class)
    script.step("get none", proxy.get_resource_class, script.custom("NONE"),
                raises="NotFoundException")
    uuid = script.uuid(f"provider{suffix}")
    provider = proxy.create_resource_provider(id=uuid, name=script.name(f"provider{suffix}"))
    aggregates = [script.uuid(label) for label in ("one", "two")]
    script.step("set aggregates", proxy.set_resource_provider_aggregates, provider, *aggregates)
    script.step("get aggregates", proxy.fetch_resource_provider_aggregates, uuid)
    script.step("list by aggregate", proxy.resource_providers,
                member_of=f"in:{aggregates[0]},{script.uuid('none')}", in_tree=uuid)
    script.step("aggregates of none", proxy.fetch_resource_provider_aggregates,
                script.uuid("none"), raises="NotFoundException")
    found = script.step("its traits", proxy.get_resource_provider_trait, uuid)
    script.step("set them", proxy.set_resource_provider_trait, found, traits=[trait])
    script.step("set them with an old generation", proxy.set_resource_provider_trait,
                proxy.get_resource_provider_trait(uuid), traits=[trait, "HW_CPU_X86_AVX2"],
                resource_provider_generation=99, raises="ConflictException")
    script.step("set unknown ones", proxy.set_resource_provider_trait,
                proxy.get_resource_provider_trait(uuid), traits=[script.custom("NONE")],
                raises="BadRequestException")
    script.step("delete a trait in use", proxy.delete_trait, trait, raises="ConflictException")
    script.step("delete its traits", proxy.delete_resource_provider_trait, uuid)
    script.step("delete the trait", proxy.delete_trait, trait)
    script.step("delete it again", proxy.delete_trait, trait)
    script.step("delete it again, strictly", proxy.delete_trait, trait, ignore_missing=False,
                raises="NotFoundException")
    script.step("delete a standard one", proxy.delete_trait, "HW_CPU_X86_AVX2",
                raises="BadRequestException")
    script.step("delete the class", proxy.delete_resource_class, resource_class)
    script.step("delete a standard class", proxy.delete_resource_class, VCPU,
                raises="BadRequestException")


@_each_version
def allocations(script, proxy, suffix):
    """Candidates, allocations of one consumer and of several, usages."""
    uuid, project = script.uuid(f"provider{suffix}"), script.uuid(f"project{suffix}")
    provider = proxy.create_resource_provider(id=uuid, name=script.name(f"provider{suffix}"))
    proxy.set_resource_provider_inventories(provider, {VCPU: inventory(4)}, 0)
    one, two = (script.uuid(f"{label}{suffix}") for label in ("one", "two"))
    script.step("candidates", proxy.allocation_candidates, resources="VCPU:1", in_tree=uuid,
                limit=5)
    script.step("candidates of a bad query", proxy.allocation_candidates, resources="VCPU:pony",
                raises="BadRequestException")
    script.step("nothing", proxy.get_allocation, one)

    def body(amount, generation, **values):
        return {"allocations": {uuid: {"resources": {VCPU: amount}}} if amount else {},
                "project_id": project, "user_id": "user", "consumer_generation": generation,
                "consumer_type": "INSTANCE", **values}

    script.step("allocate", proxy.update_allocation, one, **body(2, None))
    script.step("allocate with an old generation", proxy.update_allocation, one, **body(1, 7),
                raises="ConflictException")
    found = script.step("held", proxy.get_allocation, one)
    # The proxy sends only what differs from what it has read, which is no whole body.
    script.step("allocate less of what was read", proxy.update_allocation, found, **body(1, 1),
                raises="BadRequestException")
    script.step("allocate less", proxy.update_allocation, one, **body(1, 1))
    script.step("allocate too much", proxy.update_allocation, one, **body(5, 2),
                raises="ConflictException")
    script.step("of a bad type", proxy.update_allocation, one, **body(
        1, 2, consumer_type="bad"), raises="BadRequestException")
    script.step("several", proxy.create_allocations, {one: body(3, 2), two: body(1, None)})
    script.step("several that do not fit", proxy.create_allocations, {
        one: body(4, 3), two: body(1, 1)}, raises="ConflictException")
    script.step("of the provider", proxy.resource_provider_allocations, uuid)
    script.step("usages", proxy.usages, project)
    script.step("usages of a user", proxy.usages, project, user_id="user",
                consumer_type="INSTANCE")
    script.step("usages of none", proxy.usages, script.uuid("none"))
    script.step("usages of the provider", proxy.fetch_resource_provider_usages, uuid)
    script.step("delete", proxy.delete_allocation, one)
    script.step("delete again", proxy.delete_allocation, one)
    script.step("delete again, strictly", proxy.delete_allocation, one, ignore_missing=False,
                raises="NotFoundException")
    script.step("take all away", proxy.create_allocations, {two: body(0, 1)})
    script.step("delete the provider", proxy.delete_resource_provider, uuid)
