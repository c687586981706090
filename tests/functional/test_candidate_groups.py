# SPDX-License-Identifier: Apache-2.0
"""The search for candidates in groups finds what the model of candidates has."""

import itertools
import math
import random

import numpy as np

from placement_rpc import exception
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.objects.inventory import Inventory
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, candidates_http, candidates_index, candidates_random, candidates_store
from tests import candidates_model as model

_WORLDS = base.examples(40)
_QUERIES = 8
_MAX_CHOICES = 100_000
_HISTORIES, _STEPS = base.examples(3), 30


def _choices(world, query):
    """Return about how many choices of providers the model has to try for a query."""
    return math.prod(
        1 + sum(each.fits(amounts) for each in world.providers) for group in query.groups
        for amounts in ([group.amounts] if group.suffix else
                        [{name: amount} for name, amount in group.amounts.items()]))


class CandidatesTest(base.TestCase):
    """A test of the index of a service against the model."""

    time_limit = 1200

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService("local"))
        self.database, self.api = self.service.database, self.service.api
        candidates_store.prepare(self.api)

    def compare(self, rng, world, index, queries=_QUERIES):
        """Compare the candidates of random queries."""
        generator = np.random.default_rng(rng.getrandbits(32))
        for _ in range(queries):
            query = candidates_random.query(rng, world, candidates_random.minor(rng))
            if _choices(world, query) > _MAX_CHOICES:
                continue
            wrong = candidates_index.differences(world, query, index, generator)
            self.assertEqual([], wrong, f"1.{query.minor} {candidates_http.query_string(query)}")


class LoadedIndexTest(CandidatesTest):
    """An index that is built from the rows of a store."""

    def check(self, rng):
        world = candidates_random.world(rng)
        candidates_store.load(self.database, world)
        with LiveIndex(self.database.reader).current() as index:
            self.compare(rng, world, index)

    def test_random_worlds(self):
        candidates_random.check_seeds(_WORLDS, self.check)


class ChangedIndexTest(CandidatesTest):
    """An index that follows the changes of a store."""

    def setUp(self):
        super().setUp()
        self.index = LiveIndex(self.database.reader)
        self.index.wait_until_ready()
        self.consumers = [base.new_uuid() for _ in range(3)]

    def test_random_changes(self):
        for seed in range(_HISTORIES):
            rng = random.Random(seed)
            self.load(candidates_random.world(rng))
            made = sum(self.step(rng, rng.choice(self.changes()), f"seed {seed}, step {step}")
                       for step in range(_STEPS))
            self.assertLess(_STEPS // 3, made)
            self.check_whole_index()

    def test_many_moves_within_large_trees(self):
        rng = random.Random(0)
        self.load(candidates_random.world(rng, 200))
        sizes = []
        for step in range(base.examples(30)):
            for _ in range(20):
                self.change(rng, rng.choice((self.move, self.move, self.create, self.delete)))
            self.compare_now(rng, f"step {step}")
            with self.index.current() as index:
                sizes.append(len(index.id))
        self.check_whole_index()
        # Moved trees are written again, and the places that they left are removed in the end.
        self.assertTrue(any(after < before for before, after in itertools.pairwise(sizes)), sizes)

    def load(self, world):
        """Replace the store by a world, and build the index of it."""
        candidates_store.load(self.database, world)
        self.index.drop("another world")
        self.index.wait_until_ready()
        self.built = self.index.statistics()["made"]

    def check_whole_index(self):
        """Check that the index followed all changes, without being built again, and is right."""
        self.assertEqual(self.built, self.index.statistics()["made"])
        self.assertEqual({}, self.index.verify(0, 1000)["differences"])

    def step(self, rng, change, note):
        """Make a change and compare; return whether it was made."""
        is_made = self.change(rng, change)
        self.compare_now(rng, f"{note}: {change.__name__}")
        return is_made

    def change(self, rng, change):
        """Make a change; return whether it was made, and not refused."""
        world = candidates_store.read(self.database)
        try:
            change(rng, world, rng.choice(world.providers))
        except (exception.Conflict, exception.InvalidInput, exception.ConsumerNotFound):
            return False
        return True

    def compare_now(self, rng, note):
        """Compare the candidates of a few random queries."""
        world = candidates_store.read(self.database)
        try:
            with self.index.current() as index:
                self.compare(rng, world, index, queries=4)
        except Exception as error:
            error.add_note(note)
            raise

    def changes(self):
        return (self.claim, self.claim, self.release, self.create, self.delete, self.move,
                self.move, self.set_inventory, self.set_traits, self.set_traits,
                self.set_aggregates, self.set_aggregates)

    def claim(self, rng, world, _provider):
        """Claim the first candidate of a random query."""
        query = candidates_random.query(rng, world, 39)
        try:
            found = sorted(model.candidates(world, query), key=str)
        except model.Unknown:
            return
        allocations = {}
        for uuid, name, amount in sorted(found[0].resources) if found else ():
            allocations.setdefault(uuid, {})[name] = amount
        if allocations:
            self.api.claim_allocations(
                None, base.claim(allocations, rng.choice(self.consumers)))

    def release(self, rng, _world, _provider):
        self.api.release_allocations(None, rng.choice(self.consumers))

    def create(self, rng, _world, provider):
        new = candidates_random.world(rng, 1).providers[0]
        new.uuid = base.new_uuid()
        self.api.create_provider(None, new.uuid, new.uuid,
                                 parent_provider_uuid=rng.choice((None, provider.uuid)))
        self._fill(new)

    def delete(self, _rng, world, provider):
        if len(world.providers) > 2:
            self.api.delete_provider(None, provider.uuid)

    def move(self, rng, world, provider):
        parent = rng.choice((None, *(each.uuid for each in world.providers)))
        self.api.update_provider(None, provider.uuid, provider.uuid,
                                 parent_provider_uuid=parent, may_move=True)

    def set_inventory(self, rng, _world, provider):
        self._fill(model.Provider(
            provider.uuid, None, candidates_random.world(rng, 1).providers[0].inventories))

    def set_traits(self, rng, _world, provider):
        generation = self.api.get_provider(None, provider.uuid).generation
        names = set(provider.traits) ^ {rng.choice((*candidates_random.TRAITS, model.SHARES))}
        self.api.set_provider_traits(None, provider.uuid, sorted(names), generation)

    def set_aggregates(self, rng, world, provider):
        known = candidates_random.aggregates(world) or [base.new_uuid()]
        self.api.set_aggregates(
            None, provider.uuid, sorted(set(provider.aggregates) ^ {rng.choice(known)}))

    def _fill(self, provider):
        self.api.set_inventory(None, provider.uuid, [
            Inventory(resource_class=name, **{
                field: value for field, value in vars(each).items() if field != "used"})
            for name, each in provider.inventories.items() if each.capacity > 0])
