# SPDX-License-Identifier: Apache-2.0
"""One client that makes very many requests at a time leaves threads to the others."""

import threading

import requests
from falcon import testing

from placement_rpc.testing.facade import Facade
from tests import base
from tests.http import HTTPTest


class _SlowRequests:
    """Requests of some users wait until ``go_on`` is set."""

    def slow_down(self):
        self.go_on, self.began = threading.Event(), threading.Semaphore(0)
        self.statuses, self.threads = [], []
        answer = self.api.get_provider

        def slowly(context, uuid, **options):
            if context.user_id.startswith(("many", "other")):
                self.began.release()
                self.go_on.wait(60)
            return answer(context, uuid, **options)

        self.patch(self.api, "get_provider", slowly)
        self.addCleanup(self.join)

    def join(self):
        self.go_on.set()
        for thread in self.threads:
            thread.join()

    def begin(self, count, status):
        """Have requests sent, each in a thread of its own."""
        started = [threading.Thread(target=lambda: self.statuses.append(status()))
                   for _ in range(count)]
        for thread in started:
            thread.start()
        self.threads += started

    def begin_as(self, user, count):
        self.begin(count, lambda: self.show(user).status_code)

    def wait_begun(self, count):
        for _ in range(count):
            self.assertTrue(self.began.acquire(timeout=60))


class _InProcess(_SlowRequests, HTTPTest):
    """The facade without a server: each request has a thread of the test's."""

    def setUp(self):
        super().setUp()
        self.slow_down()
        self.path = f"/resource_providers/{self.make()}"

    def show(self, user):
        return self.send("GET", self.path, token=user, X_Roles="admin")


class TurnsTest(_InProcess):

    options = {"api__requests_per_client": 2, "api__threads": 6}

    def show_from(self, address):
        started = testing.StartResponseMock()
        self.facade.application(testing.create_environ(
            self.path, remote_addr=address, headers={"X-Auth-Token": "many", "X-Roles": "admin"}),
            started)
        return int(started.status.split()[0])

    def test_a_client_that_is_alone_leaves_some_threads_free(self):
        self.begin_as("many", 20)
        self.wait_begun(4)
        base.wait_until(lambda: len(self.statuses) == 16)
        self.assertEqual([503] * 16, self.statuses)
        # They are for another client, which has its turn at once.
        self.begin_as("other", 2)
        self.wait_begun(2)
        self.join()
        self.assertEqual([200] * 6, self.statuses[16:])

    def test_a_request_does_not_wait_for_its_turn_for_ever(self):
        self.facade.turns._patience = 0.1
        self.begin_as("other", 1)
        self.wait_begun(1)
        self.begin_as("many", 4)
        self.wait_begun(2)
        base.wait_until(lambda: len(self.statuses) == 2)
        self.assertEqual([503] * 2, self.statuses)
        self.join()
        self.assertEqual([200] * 3, self.statuses[2:])
        self.assertEqual(200, self.show("many").status_code)

    def test_of_one_client_some_are_worked_on_some_wait_and_others_are_refused(self):
        self.begin_as("other", 1)
        self.wait_begun(1)
        self.begin_as("many", 7)
        self.wait_begun(2)
        base.wait_until(lambda: len(self.statuses) == 3)
        self.assertEqual([503] * 3, self.statuses)
        self.assertFalse(self.began.acquire(blocking=False))
        answer = self.show("many")
        error = self.refused(503, answer)
        self.assertEqual("placement.service.overloaded", error["code"])
        self.assertIn(answer.headers["retry-after"], ("1", "2"))
        self.assertIn(f"try again in {answer.headers['retry-after']} s", error["detail"])
        self.assertEqual(200, self.show("good").status_code)
        self.join()
        self.assertEqual([200] * 5, self.statuses[3:])
        self.assertEqual(200, self.show("many").status_code)
        self.assertIn('placement_rpc_refused_overloaded_total{queue="http"} 4.0',
                      self.facade.metrics.show().decode())

    def test_requests_from_other_addresses_are_of_other_clients(self):
        self.begin_as("other", 1)
        self.wait_begun(1)
        self.begin_as("many", 4)
        # All of them, since those of the other address leave no room for more. Without a limit,
        # none are counted.
        base.wait_until(lambda: self.facade.turns.held in (0, 5))
        self.wait_begun(2)
        self.begin(2, lambda: self.show_from("192.0.2.7"))
        self.wait_begun(2)
        self.join()
        self.assertEqual([200] * 7, self.statuses)

    def test_a_request_that_fails_ends_its_turn(self):
        self.begin_as("other", 1)
        self.wait_begun(1)
        for _ in range(10):
            self.assertEqual(404, self.send("GET", "/nothing", token="good").status_code)
            self.assertEqual(403, self.send("GET", self.path, token="good").status_code)
            self.assertEqual(405, self.send("POST", self.path, token="good").status_code)


class ManyThreadsTest(_InProcess):
    """With many more threads than requests that are worked on, the others wait."""

    options = {"api__requests_per_client": 1, "api__threads": 40}
    # How many are worked on.
    begun = 0

    def wait_full(self, begun, held):
        """Wait until so many requests are here, and so many more of them are worked on."""
        self.wait_begun(begun)
        base.wait_until(lambda: self.facade.turns.held == held)
        self.begun += begun
        self.assertEqual(self.begun, self.facade.turns.working)

    def test_there_is_a_limit_for_all_clients_together(self):
        for number in range(10):
            self.begin_as(f"other {number}", 1)
        self.wait_full(6, 10)
        self.join()
        self.assertEqual([200] * 10, self.statuses)

    def test_a_client_that_is_alone_leaves_room_for_one_other(self):
        self.begin_as("many", 20)
        self.wait_full(5, 20)
        self.begin_as("other", 1)
        self.wait_full(1, 21)
        self.join()
        self.assertEqual([200] * 21, self.statuses)

    def test_two_clients_with_very_many_leave_threads_to_others(self):
        self.begin_as("many", 1)
        self.begin_as("other", 1)
        self.wait_full(2, 2)
        for number in range(3, 63):
            self.begin_as(("many", "other")[number % 2], 1)
            base.wait_until(
                lambda number=number: self.facade.turns.held + len(self.statuses) == number)
        self.assertEqual([503] * 30, self.statuses)
        self.assertEqual(32, self.facade.turns.held)
        self.join()
        self.assertEqual([200] * 32, self.statuses[30:])


class NoLimitTest(TurnsTest):
    """Nothing is refused, and nothing waits."""

    options = {"api__requests_per_client": 0}
    test_a_client_that_is_alone_leaves_some_threads_free = None
    test_a_request_does_not_wait_for_its_turn_for_ever = None

    def test_of_one_client_some_are_worked_on_some_wait_and_others_are_refused(self):
        self.begin_as("other", 1)
        self.begin_as("many", 20)
        self.wait_begun(21)
        self.join()
        self.assertEqual([200] * 21, self.statuses)


class ThreadsTest(_SlowRequests, base.TestCase):
    """On a server whose sixteen threads one client could occupy with its 64."""

    def setUp(self):
        super().setUp()
        self.facade = self.useFixture(Facade(
            api__threads=16, api__max_waiting=0, api__deadline=60.0))
        self.api = self.facade.api
        self.slow_down()
        uuid = self.api.create_provider(None, "provider").uuid
        self.url = f"{self.facade.url}/resource_providers/{uuid}"

    def show(self, user):
        return requests.get(self.url, timeout=60, headers={
            "X-Auth-Token": user, "X-Roles": "admin"})

    def good_clients_are_answered(self):
        for number in range(15):
            for _ in range(3):
                self.assertEqual(200, self.show(f"good {number}").status_code)

    def test_the_others_find_free_threads(self):
        self.begin_as("other", 1)
        self.wait_begun(1)
        self.begin_as("many", 64)
        base.wait_until(lambda: len(self.statuses) == 54)
        self.good_clients_are_answered()
        self.assertEqual([503] * 54, self.statuses)
        self.join()
        self.assertEqual([200] * 11, self.statuses[54:])

    def test_those_that_come_later_find_free_threads(self):
        self.begin_as("many", 64)
        self.wait_begun(12)
        base.wait_until(lambda: len(self.statuses) == 52)
        self.good_clients_are_answered()
        self.assertEqual([503] * 52, self.statuses)
        self.join()
        self.assertEqual([200] * 12, self.statuses[52:])
