# SPDX-License-Identifier: Apache-2.0
"""Nodes of a Galera cluster that die, freeze, or are left alone, behind HAProxy."""

import itertools
import threading
import time

from placement_rpc import exception
from placement_rpc.db.queries import events
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.integration.galera_case import GaleraCase
from tests.integration.haproxy import GaleraProxy

# Seconds without an accepted claim, at the most.
_KILLED, _FROZEN = 15, 30


class Claimer(threading.Thread):
    """A client that claims one after the other; ``accepted`` are the times and the consumers."""

    def __init__(self, api, provider):
        super().__init__(daemon=True)
        self._api, self._provider = api, provider
        self._ended = threading.Event()
        self.accepted, self.refused = [], []

    def run(self):
        while not self._ended.is_set():
            wanted = base.claim({self._provider: {"VCPU": 1}})
            try:
                self._api.claim_allocations(None, wanted, timeout=60)
            except exception.PlacementException as error:
                self.refused.append(error)
            else:
                self.accepted.append((time.monotonic(), wanted.consumer_uuid))

    def end(self):
        self._ended.set()
        self.join()


class FailuresTest(GaleraCase):
    """Claims while the node that all connections go to fails."""

    time_limit = 240
    options = {"transactions__answer_timeout": 5.0, "database__retry_interval": 1,
               "notifications__lease": 5.0}

    def setUp(self):
        super().setUp()
        self.proxy = self.useFixture(GaleraProxy(self.cluster.nodes))
        self.running = self.useFixture(placement_fixtures.RunningService(
            database_url=self.proxy.url_of(self.database), **self.options))
        self.api = self.running.api
        self.provider = self.api.create_provider(None, base.new_uuid()).uuid
        self.api.set_inventory(None, self.provider, [base.inventory("VCPU", 10 ** 6)])

    def claimers(self):
        """Start clients; return them when each of them has claimed."""
        found = [Claimer(self.api, self.provider) for _ in range(4)]
        for each in found:
            each.start()
        self.wait_for_more(found)
        return found

    def wait_for_more(self, claimers):
        before = [len(each.accepted) for each in claimers]
        base.wait_until(lambda: all(len(each.accepted) > number + 5 for each, number in zip(
            claimers, before, strict=True)), message=lambda: str(claimers[0].refused))

    def longest_pause(self, claimers, since):
        times = sorted(at for each in claimers for at, _ in each.accepted if at > since)
        return max(after - before for before, after in itertools.pairwise((since, *times)))

    def assert_kept(self, claimers):
        """Nothing that was accepted is lost, and nothing is doubled."""
        for each in claimers:
            each.end()
        self.assertEqual([], [error for each in claimers for error in each.refused])
        accepted = {consumer for each in claimers for _, consumer in each.accepted}
        found = self.api.get_provider_allocations(None, self.provider).objects
        self.assertEqual(accepted, {each.consumer_uuid for each in found})
        self.assertEqual(len(accepted), self.api.get_usages(
            None, self.provider).objects[0].used)
        self.assertEqual(len(accepted) + 1, self.api.get_provider(
            None, self.provider).generation)
        # The relay goes on by the node that has taken over.
        base.wait_published(self.running.database)
        with self.running.database.reader() as tx:
            last = events.last_position(tx)
        published = {each["payload"]["placement_object.data"]["position"]
                     for each in self.running.conductor.publisher.read()}
        self.assertEqual(set(range(min(published), last + 1)), published)

    def fail(self, fault, limit):
        claimers = self.claimers()
        since = time.monotonic()
        fault()
        self.wait_for_more(claimers)
        pause = self.longest_pause(claimers, since)
        print(f"Without an accepted claim: {pause:.1f} s")
        self.assertLess(pause, limit)
        self.assert_kept(claimers)

    def wait_until_whole(self):
        for node in self.cluster.nodes:
            base.wait_until(lambda node=node: node.status("wsrep_cluster_size") == "3")
        self.proxy.wait_for("UP", "UP", "UP")

    def test_a_killed_node(self):
        node = self.cluster.nodes[0]
        self.fail(node.kill, _KILLED)
        node.start()
        self.wait_until_whole()

    def test_a_frozen_node(self):
        node = self.cluster.nodes[0]
        self.addCleanup(node.thaw)
        self.fail(node.freeze, _FROZEN)
        node.thaw()
        self.wait_until_whole()

    def test_the_relay_of_another_node_takes_over(self):
        """Without a proxy: the conductor that has the lease loses its node."""
        first = self.cluster.nodes[0]
        base.wait_until(lambda: self.running.conductor.relay.active)
        other = self.useFixture(placement_fixtures.RunningService(
            database_url=self.cluster.nodes[1].url_of(self.database), **self.options))
        self.assertFalse(other.conductor.relay.active)
        # It cannot connect to any other node.
        self.proxy.stop()
        first.stop()
        base.wait_until(lambda: other.conductor.relay.active)
        claimed = base.claim({self.provider: {"VCPU": 1}})
        other.api.claim_allocations(None, claimed, timeout=60)
        last = base.wait_published(other.database)
        found = [each["payload"]["placement_object.data"]
                 for each in other.conductor.publisher.read()]
        self.assertEqual(list(range(found[0]["position"], last + 1)),
                         [each["position"] for each in found])
        self.assertEqual(claimed.consumer_uuid, found[-1]["consumer_uuid"])
        first.start()
        for node in self.cluster.nodes:
            base.wait_until(lambda node=node: node.status("wsrep_cluster_size") == "3")

    def test_a_node_that_is_left_alone_refuses_until_the_others_are_back(self):
        consumer = base.claim({self.provider: {"VCPU": 1}})
        self.api.claim_allocations(None, consumer)
        for node in self.cluster.nodes[1:]:
            node.stop()
        base.wait_until(lambda: self.cluster.nodes[0].status("wsrep_ready") == "OFF")
        refused = self.assertRaises(
            exception.PlacementException, self.api.claim_allocations, None,
            base.claim({self.provider: {"VCPU": 1}}), request_id="alone", timeout=3)
        self.assertTrue(refused.retryable)
        self.cluster.nodes[0].stop()
        self.cluster.recover()
        self.wait_until_whole()
        self.api.claim_allocations(None, consumer, timeout=60)
        self.assertEqual([consumer.consumer_uuid], [
            each.consumer_uuid for each in self.api.get_provider_allocations(
                None, self.provider).objects])
