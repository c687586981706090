# SPDX-License-Identifier: Apache-2.0
"""Trees and traits under many changes at once, on each database."""

import concurrent.futures
import random

import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.db.queries import claims, locking
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers, trees
from tests.integration import lock_waits

_THREADS, _CHANGES = 6, 25


class TreesTest(testscenarios.WithScenarios, base.TestCase):
    """A store on each database, and clients of it."""

    time_limit = 180
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), database__sqlite_synchronous=False))
        self.api = self.client()

    def client(self):
        return api.PlacementAPI(
            "local", self.store.conf,
            manager=manager.Manager(self.store.conf, self.store.database))


class ConcurrentChangesTest(TreesTest):

    def in_threads(self, change):
        """Call ``change(client, random)`` again and again in threads; return its results.

        Refusals are results. Anything else that is raised fails the test.
        """
        def work(number):
            client, dice = self.client(), random.Random(f"{self.kind} {number}")
            done = []
            for _ in range(_CHANGES):
                try:
                    done.append(change(client, dice))
                except (exception.NotFound, exception.Conflict, exception.InvalidInput) as error:
                    done.append(type(error))
            return done

        with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
            return [each for done in pool.map(work, range(_THREADS)) for each in done]

    def test_moves_creations_and_deletions(self):
        names = {}
        for number in range(8):
            made = self.api.create_provider(None, f"provider {number}")
            names[made.uuid] = made.name
        created = dict(names)

        def change(client, dice):
            uuid = dice.choice(list(created))
            what = dice.random()
            if what < 0.5:
                parent = dice.choice([None, *created])
                return client.update_provider(
                    None, uuid, created[uuid], parent_provider_uuid=parent) and "move"
            if what < 0.8:
                made = client.create_provider(
                    None, f"child {base.new_uuid()}", parent_provider_uuid=uuid)
                created[made.uuid] = made.name
                return "create"
            client.delete_provider(None, uuid)
            return "delete"

        done = self.in_threads(change)
        for expected in ("move", "create", "delete", exception.TreeLoop,
                         exception.ProviderIsParent, exception.ParentNotFound):
            self.assertIn(expected, done)
        trees.check(self, self.store.database)

    def test_a_tree_moves_while_it_is_claimed_from(self):
        """Claims lock several providers of a tree, and so do creations of children."""
        roots = [self.api.create_provider(None, f"root {number}") for number in range(2)]
        nodes = [self.api.create_provider(
            None, f"node {number}", parent_provider_uuid=roots[0].uuid) for number in range(4)]
        for each in (*roots, *nodes):
            self.api.set_inventory(None, each.uuid, [base.inventory("VCPU", 10_000)])

        def change(client, dice):
            node, what = dice.choice(nodes), dice.random()
            if what < 0.4:
                chosen = dice.sample([each.uuid for each in (*roots, *nodes)], 3)
                client.claim_allocations(
                    None, base.claim({uuid: {"VCPU": 1} for uuid in chosen}))
                return "claim"
            if what < 0.7:
                client.create_provider(
                    None, f"child {base.new_uuid()}", parent_provider_uuid=node.uuid)
                return "create"
            client.update_provider(
                None, node.uuid, node.name, parent_provider_uuid=dice.choice(roots).uuid)
            return "move"

        self.assertEqual({"claim", "create", "move"}, set(self.in_threads(change)))
        trees.check(self, self.store.database)

    def test_traits_by_prefix(self):
        for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_AB"):
            self.api.create_trait(None, name)
        for prefix, expected in (
                ("CUSTOM_A", ["CUSTOM_A", "CUSTOM_AB"]), ("CUSTOM%", []), ("_USTOM", []),
                ("custom_", []), ("\u00c4", []), ("\U0001f600", []), ("'\"\\", [])):
            self.assertEqual(expected, [
                each.name for each in self.api.list_traits(None, prefix=prefix).objects])

    def test_traits_are_deleted_while_they_are_given(self):
        uuids = [self.api.create_provider(None, f"provider {number}").uuid for number in range(3)]
        names = [f"CUSTOM_{letter}" for letter in "ABC"]

        def change(client, dice):
            name, what = dice.choice(names), dice.random()
            if what < 0.3:
                return client.create_trait(None, name) and "create"
            if what < 0.6:
                client.delete_trait(None, name)
                return "delete"
            client.set_provider_traits(
                None, dice.choice(uuids), dice.sample(names, dice.randrange(3)))
            return "set"

        done = self.in_threads(change)
        for expected in ("create", "delete", "set", exception.TraitExists,
                         exception.TraitNotFound, exception.TraitInUse):
            self.assertIn(expected, done)
        trees.check(self, self.store.database)


class LockOrderTest(TreesTest):
    """SQLite has one writer at a time, and so no order of locks."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    def test_a_creation_does_not_hold_the_parent_while_it_waits_for_the_root(self):
        """Or a claim that holds the root and waits for the parent would wait for it for ever."""
        uuids = sorted(base.new_uuid() for _ in range(2))
        root, parent = (self.api.create_provider(
            None, f"provider {uuid}", uuid, parent_provider_uuid=above).uuid
            for uuid, above in zip(uuids, (None, uuids[0]), strict=True))

        def lock(tx):
            claims.lock_providers(tx, [root])
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                made = pool.submit(self.api.create_provider, None, "child",
                                   parent_provider_uuid=parent)
                lock_waits.wait_for_waiter(self.store.database)
                with self.store.database.writer() as other:
                    free, _locked = locking.lock_free_providers(other, [parent])
                # The root is free again before the other thread is waited for.
                tx.rollback()
            return free, made.result()

        with self.store.database.engine.connect() as tx:
            free, made = lock(tx)
        self.assertEqual({parent}, set(free))
        self.assertEqual((parent, root), (made.parent_provider_uuid, made.root_provider_uuid))
