# SPDX-License-Identifier: Apache-2.0
"""The two ends of the wire format with ordinary oslo.messaging ends opposite, on RabbitMQ.

That an ordinary notification listener reads the events is a test in ``test_relay``.
"""

import threading
import time

import oslo_messaging

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.context import RequestContext
from placement_rpc.objects.claim import ClaimResult
from placement_rpc.objects.resource_provider import ResourceProvider
from placement_rpc.rpc import routing
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base, library, servers


class LibraryClientTest(base.TestCase):
    """An ordinary client calls the service."""

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url))
        self.api = self.running.api
        self.uuid = self.api.create_provider(None, "provider").uuid
        self.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 8)])
        self.client = self.useFixture(library.Client(self.running.conf, self.running.topic))
        self.claims = self.useFixture(library.Client(
            self.running.conf, routing.name(self.running.topic, contract.CLAIMS)))

    def used(self):
        return self.api.get_usages(None, self.uuid).objects[0].used

    def claim(self, amount):
        return base.claim({self.uuid: {"VCPU": amount}}).obj_to_primitive()

    def test_every_kind_of_answer(self):
        self.assertEqual("1.3", self.client.call({}, "ping")["rpc_version"])
        provider = self.client.call({}, "get_provider", provider_uuid=self.uuid)
        self.assertEqual("provider", provider["placement_object.data"]["name"])
        listed = self.client.call({}, "list_providers")
        self.assertEqual(
            [self.uuid], [each["placement_object.data"]["uuid"]
                          for each in listed["placement_object.data"]["objects"]])
        empty = self.client.call(
            {}, "create_provider", request_id="create", provider=ResourceProvider(
                uuid=base.new_uuid(), name="empty").obj_to_primitive())
        self.assertIsNone(self.client.call(
            {}, "delete_provider", request_id="delete",
            provider_uuid=empty["placement_object.data"]["uuid"]))

    def test_a_claim_in_a_batch(self):
        answer = self.claims.call({"deadline": time.time() + 30}, "claim_allocations",
                                  claim=self.claim(3), request_id="claim")
        self.assertEqual("ClaimResult", answer["placement_object.name"])
        self.assertEqual(3, self.used())

    def test_a_cast(self):
        self.claims.cast({}, "claim_allocations", claim=self.claim(2), request_id="cast")
        base.wait_until(lambda: self.used() == 2)

    def test_errors(self):
        error = self.assertRaises(
            exception.CapacityExceeded, self.claims.call, {}, "claim_allocations",
            claim=self.claim(9), request_id="too-much")
        self.assertEqual("placement.claim.capacity_exceeded", error.code)
        for client, method, arguments in (
                (self.claims, "ping", {}), (self.claims, "not_there", {}),
                (self.client, "not_there", {}), (self.client, "ping", {"argument": 1})):
            self.assertRaises(exception.UnsupportedCall, client.call, {}, method, **arguments)
        self.assertRaises(exception.UnsupportedCall,
                          self.client.prepare(version="1.99").call, {}, "ping")
        self.assertRaises(exception.InvalidInput, self.claims.call, {}, "claim_allocations",
                          claim=5, request_id="five")

    def test_errors_of_a_module_that_the_client_does_not_allow(self):
        client = self.useFixture(library.Client(
            self.running.conf, self.running.topic, modules=[]))
        error = self.assertRaises(oslo_messaging.RemoteError, client.call, {}, "get_provider",
                                  provider_uuid=base.new_uuid())
        self.assertEqual("ProviderNotFound", error.exc_type)

    def test_a_call_that_is_too_late(self):
        self.assertRaises(exception.RequestExpired, self.client.call,
                          {"deadline": time.time() - 5}, "ping")


class _ForeignError(Exception):
    """An error of a module that this project's client does not rebuild errors of."""


class _Endpoint:
    """The endpoint of a server that is not this project's."""

    target = oslo_messaging.Target(version="1.3")

    def __init__(self):
        self.let_go = threading.Event()

    def echo(self, context, value):
        return value

    def get_provider(self, context, provider_uuid):
        return ResourceProvider(
            uuid=provider_uuid, name="provider", generation=3).obj_to_primitive()

    def claim_allocations(self, context, claim, request_id):
        return ClaimResult(generations={base.new_uuid(): 5}).obj_to_primitive(
            version_manifest={"ClaimResult": "1.0"})

    def fail(self, context, kind):
        raise {"known": exception.NameInUse(name="node"), "foreign": _ForeignError("of its own"),
               "builtin": ValueError("of a defect")}[kind]

    def wait(self, context):
        self.let_go.wait(60)


class LibraryServerTest(base.TestCase):
    """This project's client calls an ordinary server."""

    def setUp(self):
        super().setUp()
        self.conf = configuration.new_config(
            config_files=[], transport_url=servers.rabbitmq().url)
        topic = f"placement-{base.new_uuid()}"
        self.endpoint = _Endpoint()
        self.useFixture(library.Server(self.conf, topic, self.endpoint))
        self.addCleanup(self.endpoint.let_go.set)
        self.api = api.PlacementAPI(conf=self.conf, topic=topic, pin="2026.2")
        self.addCleanup(self.api.close)

    def call(self, method, timeout=30, server=None, **arguments):
        return self.api.sender.call(RequestContext(), method, arguments, timeout, server)

    def test_every_kind_of_answer(self):
        for value in (None, True, 5, 1.5, "text", "ä" * 100_000, [], [1, [2]], {"a": {"b": None}}):
            self.assertEqual(value, self.call("echo", value=value))
        found = self.api.get_provider(None, base.new_uuid())
        self.assertEqual(("provider", 3), (found.name, found.generation))

    def test_a_call_by_the_name_of_the_server(self):
        self.assertEqual(1, self.call("echo", server="library", value=1))
        error = self.assertRaises(
            exception.ServiceUnavailable, self.call, "echo", server="other", value=1)
        self.assertIn("no server consumes the topic", error.text)

    def test_a_claim_goes_to_the_one_queue_that_there_is(self):
        done = self.api.claim_allocations(None, base.claim({base.new_uuid(): {"VCPU": 1}}))
        self.assertEqual([5], list(done.generations.values()))

    def test_errors(self):
        error = self.assertRaises(exception.NameInUse, self.call, "fail", kind="known")
        self.assertEqual({"name": "node"}, error.kwargs)
        for kind, words in (("foreign", "_ForeignError"), ("builtin", "ValueError: of a defect")):
            error = self.assertRaises(exception.UnsupportedCall, self.call, "fail", kind=kind)
            self.assertIn(words, error.text)
            self.assertNotIn("Traceback", error.text)
        self.assertRaises(exception.UnsupportedCall, self.call, "not_there")

    def test_a_contract_that_is_too_new(self):
        self.endpoint.target = oslo_messaging.Target(version="1.0")
        error = self.assertRaises(exception.UnsupportedCall, self.call, "echo", value=1)
        self.assertIn("1.3", error.text)

    def test_an_answer_that_does_not_come_in_time(self):
        error = self.assertRaises(exception.ServiceUnavailable, self.call, "wait", timeout=0.5)
        self.assertIn("no answer within 0.5 s", error.text)
        self.endpoint.let_go.set()
        self.assertEqual("next", self.call("echo", value="next"))
