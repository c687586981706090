# SPDX-License-Identifier: Apache-2.0
"""What only old releases, races and hands in the database have left in a Placement database.

These are rows that Placement's API cannot write, and that this project's store may not hold.
"""


import sqlalchemy as sa
from placement.db.sqlalchemy import models

from tests.placement_contents import inventory, uuid_of


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
        """Insert a consumer of the project and the user of :mod:`tests.placement_contents`."""
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


def _consumer_at_generation_0(hand):
    """As Placement's migration of old data leaves consumers."""
    hand.add_consumer("odd: generation 0")
    hand.allocate(uuid_of("odd: generation 0"), hand.provider("compute1.example"))


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


def _names_that_differ_in_blanks(hand):
    """MySQL takes them for one name, as this store does on MariaDB."""
    hand.add_provider("odd: blanks")
    if hand.dialect != "mysql":
        hand.add_provider("odd: blanks ")


def _negative_generations(hand):
    hand.add_provider("odd: negative generation", generation=-1)


#: What only hands, races and old releases leave: name to a function that writes it
ODDITIES = {
    function.__name__[1:]: function for function in (
        _allocation_without_inventory, _orphaned_consumer,
        _orphaned_consumer_of_a_later_generation, _missing_consumer,
        _consumer_at_generation_0, _over_capacity, _loop,
        _own_parent, _unknown_parent, _unknown_root, _root_of_another_tree, _without_root,
        _without_name, _without_generation, _consumers_of_one_uuid, _providers_of_one_uuid,
        _allocation_twice, _allocation_of_nothing, _unknown_provider, _unknown_aggregate,
        _aggregate_without_uuid, _unknown_class, _unknown_project, _odd_inventories,
        _names_of_a_later_release, _names_that_differ_in_blanks, _not_a_uuid,
        _negative_generations)}


def spoil(cloud, *names):
    """Write oddities into a cloud that :func:`tests.placement_contents.fill` has filled.

    :param names: keys of :data:`ODDITIES`; without any, all are written
    """
    with cloud.without_foreign_keys() as connection:
        hand = _Hand(connection)
        for name in names or ODDITIES:
            ODDITIES[name](hand)
