# SPDX-License-Identifier: Apache-2.0
"""Calls whose answers are in memory are looked for together; threads work on the others."""

import json
import threading
import time
import unittest.mock

import sqlalchemy as sa

from placement_rpc import api, exception
from placement_rpc.db import models
from placement_rpc.rpc import batch_server, monitored_calls, turns
from placement_rpc.versions import contract
from tests import base, statements
from tests.functional import call_server_case
from tests.functional.node_case import node


class RememberedCallsTest(call_server_case.CallServerTest):
    """Cycles of trackers whose answers are in memory, and some whose answers are not."""

    queue = contract.FLEET

    def setUp(self):
        super().setUp()
        client = api.PlacementAPI(transport="local", manager=self.manager)
        self.addCleanup(client.close)
        self.nodes = [node(f"{number}.example.org", uuid=base.new_uuid()) for number in range(6)]
        # Each is created, and then remembered.
        for each in [*self.nodes, *self.nodes]:
            client.sync_compute_node(None, each, {}, time.time())

    def cycle(self, client, number, **values):
        """Deliver the cycle of a node."""
        self.call(client, "sync_compute_node", **{
            "node": self.nodes[number].obj_to_primitive(), "allocations": {},
            "snapshot_at": time.time(), "request_id": base.new_uuid(), **values})

    def change(self, number):
        self.nodes[number].memory_mb += 1024

    def hold_search(self):
        """Have the search for answers wait until an event is set; return it and the sizes."""
        go_on, sizes = threading.Event(), []
        self.addCleanup(go_on.set)
        recall = batch_server.Calls.recall

        def wait(calls, asked):
            sizes.append(len(asked))
            go_on.wait(20)
            return recall(calls, asked)

        self.patch(batch_server.Calls, "recall", wait)
        return go_on, sizes

    def search_for_three(self):
        """Deliver three cycles, one of them changed; return what the search for them waits for."""
        go_on, _ = self.hold_search()
        self.change(1)
        for number in range(3):
            self.cycle(f"client {number}", number)
        base.wait_until(lambda: self.server.busy == 3)
        return go_on

    def answered(self, number):
        """Wait until so many calls are answered; return dict of client to answer."""
        base.wait_until(lambda: len(self.answers) == number)
        base.wait_until(lambda: not self.server.busy)
        self.assertEqual(number, max(self.connections[-1].acknowledged))
        return dict(self.answers)

    def changed(self, answer):
        return answer["result"]["placement_object.data"]["changed"]

    def test_those_that_have_arrived_are_looked_for_with_one_read(self):
        go_on, sizes = self.hold_search()
        self.cycle("first", 0)
        base.wait_until(lambda: sizes)
        for number in range(6):
            self.cycle(f"client {number}", number)
        base.wait_until(lambda: self.server.busy == 7)
        with statements.recorded(self.manager.database) as found:
            go_on.set()
            answers = self.answered(7)
        self.assertEqual([1, 6], sizes)
        self.assertEqual(2, statements.reads(found))
        self.assertEqual([[]] * 7, [self.changed(each) for each in answers.values()])

    def test_one_that_changes_something_does_not_delay_the_others(self):
        go_on, (searching, _) = self.hold(), self.hold_search()
        self.change(1)
        for number in range(3):
            self.cycle(f"client {number}", number)
        searching.set()
        base.wait_until(lambda: len(self.answers) == 2)
        self.assertEqual({"client 0", "client 2"}, {client for client, _ in self.answers})
        base.wait_until(lambda: self.server.busy == 1)
        go_on.set()
        self.assertEqual(["MEMORY_MB"], self.changed(self.answered(3)["client 1"]))

    def test_two_reports_of_one_node_of_which_one_changes_it(self):
        searching, _ = self.hold_search()
        self.cycle("as before", 0)
        self.change(0)
        self.cycle("changed", 0)
        searching.set()
        answers = self.answered(2)
        self.assertEqual({"as before": [], "changed": ["MEMORY_MB"]}, {
            client: self.changed(answer) for client, answer in answers.items()})

    def test_what_is_wrong_is_refused_and_the_others_are_answered(self):
        searching, _ = self.hold_search()
        self.cycle("good", 0)
        for client, values in (("too late", {"snapshot_at": time.time() + 3600}),
                               ("no node", {"node": 1}), ("unknown", {"colour": 1})):
            self.cycle(client, 1, **values)
        searching.set()
        answers = self.answered(4)
        self.assertEqual([], self.changed(answers.pop("good")))
        self.assertTrue(all(answer["failure"] for answer in answers.values()))

    def test_a_search_that_fails_leaves_the_calls_to_the_threads(self):
        failures = [ValueError("wrong")]

        def recall(pending):
            if failures:
                raise failures.pop()
            return [None] * len(pending)

        self.patch(self.manager, "recall", recall)
        searching, _ = self.hold_search()
        self.cycle("first", 5)
        for number in range(2):
            self.cycle(f"client {number}", number)
        searching.set()
        self.assertEqual([[]] * 3, [self.changed(each) for each in self.answered(3).values()])

    def test_without_the_store_each_is_told(self):
        self.patch(self.manager.database, "reader", unittest.mock.Mock(
            side_effect=exception.StoreUnavailable(reason="gone")))
        for number in range(3):
            self.cycle(f"client {number}", number)
        answers = self.answered(3)
        self.assertTrue(all("StoreUnavailable" in answer["failure"]
                            for answer in answers.values()))

    def test_one_client_has_no_more_than_its_share(self):
        go_on = self.hold()
        self.cycle("good", 0)
        base.wait_until(lambda: self.answers)
        self.change(1)
        self.change(2)
        self.cycle("good", 2)
        base.wait_until(lambda: self.server.busy)
        for _ in range(self.server.places):
            self.cycle("greedy", 1)
        base.wait_until(lambda: not self.connections[0].delivered)
        base.wait_until(lambda: self.server.busy < 0.75 * self.server.places)
        refused = [answer for client, answer in self.answers if client == "greedy"]
        self.assertTrue(refused and all(answer["failure"] for answer in refused))
        go_on.set()

    def test_those_that_are_looked_for_when_it_stops_are_answered(self):
        searching = self.search_for_three()
        self.server.stop()
        base.wait_until(lambda: self.connections[0].is_cancelled)
        searching.set()
        self.server.wait()
        self.assertEqual(3, len(self.answers))
        self.assertEqual(0, self.server.busy)

    def test_those_of_a_connection_that_is_lost_are_forgotten(self):
        searching = self.search_for_three()
        self.connections[0].shut()
        base.wait_until(lambda: len(self.connections) == 2 and self.connections[1].take)
        searching.set()
        base.wait_until(lambda: not self.server.busy)
        self.assertEqual([], self.answers)
        self.cycle("another", 0)
        self.answered(1)

    def test_the_connection_is_lost_while_it_stops(self):
        searching = self.search_for_three()
        self.server.stop()
        base.wait_until(lambda: self.connections[0].is_cancelled)
        self.connections[0].shut()
        stopping = threading.Thread(target=self.server.wait)
        stopping.start()
        searching.set()
        stopping.join(20)
        self.assertEqual((False, 0, []), (stopping.is_alive(), self.server.busy, self.answers))

    def test_what_cannot_be_searched_at_all_is_worked_on(self):
        self.patch(batch_server.Calls, "recall", unittest.mock.Mock(side_effect=ValueError))
        for number in range(3):
            self.cycle(f"client {number}", number)
        self.assertEqual([[]] * 3, [self.changed(each) for each in self.answered(3).values()])

    def test_one_that_no_thread_can_take_is_delivered_again(self):
        self.change(0)
        self.change(1)
        submit = turns.Turns.submit
        self.patch(turns.Turns, "submit", lambda pool, client, *work: (
            submit(pool, client, *work) if client == "good" else self.fail_to_start()))
        searching, _ = self.hold_search()
        self.cycle("bad", 0)
        self.cycle("good", 1)
        base.wait_until(lambda: self.server.busy == 2)
        searching.set()
        # Its connection ends.
        base.wait_until(lambda: len(self.connections) == 2)
        self.assertNotIn(1, self.connections[0].acknowledged)
        base.wait_until(lambda: not self.server.busy)

    @staticmethod
    def fail_to_start():
        raise RuntimeError("can't start new thread")

    def test_one_that_was_delivered_before_is_worked_on_by_itself(self):
        _, sizes = self.hold_search()
        self.cycle("client", 0, redelivered=True)
        self.assertEqual([], self.changed(self.answered(1)["client"]))
        self.assertEqual([], sizes)

    def test_a_client_that_monitors_its_cycle_hears_of_it_until_the_answer(self):
        self.patch(monitored_calls, "_PERIOD", 0.01)
        working, (searching, _) = self.hold(), self.hold_search()
        self.change(0)
        self.cycle("client", 0, monitored=True)
        base.wait_until(lambda: len(self.answers) > 2)
        searching.set()
        heard = len(self.answers)
        base.wait_until(lambda: len(self.answers) > heard + 2)
        self.assertFalse(any(answer["ending"] for _, answer in self.answers))
        working.set()
        base.wait_until(lambda: self.answers[-1][1]["ending"])

    def test_the_event_of_a_change_names_who_reported_it(self):
        self.change(0)
        self.cycle("client", 0, context={"project_id": "nova", "reason": "more memory"})
        self.answered(1)
        with self.manager.database.reader() as tx:
            written = tx.execute(sa.select(models.events.c.payload).order_by(
                models.events.c.id)).scalars().all()
        self.assertEqual("more memory", json.loads(
            written[-1])["placement_object.data"]["reason"])

    def test_a_client_with_calls_of_every_kind_leaves_room_for_others(self):
        self.hold()
        go_on, _ = self.hold_search()
        settling = threading.Event()
        self.addCleanup(settling.set)
        self.patch(self.manager, "settle", lambda *_: settling.wait(20))
        self.call("good", "get_provider", uuid=self.nodes[0].uuid)
        base.wait_until(lambda: self.server.busy)
        for _ in range(self.server.places):
            self.cycle("greedy", 1)
            self.call("greedy", "set_inventory", provider_uuid=self.nodes[1].uuid, inventories=[])
            self.call("greedy", "create_provider", name="one")
        base.wait_until(lambda: not self.connections[0].delivered)
        self.assertLess(self.server.busy, 0.8 * self.server.places)
        go_on.set()
        settling.set()
