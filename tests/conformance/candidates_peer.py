# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement in this process, with a world of the candidates model in its tables."""

import contextlib
import copy
import unittest.mock
import uuid

import fixtures
import sqlalchemy as sa
from placement.db.sqlalchemy import models
from placement.objects import allocation_candidate, research_context

from tests import candidates_model, placement_cloud

_EMPTIED = (models.Allocation, models.Inventory, models.ResourceProviderAggregate,
            models.ResourceProviderTrait, models.PlacementAggregate, models.ResourceProvider)


def _always_copied(_self, request):
    """Take the place of the peer's method, which omits copies that are needed.

    Without them, candidates of groups that ask for one class change each other's amounts.
    """
    return copy.copy(request)


def _equal_with_anchors(self, other):
    """Take the place of the peer's comparison, which merges what is equal but for its root.

    If sharing providers alone serve the unsuffixed group, the groups of all roots but one are
    then never combined with it. With this method the answer has equal candidates of several roots.
    """
    return (self.anchor_root_provider_uuid == other.anchor_root_provider_uuid
            and set(self.resource_requests) == set(other.resource_requests)
            and self.mappings == other.mappings)


class Peer(fixtures.Fixture):
    """The peer of this process, without providers."""

    def _setUp(self):
        self.useFixture(fixtures.MockPatchObject(
            research_context.RequestWideSearchContext, "copy_arr_if_needed", _always_copied))
        self._cloud = self.useFixture(placement_cloud.PlacementCloud())
        for path in ("/resource_classes/CUSTOM_RARE", "/resource_classes/CUSTOM_GOLD",
                     "/traits/CUSTOM_FAST", "/traits/CUSTOM_NEAR", "/traits/CUSTOM_UNUSED"):
            self._cloud.send("PUT", path)
        with self._cloud.engine.connect() as connection:
            self._classes, self._traits = (
                dict(connection.execute(sa.select(table.name, table.id)).all())
                for table in (models.ResourceClass, models.Trait))
        self.load(candidates_model.World([], (), ()))

    def ask(self, query_string, minor, by_anchor=False):
        """Return a :class:`tests.placement_cloud.Answer`.

        :param by_anchor: whether equal candidates of several roots count as several
        """
        with contextlib.ExitStack() as stack:
            if by_anchor:
                stack.enter_context(unittest.mock.patch.object(
                    allocation_candidate.AllocationRequest, "__eq__", _equal_with_anchors))
            return self._cloud.ask(
                "GET", f"/allocation_candidates?{query_string}", minor=minor)

    def load(self, world):
        """Replace all providers by those of a :class:`tests.candidates_model.World`."""
        ids = {each.uuid: number for number, each in enumerate(world.providers, 1)}
        aggregates = sorted(set().union(*(each.aggregates for each in world.providers)))
        aggregate_ids = {uuid: number for number, uuid in enumerate(aggregates, 1)}
        rows = {
            models.ResourceProvider: [
                {"id": ids[each.uuid], "uuid": each.uuid, "name": each.uuid, "generation": 1,
                 "parent_provider_id": ids.get(each.parent),
                 "root_provider_id": ids[world.root(each).uuid]} for each in world.providers],
            models.PlacementAggregate: [
                {"id": id_, "uuid": uuid} for uuid, id_ in aggregate_ids.items()],
            models.ResourceProviderAggregate: [
                {"resource_provider_id": ids[each.uuid], "aggregate_id": aggregate_ids[uuid]}
                for each in world.providers for uuid in each.aggregates],
            models.ResourceProviderTrait: [
                {"resource_provider_id": ids[each.uuid], "trait_id": self._traits[name]}
                for each in world.providers for name in each.traits],
            models.Inventory: [
                {"resource_provider_id": ids[each.uuid], "resource_class_id": self._classes[name],
                 **{field: value for field, value in vars(inventory).items() if field != "used"}}
                for each in world.providers for name, inventory in each.inventories.items()],
            models.Allocation: [
                {"resource_provider_id": ids[each.uuid], "resource_class_id": self._classes[name],
                 "consumer_id": str(uuid.uuid4()), "used": inventory.used}
                for each in world.providers for name, inventory in each.inventories.items()
                if inventory.used]}
        with self._cloud.engine.begin() as connection:
            for table in _EMPTIED:
                connection.execute(sa.delete(table))
            for table, values in rows.items():
                if values:
                    connection.execute(sa.insert(table), values)
