# SPDX-License-Identifier: Apache-2.0
"""A client that is closed, forked or interrupted at a bad moment."""

import os
import threading

from placement_rpc import api, exception
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


class ClientLifeTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.useFixture(servers.VirtualHost()).url))
        self.api = self.client()
        self.provider = self.api.create_provider(None, "a").uuid
        self.api.set_inventory(None, self.provider, [base.inventory("VCPU", 8)])

    def client(self):
        client = api.PlacementAPI(conf=self.service.conf, topic=self.service.topic)
        self.addCleanup(client.close)
        return client

    def wanted(self):
        return base.claim({self.provider: {"VCPU": 1}})

    def test_closed_while_a_claim_is_under_way(self):
        """It may be committed, so its caller gets the request id."""
        go_on, asked = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)
        settle = self.service.manager.settle

        def wait(*arguments):
            asked.set()
            go_on.wait()
            return settle(*arguments)

        self.patch(self.service.manager, "settle", wait)
        wanted, raised = self.wanted(), []

        def claim():
            try:
                self.api.claim_allocations(None, wanted, request_id="one", timeout=30)
            except exception.PlacementException as error:
                raised.append(error)

        thread = threading.Thread(target=claim)
        thread.start()
        self.assertTrue(asked.wait(30))
        self.api.close()
        thread.join()
        go_on.set()
        self.assertIsInstance(raised[0], exception.DeadlineExceeded)
        self.assertIn("one", raised[0].text)
        other = self.client()
        base.wait_until(lambda: other.get_allocations(None, wanted.consumer_uuid).objects)

    def test_calls_and_casts_of_a_closed_one_are_refused(self):
        self.api.claim_allocations(None, self.wanted(), cast=True)
        self.api.close()
        for how in ({}, {"cast": True}):
            self.assertRaises(exception.ClientClosed, self.api.claim_allocations, None,
                              self.wanted(), timeout=30, **how)

    def test_a_child_process_is_told_that_it_needs_its_own(self):
        self.api.claim_allocations(None, self.wanted(), cast=True)
        child = os.fork()
        if child == 0:
            refused = 0
            try:
                for how in ({}, {"cast": True}):
                    try:
                        self.api.claim_allocations(None, self.wanted(), timeout=30, **how)
                    except exception.ClientClosed:
                        refused += 1
                self.api.close()
            finally:
                os._exit(refused)
        self.assertEqual(2, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        # The parent's is as it was.
        for how in ({}, {"cast": True}):
            self.api.claim_allocations(None, self.wanted(), timeout=30, **how)

    def test_an_interrupt_that_comes_when_a_lock_is_taken(self):
        client = self.client()
        changed = client.sender.connection._changed
        acquire = changed.acquire

        def interrupted():
            acquire()
            raise KeyboardInterrupt

        changed.acquire = interrupted
        self.assertRaises(KeyboardInterrupt, client.get_provider, None, self.provider)
        changed.acquire = acquire
        thread = threading.Thread(
            target=lambda: client.get_provider(None, self.provider, timeout=30))
        thread.start()
        thread.join(60)
        self.assertFalse(thread.is_alive())

    def test_times_that_no_call_can_have(self):
        for value in ("5", -1, float("nan"), float("inf"), 10 ** 400, 1e300, True):
            self.assertRaises(exception.InvalidInput, api.PlacementAPI,
                              conf=self.service.conf, deadline=value)
            for how in ({}, {"cast": True}):
                self.assertRaises(exception.InvalidInput, self.api.claim_allocations, None,
                                  self.wanted(), timeout=value, **how)
