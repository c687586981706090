# SPDX-License-Identifier: Apache-2.0
"""A compute node's VGPU inventory moves into children while claims run, over RabbitMQ."""

import collections
import random
import threading

import testscenarios

from placement_rpc import exception
from placement_rpc.api import InventoryList
from placement_rpc.db.queries import events as event_queries
from placement_rpc.notifications import listener
from placement_rpc.objects.inventory import capacity_of
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import ledger

_CLAIMERS, _GPUS, _OF_EACH = 4, 3, 4
# The fewest consumers of a loaded node.
_LOAD = 5
# The service has as many changes to settle as an active cloud gives it, and not all that it can:
# nova reads a node's allocations and moves them, between two changes of that node.
_PAUSE = 0.03


class _Claimer(threading.Thread):
    """Claims and releases, and remembers the amounts that its consumers hold.

    A consumer holds a processor of the node, and a GPU of the node or of one of its children.
    """

    def __init__(self, api, node, places, dice, ended):
        super().__init__()
        self.api, self._node, self._places = api, node, places
        self._dice, self._ended = dice, ended
        self.held, self.failures = set(), []
        self.accepted = collections.Counter()

    def run(self):
        try:
            while not self._ended.wait(_PAUSE * self._dice.random()):
                self._change()
        except Exception as error:
            self.failures.append(error)

    def _change(self):
        if len(self.held) > self._dice.randrange(5):
            consumer = self._dice.choice(sorted(self.held))
            self.api.release_allocations(None, consumer)
            self.held.remove(consumer)
            return
        consumer, place = base.new_uuid(), self._dice.choice(self._places)
        wanted = {self._node: {"VCPU": 1}}
        wanted.setdefault(place, {})["VGPU"] = 1
        try:
            self.api.claim_allocations(None, base.claim(wanted, consumer))
        except exception.CapacityExceeded:
            return
        self.held.add(consumer)
        self.accepted[place] += 1


class ReshapeTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 180
    scenarios = [("PostgreSQL", {"kind": "postgresql"}), ("MariaDB", {"kind": "mariadb"})]

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, database_url=servers.new_database(self.kind)))
        self.api, self.database = self.running.api, self.running.database
        self.node = self.api.create_provider(None, "node").uuid
        self.gpus = [self.api.create_provider(
            None, f"node gpu {number}", parent_provider_uuid=self.node).uuid
            for number in range(_GPUS)]
        self.api.set_inventory(None, self.node, [
            base.inventory("VCPU", 100), base.inventory("VGPU", _GPUS * _OF_EACH)])
        self.ended = threading.Event()
        self.claimers = [_Claimer(
            self.api, self.node, [self.node, *self.gpus], random.Random(f"{self.kind} {number}"),
            self.ended) for number in range(_CLAIMERS)]
        self.addCleanup(self.ended.set)

    def accepted(self, *places):
        return sum(each.accepted[place] for each in self.claimers for place in places)

    def wait_accepted(self, number, *places):
        """Wait for so many more claims of GPUs from some providers."""
        before = self.accepted(*places)
        base.wait_until(lambda: any(each.failures for each in self.claimers)
                        or self.accepted(*places) >= before + number)

    def test_a_loaded_node(self):
        for each in self.claimers:
            each.start()
        self.wait_accepted(30, self.node)
        conflicts = self.reshape_until_done()
        self.wait_accepted(30, *self.gpus)
        self.ended.set()
        for each in self.claimers:
            each.join()
        self.assertEqual([], [error for each in self.claimers for error in each.failures])
        self.check_holdings()
        found = self.events()
        ledger.check_events(self, self.database, found)
        self.check_never_over_committed(found)
        self.assertEqual({}, self.api.verify_index(None)["differences"])
        # It was loaded: consumers moved, in one transaction.
        moved = collections.Counter(
            event.payload["request_id"] for event in found
            if event.event_type == "allocation.update")
        self.assertEqual([f"reshape-{conflicts}"], list(moved))
        self.assertGreaterEqual(sum(moved.values()), _LOAD)

    def reshape_until_done(self):
        """Move the GPUs into children, as nova does; return the number of conflicts."""
        conflicts = []

        def is_done():
            try:
                return self.reshape(f"reshape-{len(conflicts)}")
            except exception.ConcurrentUpdate as error:
                # The request has its outcome: another state needs another request.
                conflicts.append(error)
                return False

        base.wait_until(is_done)
        return len(conflicts)

    def reshape(self, request_id):
        """Move the GPUs in the state that is read now, if the node is loaded.

        :returns: bool, whether it is
        :raises ConcurrentUpdate: if the node has changed since it was read
        """
        found = self.api.get_provider_allocations(None, self.node)
        consumers = sorted({each.consumer_uuid for each in found.objects
                            if each.resource_class == "VGPU"})
        if len(consumers) < _LOAD:
            return False
        places = [uuid for uuid in self.gpus for _ in range(_OF_EACH)]
        self.api.reshape(None, [
            InventoryList(provider_uuid=self.node, generation=found.generation,
                          objects=[base.inventory("VCPU", 100)]),
            # Nothing can be allocated from them before.
            *(InventoryList(provider_uuid=uuid, generation=0,
                            objects=[base.inventory("VGPU", _OF_EACH)]) for uuid in self.gpus),
        ], [base.claim({self.node: {"VCPU": 1}, place: {"VGPU": 1}}, consumer,
                       consumer_generation=1)
            for consumer, place in zip(consumers, places, strict=False)], request_id=request_id)
        return True

    def check_holdings(self):
        """Every consumer holds what its claimer was told, and the node's GPUs are its children's.
        """
        consumers = set().union(*(each.held for each in self.claimers))
        self.assertEqual(consumers, {each.consumer_uuid for each in (
            self.api.get_provider_allocations(None, self.node).objects)})
        for consumer in consumers:
            held = self.api.get_allocations(None, consumer).by_provider()
            self.assertEqual({"VCPU": 1}, held.pop(self.node))
            (place, amounts), = held.items()
            self.assertEqual((True, {"VGPU": 1}), (place in self.gpus, amounts))

    def events(self):
        """Return all events as the stream has them."""
        def is_published():
            with self.database.reader() as tx:
                found = event_queries.status(tx)
            return not found["unpositioned"] and (
                found["published_position"] == found["last_position"])

        base.wait_until(is_published)
        reader = listener.StreamReader(
            self.broker.url, self.running.conf.notifications.stream, 1)
        return list(reader.events(idle=2))

    def check_never_over_committed(self, found):
        """No event leaves more used than the capacity that the events before it made."""
        capacity, used = {}, collections.Counter()
        for event in found:
            for change in event.payload.get("inventories", ()):
                key = event.payload["provider_uuid"], change["resource_class"]
                after = change["after"]
                capacity[key] = after and capacity_of(
                    after["total"], after["reserved"], after["allocation_ratio"])
            for each in event.payload.get("providers", ()):
                for sign, side in ((1, "after"), (-1, "before")):
                    for name, amount in each[side].items():
                        used[each["provider_uuid"], name] += sign * amount
            for key, amount in used.items():
                self.assertLessEqual(amount, capacity[key] or 0, (event.position, key))
        self.assertNotIn("inventory.capacity_exceeded", {event.event_type for event in found})
