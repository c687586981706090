# SPDX-License-Identifier: Apache-2.0
"""Calls over RabbitMQ while no conductor listens."""

import threading
import time

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


class AbsentServiceTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.topic = f"placement-{base.new_uuid()}"
        self.client = api.PlacementAPI(topic=self.topic, conf=configuration.new_config(
            config_files=[], transport_url=servers.rabbitmq().url))
        self.addCleanup(self.client.close)

    def test_a_call_ends_at_its_deadline_and_says_why(self):
        began = time.monotonic()
        error = self.assertRaises(
            exception.DeadlineExceeded, self.client.ping, None, timeout=2)
        self.assertLess(time.monotonic() - began, 6)
        self.assertIn("no server consumes the topic", error.text)

    def test_a_service_that_starts_before_the_deadline_answers(self):
        answers, refused = [], threading.Event()
        call = self.client.sender.call

        def note(*arguments):
            try:
                return call(*arguments)
            except exception.ServiceUnavailable:
                refused.set()
                raise

        self.patch(self.client.sender, "call", note)
        caller = threading.Thread(
            target=lambda: answers.append(self.client.ping(None, timeout=60)))
        caller.start()
        self.assertTrue(refused.wait(30))
        self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url, topic=self.topic))
        caller.join()
        self.assertEqual(1, len(answers))
