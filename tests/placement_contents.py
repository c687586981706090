# SPDX-License-Identifier: Apache-2.0
"""What a Placement database holds after years of use, written through Placement's own API.

:func:`fill` writes a small cloud with everything that Placement's API can leave behind.
:func:`spoil` writes what only old releases, races and hands in the database have left: rows that
the API cannot write, and that this project's store may not hold.
"""

import uuid

import sqlalchemy as sa
from placement.db.sqlalchemy import models

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


class _Hand:
    """Writes to Placement's tables by hand; no foreign key refuses anything."""

    def __init__(self, connection):
        self._connection = connection
        self.dialect = connection.dialect.name

    def execute(self, statement):
        """Execute a statement."""
        return self._connection.execute(statement)

    def add(self, model, **values):
        """Insert a row, and return its id."""
        return self.execute(sa.insert(model.__table__).values(
            **values)).inserted_primary_key[0]

    def find(self, model, **values):
        """Return the id of the row with these values."""
        return self.execute(sa.select(model.id).filter_by(**values)).scalar_one()

    def provider(self, name):
        """Return the id of a provider."""
        return self.find(models.ResourceProvider, name=name)

    def class_(self, name="VCPU"):
        """Return the id of a resource class."""
        return self.find(models.ResourceClass, name=name)

    def add_provider(self, name, **values):
        """Insert a provider, a root unless it is said otherwise, and return its id."""
        id_ = self.add(models.ResourceProvider, **{
            "uuid": uuid_of(name), "name": name, "generation": 1, **values})
        if "root_provider_id" not in values:
            self.set_provider(id_, root_provider_id=id_)
        return id_

    def set_provider(self, id_, **values):
        """Change a provider."""
        self.execute(sa.update(models.ResourceProvider).where(
            models.ResourceProvider.id == id_).values(**values))

    def add_consumer(self, name, **values):
        """Insert a consumer of the project and user that :func:`fill` has written."""
        return self.add(models.Consumer, **{
            "uuid": uuid_of(name), "generation": 0,
            "project_id": self.find(models.Project, external_id="project"),
            "user_id": self.find(models.User, external_id="user"), **values})

    def allocate(self, consumer, provider, used=1, class_id=None):
        """Insert an allocation.

        :param consumer: str, its uuid
        :param provider: int, its id
        """
        self.add(models.Allocation, resource_provider_id=provider, consumer_id=consumer,
                 resource_class_id=class_id or self.class_(), used=used)

    def add_inventory(self, provider, class_id=None, **values):
        """Insert an inventory."""
        self.add(models.Inventory, **{
            "resource_provider_id": provider, "resource_class_id": class_id or self.class_(),
            **inventory(10), **values})


def _allocation_without_inventory(hand):
    hand.add_consumer("odd: without inventory", generation=1)
    hand.allocate(uuid_of("odd: without inventory"), hand.provider("without anything"), 3)


def _orphaned_consumer(hand):
    hand.add_consumer("odd: orphaned")


def _orphaned_consumer_of_a_later_generation(hand):
    hand.add_consumer("odd: orphaned later", generation=7)


def _missing_consumer(hand):
    for used in (1, 2):
        hand.allocate(uuid_of("odd: missing"), hand.provider(f"compute{used}.example"), used)


def _over_capacity(hand):
    provider = hand.add_provider("odd: over capacity")
    hand.add_inventory(provider, total=1)
    hand.add_consumer("odd: over capacity", generation=1)
    hand.allocate(uuid_of("odd: over capacity"), provider, 100)


def _loop(hand):
    ids = [hand.add_provider(f"odd: loop {number}") for number in range(3)]
    for number, id_ in enumerate(ids):
        hand.set_provider(id_, parent_provider_id=ids[number - 1], root_provider_id=ids[0])
    hand.add_provider("odd: below the loop", parent_provider_id=ids[1], root_provider_id=ids[0])


def _own_parent(hand):
    id_ = hand.add_provider("odd: own parent")
    hand.set_provider(id_, parent_provider_id=id_)


def _unknown_parent(hand):
    hand.add_provider("odd: unknown parent", parent_provider_id=999999)


def _unknown_root(hand):
    hand.add_provider("odd: unknown root", root_provider_id=999999)


def _root_of_another_tree(hand):
    parent = hand.add_provider("odd: parent")
    hand.add_provider("odd: wrong root", parent_provider_id=parent,
                      root_provider_id=hand.provider("compute0.example"))


def _without_root(hand):
    root = hand.add_provider("odd: without root", root_provider_id=None)
    hand.add_provider("odd: child without root", root_provider_id=None, parent_provider_id=root)


def _without_name(hand):
    hand.set_provider(hand.add_provider("odd: without name"), name=None)


def _without_generation(hand):
    hand.add_provider("odd: without generation", generation=None)


def _consumers_of_one_uuid(hand):
    """Placement takes a consumer's uuid as it is written: with or without dashes, in any case."""
    plain = uuid_of("odd: written twice")
    forms = [plain, plain.replace("-", "")]
    if hand.dialect != "mysql":
        # Its names do not differ by their case there.
        forms.append(plain.upper())
    for number, form in enumerate(forms):
        hand.add_consumer("odd: written twice", uuid=form, generation=number + 1)
        hand.allocate(form, hand.provider("compute0.example"), 1)
        hand.allocate(form, hand.provider(f"compute{number}.example"), 1,
                      hand.class_("CUSTOM_LICENSE"))


def _providers_of_one_uuid(hand):
    plain = uuid_of("odd: provider written twice")
    hand.add_provider("odd: written with dashes", uuid=plain)
    hand.add_provider("odd: written without dashes", uuid=plain.replace("-", ""))


def _allocation_twice(hand):
    hand.add_consumer("odd: twice", generation=1)
    for used in (1, 2):
        hand.allocate(uuid_of("odd: twice"), hand.provider("compute2.example"), used)


def _allocation_of_nothing(hand):
    hand.add_consumer("odd: amounts", generation=1)
    for host, used in enumerate((0, -1, 4)):
        hand.allocate(uuid_of("odd: amounts"), hand.provider(f"compute{host}.example"), used)


def _unknown_provider(hand):
    """Rows of a provider that is deleted: most tables have no foreign key."""
    hand.add_consumer("odd: unknown provider", generation=1)
    hand.allocate(uuid_of("odd: unknown provider"), 999999)
    hand.add_inventory(999999)
    hand.execute(sa.insert(models.ResourceProviderAggregate.__table__).values(
        resource_provider_id=999999,
        aggregate_id=hand.find(models.PlacementAggregate, uuid=uuid_of("rack"))))


def _unknown_aggregate(hand):
    hand.execute(sa.insert(models.ResourceProviderAggregate.__table__).values(
        resource_provider_id=hand.provider("compute0.example"), aggregate_id=999999))


def _aggregate_without_uuid(hand):
    hand.execute(sa.insert(models.ResourceProviderAggregate.__table__).values(
        resource_provider_id=hand.provider("compute0.example"),
        aggregate_id=hand.add(models.PlacementAggregate, uuid=None)))


def _unknown_class(hand):
    hand.add_inventory(hand.provider("compute0.example"), 999999)
    hand.add_consumer("odd: unknown class", generation=1)
    hand.allocate(uuid_of("odd: unknown class"), hand.provider("compute0.example"),
                  class_id=999999)


def _unknown_project(hand):
    hand.add_consumer("odd: unknown project", generation=1, project_id=999999, user_id=999999)
    hand.allocate(uuid_of("odd: unknown project"), hand.provider("compute0.example"))


def _odd_inventories(hand):
    for name, values in {
            "total 0": {"total": 0}, "negative total": {"total": -5},
            "reserved above total": {"reserved": 11}, "negative reserved": {"reserved": -1},
            "ratio 0": {"allocation_ratio": 0.0}, "step 0": {"step_size": 0},
            "min above max": {"min_unit": 9, "max_unit": 3}, "min 0": {"min_unit": 0},
            "max 0": {"max_unit": 0}}.items():
        provider = hand.add_provider(f"odd: {name}")
        hand.add_inventory(provider, **values)
        hand.add_consumer(f"odd: {name}", generation=1)
        hand.allocate(uuid_of(f"odd: {name}"), provider)


def _names_of_a_later_release(hand):
    """Standard classes and traits that this release does not know."""
    class_id = hand.add(models.ResourceClass, id=900, name="FUTURE_CLASS")
    hand.add_inventory(hand.provider("compute0.example"), class_id)
    hand.add_consumer("odd: later", generation=1)
    hand.allocate(uuid_of("odd: later"), hand.provider("compute0.example"), class_id=class_id)
    hand.execute(sa.insert(models.ResourceProviderTrait.__table__).values(
        resource_provider_id=hand.provider("compute0.example"),
        trait_id=hand.add(models.Trait, name="FUTURE_TRAIT")))


def _not_a_uuid(hand):
    hand.add_consumer("odd: not a uuid", uuid="not-a-uuid", generation=1)
    hand.allocate("not-a-uuid", hand.provider("compute0.example"))


def _negative_generations(hand):
    hand.add_provider("odd: negative generation", generation=-1)


#: What only hands, races and old releases leave: name to a function that writes it
ODDITIES = {
    function.__name__[1:]: function for function in (
        _allocation_without_inventory, _orphaned_consumer,
        _orphaned_consumer_of_a_later_generation, _missing_consumer, _over_capacity, _loop,
        _own_parent, _unknown_parent, _unknown_root, _root_of_another_tree, _without_root,
        _without_name, _without_generation, _consumers_of_one_uuid, _providers_of_one_uuid,
        _allocation_twice, _allocation_of_nothing, _unknown_provider, _unknown_aggregate,
        _aggregate_without_uuid, _unknown_class, _unknown_project, _odd_inventories,
        _names_of_a_later_release, _not_a_uuid, _negative_generations)}


def spoil(cloud, *names):
    """Write oddities into a cloud that :func:`fill` has filled.

    :param names: str of :data:`ODDITIES`; all of them if there is none
    """
    with cloud.without_foreign_keys() as connection:
        hand = _Hand(connection)
        for name in names or ODDITIES:
            ODDITIES[name](hand)
