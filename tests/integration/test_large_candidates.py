# SPDX-License-Identifier: Apache-2.0
"""Candidates of a whole fleet in one answer over RabbitMQ, within the limits of messages."""

import base64
import json
import zlib

import requests

from placement_rpc import exception
from placement_rpc.api import CandidateGroup, CandidatesRequest, PlacementAPI
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.facade import Facade
from tests import base, library, servers
from tests.benchmarks import fleet

_PROVIDERS = 400
# The text has several times as many bytes, and deflated it has fewer.
_MAX_ANSWER = 64 * 1024
_WANTED = CandidatesRequest(groups=[CandidateGroup(resources={"VCPU": 1})])


class LargeAnswerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url, messages__max_answer=_MAX_ANSWER))
        self.api = self.running.api
        local = PlacementAPI("local", self.running.conf, manager=self.running.manager)
        self.addCleanup(local.close)
        self.local = local
        self.uuids = set()
        for number in range(_PROVIDERS):
            uuid = local.create_provider(None, f"provider {number}").uuid
            local.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
            self.uuids.add(uuid)
        self.client = self.useFixture(library.Client(self.running.conf, self.running.topic))

    def test_it_is_deflated_on_the_way(self):
        answer = self.api.get_allocation_candidates(None, _WANTED)
        text = b"".join(answer.chunks())
        self.assertLess(_MAX_ANSWER, len(text))
        self.assertEqual(_PROVIDERS, answer.count)
        self.assertEqual(self.uuids, set(answer.provider_summaries))
        here = self.local.get_allocation_candidates(None, _WANTED)
        self.assertIsNone(here.encoding)
        self.assertCountEqual(here.allocation_requests, answer.allocation_requests)
        self.assertEqual(here.provider_summaries, answer.provider_summaries)

    def test_an_ordinary_client_reads_it(self):
        found = self.client.call({}, "get_allocation_candidates", deflate=True,
                                 wanted=_WANTED.obj_to_primitive())["placement_object.data"]
        text = zlib.decompress(b"".join(map(base64.b64decode, found["body"])))
        self.assertEqual(_PROVIDERS, len(json.loads(text)["allocation_requests"]))
        few = CandidatesRequest(groups=_WANTED.groups, limit=2)
        found = self.client.call({}, "get_allocation_candidates",
                                 wanted=few.obj_to_primitive())["placement_object.data"]
        self.assertEqual(2, len(json.loads("".join(found["body"]))["allocation_requests"]))

    def test_one_that_exceeds_the_limit_is_refused_at_once(self):
        error = self.assertRaises(
            exception.AnswerTooLarge, self.client.call, {}, "get_allocation_candidates",
            wanted=_WANTED.obj_to_primitive())
        self.assertIn("get_allocation_candidates", error.text)

    def test_over_http_it_is_a_request_to_ask_for_less(self):
        facade = self.useFixture(Facade(
            transport_url=servers.rabbitmq().url, messages__max_answer=_MAX_ANSWER))
        # Deflated their answer exceeds the limit, too.
        fleet.grow(facade.database, 10 * _PROVIDERS)
        # The providers came without events; an index that differs is built again.
        facade.running.manager.candidates.index.verify(0, 1000)
        answer = requests.get(
            f"{facade.url}/allocation_candidates?resources=VCPU:1", timeout=60,
            headers={"x-auth-token": "admin", "openstack-api-version": "placement 1.36"})
        self.assertEqual((400, "placement.answer.too_large"), (
            answer.status_code, answer.json()["errors"][0]["exact_code"]))
