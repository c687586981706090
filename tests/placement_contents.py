# SPDX-License-Identifier: Apache-2.0
"""What a Placement database holds after years of use, written through Placement's own API.

:func:`fill` writes a small cloud with everything that Placement's API can leave behind;
:mod:`tests.placement_oddities` adds what the API cannot write.
"""

import uuid

_NAMESPACE = uuid.UUID("6f1d7d1e-6f0f-4c59-9b6c-0d4a6c1f3a11")
#: Most that Placement's columns of amounts hold
MOST = 2 ** 31 - 1
HOSTS = 3


def uuid_of(name):
    """Return the uuid of what is called by a name here, always the same."""
    return str(uuid.uuid5(_NAMESPACE, name))


def inventory(total, **fields):
    """Return the document of an inventory."""
    return {"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1,
            "allocation_ratio": 1.0, **fields}


class Writer:
    """Writes to a cloud through its API; names stand for uuids.

    :param cloud: :class:`tests.placement_cloud.PlacementCloud`, or anything with its ``send``
    """

    def __init__(self, cloud):
        self.send = cloud.send

    def generation(self, name):
        """Return the generation of a provider."""
        return self.send("GET", f"/resource_providers/{uuid_of(name)}")["generation"]

    def provider(self, name, parent=None):
        """Create a provider, or give it another parent."""
        body = {"name": name, "uuid": uuid_of(name)}
        if parent:
            body["parent_provider_uuid"] = uuid_of(parent)
        self.send("POST", "/resource_providers", body)

    def change_provider(self, name, new_name, parent=None):
        """Rename a provider and give it a parent, or none."""
        self.send("PUT", f"/resource_providers/{uuid_of(name)}", {
            "name": new_name, "parent_provider_uuid": parent and uuid_of(parent)})

    def inventories(self, name, **inventories):
        """Set the inventories of a provider."""
        self.send("PUT", f"/resource_providers/{uuid_of(name)}/inventories", {
            "resource_provider_generation": self.generation(name), "inventories": inventories})

    def traits(self, name, *traits):
        """Set the traits of a provider; custom ones are created."""
        for trait in traits:
            if trait.startswith("CUSTOM_"):
                self.send("PUT", f"/traits/{trait}")
        self.send("PUT", f"/resource_providers/{uuid_of(name)}/traits", {
            "resource_provider_generation": self.generation(name), "traits": list(traits)})

    def aggregates(self, name, *aggregates):
        """Set the aggregates of a provider."""
        self.send("PUT", f"/resource_providers/{uuid_of(name)}/aggregates", {
            "resource_provider_generation": self.generation(name),
            "aggregates": [uuid_of(aggregate) for aggregate in aggregates]})

    def claim(self, consumer, resources, project="project", user="user", generation=None,
              consumer_type="INSTANCE", minor=39):
        """Set the allocations of a consumer.

        :param resources: dict of provider's name to dict of class to amount
        :param generation: that of the consumer, None for a new one
        :param consumer_type: str; sent from 1.38 on
        """
        body = claim_body(resources, project, user)
        if minor >= 28:
            body["consumer_generation"] = generation
        if minor >= 38:
            body["consumer_type"] = consumer_type
        self.send("PUT", f"/allocations/{uuid_of(consumer)}", body, minor)


def claim_body(resources, project, user):
    """Return the document of a consumer's allocations, without what depends on the version."""
    return {"allocations": {uuid_of(name): {"resources": amounts}
                            for name, amounts in resources.items()},
            "project_id": project, "user_id": user}


def fill(cloud):
    """Write a small cloud, with everything that the API can leave behind."""
    writer = Writer(cloud)
    _write_providers(writer)
    _write_claims(writer)
    _write_moves(writer)
    _reshape(writer)
    _write_leftovers(writer)


def _write_providers(writer):
    for name in ("CUSTOM_BAREMETAL_GOLD", "CUSTOM_LICENSE", "CUSTOM_UNUSED"):
        writer.send("PUT", f"/resource_classes/{name}")
    for host in range(HOSTS):
        root = f"compute{host}.example"
        writer.provider(root)
        writer.inventories(
            root, VCPU=inventory(64, allocation_ratio=4.0, reserved=2),
            MEMORY_MB=inventory(262144, reserved=512, step_size=8, min_unit=8),
            CUSTOM_LICENSE=inventory(10, allocation_ratio=0.9))
        writer.traits(root, "HW_CPU_X86_AVX2", "COMPUTE_VOLUME_EXTEND", "CUSTOM_NEAR")
        writer.aggregates(root, "rack", f"zone{host}")
        for node in range(2):
            numa = f"{root} numa{node}"
            writer.provider(numa, root)
            writer.traits(numa, "HW_NUMA_ROOT")
            writer.provider(f"{numa} gpu", numa)
            writer.inventories(f"{numa} gpu", VGPU=inventory(8, max_unit=1))
    writer.provider("shared disk")
    writer.inventories("shared disk", DISK_GB=inventory(MOST, allocation_ratio=1.5))
    writer.traits("shared disk", "MISC_SHARES_VIA_AGGREGATE")
    writer.aggregates("shared disk", "rack")
    writer.provider("iron ✓ Ärger")
    writer.inventories("iron ✓ Ärger", CUSTOM_BAREMETAL_GOLD=inventory(1))
    writer.provider("without anything")
    # A tree that was moved below another, and names that were exchanged.
    writer.provider("moved root")
    writer.provider("moved child", "moved root")
    writer.change_provider("moved root", "moved root", "compute0.example")
    writer.provider("first name")
    writer.provider("second name")
    writer.change_provider("first name", "no name")
    writer.change_provider("second name", "first name")
    writer.change_provider("first name", "second name")
    writer.change_provider("moved child", "now a root")


def _write_claims(writer):
    server = {"VCPU": 2, "MEMORY_MB": 4096}
    for host in range(HOSTS):
        root = f"compute{host}.example"
        for number in range(3):
            writer.claim(f"server{host}{number}", {root: server, "shared disk": {"DISK_GB": 20}},
                         project=f"project{number}")
        writer.claim(f"gpu server{host}", {root: server, f"{root} numa0 gpu": {"VGPU": 1}})
    writer.claim("old server", {"compute0.example": {"VCPU": 1}}, minor=12)
    writer.claim("older server", {"compute0.example": {"VCPU": 1}}, minor=28)
    writer.claim("iron", {"iron ✓ Ärger": {"CUSTOM_BAREMETAL_GOLD": 1}},
                 project="p" * 255, user="Ünïcode user")
    # Many generations, and a change of project, user and type.
    for generation in range(4):
        writer.claim("resized server", {"compute1.example": {"VCPU": generation + 1}},
                     generation=generation or None)
    writer.claim("resized server", {"compute1.example": {"VCPU": 5}}, "other project",
                 "other user", 4, "CUSTOM_TYPE")
    # Hardware that has shrunk below what is used.
    writer.provider("shrunk.example")
    writer.inventories("shrunk.example", VCPU=inventory(8), MEMORY_MB=inventory(1024))
    writer.claim("big server", {"shrunk.example": {"VCPU": 8}})
    writer.inventories("shrunk.example", VCPU=inventory(4), MEMORY_MB=inventory(
        1024, reserved=1024))


def _write_moves(writer):
    """A server that is being moved: what it held belongs to its migration."""
    server = uuid_of("server00")
    held = writer.send("GET", f"/allocations/{server}")
    old = {provider: {"resources": its["resources"]}
           for provider, its in held["allocations"].items()}
    new = claim_body({"compute2.example": {"VCPU": 2, "MEMORY_MB": 4096},
                      "shared disk": {"DISK_GB": 20}}, "project0", "user")
    writer.send("POST", "/allocations", {
        uuid_of("migration"): {
            "allocations": old, "project_id": "project0", "user_id": "user",
            "consumer_generation": None, "consumer_type": "MIGRATION"},
        server: {**new, "consumer_generation": held["consumer_generation"],
                 "consumer_type": "INSTANCE"}})


def _reshape(writer):
    """The VGPU of a host become those of two groups, and an allocation moves with them."""
    root, server = "compute1.example", uuid_of("gpu server1")
    held = writer.send("GET", f"/allocations/{server}")
    source, target = f"{root} numa0 gpu", f"{root} numa1 gpu"
    writer.send("POST", "/reshaper", {
        "inventories": {
            uuid_of(source): {"resource_provider_generation": writer.generation(source),
                              "inventories": {}},
            uuid_of(target): {"resource_provider_generation": writer.generation(target),
                              "inventories": {"VGPU": inventory(16, max_unit=2)}}},
        "allocations": {server: {
            "allocations": {uuid_of(root): {"resources": {"VCPU": 2, "MEMORY_MB": 4096}},
                            uuid_of(target): {"resources": {"VGPU": 1}}},
            "project_id": held["project_id"], "user_id": held["user_id"],
            "consumer_generation": held["consumer_generation"],
            "consumer_type": held["consumer_type"]}}})


def _write_leftovers(writer):
    """What is not used any more: Placement never deletes projects, users, types, aggregates."""
    writer.traits("without anything", "CUSTOM_FORMER")
    writer.traits("without anything")
    writer.aggregates("without anything", "former aggregate")
    writer.aggregates("without anything")
    writer.claim("deleted server", {"compute2.example": {"VCPU": 1}}, "former project",
                 "former user", consumer_type="FORMER")
    writer.send("DELETE", f"/allocations/{uuid_of('deleted server')}")
    writer.provider("deleted.example")
    writer.send("DELETE", f"/resource_providers/{uuid_of('deleted.example')}")


def change(cloud, number=0):
    """Change a filled cloud while it serves: claims, releases, new and deleted providers.

    :param number: int; each number changes something else
    """
    writer = Writer(cloud)
    host = f"late{number}.example"
    writer.provider(host)
    writer.inventories(host, VCPU=inventory(8 + number))
    writer.claim(f"late server{number}", {host: {"VCPU": 1}}, project=f"late project{number}")
    writer.claim("resized server", {"compute1.example": {"VCPU": 6 + number}},
                 generation=writer.send(
                     "GET", f"/allocations/{uuid_of('resized server')}")["consumer_generation"])
    if number:
        return
    # A release moves no generation and no timestamp of what stays.
    writer.send("DELETE", f"/allocations/{uuid_of('server01')}")
    writer.send("DELETE", f"/resource_providers/{uuid_of('moved child')}")
    writer.change_provider("first name", "third name")
    writer.change_provider("second name", "second name")
    writer.change_provider("first name", "first name")
    writer.traits("compute2.example", "CUSTOM_LATE")
    writer.aggregates("compute2.example", "late aggregate")


def dump(send):
    """Return all that an API tells of a cloud, as a dict that can be compared.

    :param send: function of a method and a path that returns a document, as
        :meth:`tests.placement_cloud.PlacementCloud.send`; of any service with Placement's API
    """
    providers = send("GET", "/resource_providers")["resource_providers"]
    found = {provider["uuid"]: {
        **{name: provider[name] for name in (
            "name", "generation", "parent_provider_uuid", "root_provider_uuid")},
        **_dump_provider(send, f"/resource_providers/{provider['uuid']}")}
        for provider in providers}
    consumers = sorted({consumer for provider in found.values()
                        for consumer in provider["allocations"]})
    return {
        "providers": found,
        "consumers": {uuid: _dump_consumer(send, uuid) for uuid in consumers},
        "resource_classes": _custom(
            each["name"] for each in send("GET", "/resource_classes")["resource_classes"]),
        "traits": _custom(send("GET", "/traits")["traits"])}


def _dump_provider(send, path):
    return {"inventories": send("GET", f"{path}/inventories")["inventories"],
            "traits": sorted(send("GET", f"{path}/traits")["traits"]),
            "aggregates": sorted(send("GET", f"{path}/aggregates")["aggregates"]),
            "allocations": {
                consumer: its["resources"] for consumer, its in send(
                    "GET", f"{path}/allocations")["allocations"].items()}}


def _dump_consumer(send, uuid):
    found = send("GET", f"/allocations/{uuid}")
    return {**found, "allocations": {provider: its["resources"] for provider, its
                                     in found["allocations"].items()}}


def _custom(names):
    # This service has one custom class from the start.
    return sorted(name for name in names
                  if name.startswith("CUSTOM_") and name != "CUSTOM_PCI_SRIOV_PF")
