# SPDX-License-Identifier: Apache-2.0
"""A guard that is added to the gate holds on every path by which a call arrives."""

import threading
import time

from placement_rpc import api, exception, manager
from placement_rpc.amqp.broker import Broker
from placement_rpc.context import RequestContext
from placement_rpc.rpc import endpoint, routing
from placement_rpc.rpc.batch_server import BatchServer
from placement_rpc.service.attempts import Attempts
from placement_rpc.service.command_consumer import CommandConsumer
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base, servers
from tests.functional.node_case import node


class _Guarded(manager.Manager):
    """A manager with an additional guard, which refuses every call of one project."""

    refused_project = base.new_uuid()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.refused, self.was_refused = [], threading.Event()

    def enter(self, context, method, arguments):
        if context.project_id == self.refused_project:
            self.refused.append(method)
            self.was_refused.set()
            raise exception.Forbidden(rule="the test's guard")
        return super().enter(context, method, arguments)


class GateTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.broker = servers.rabbitmq()
        self.topic = f"gate-{base.new_uuid()}"
        self.store = self.useFixture(placement_fixtures.Store(
            transport_url=self.broker.url))
        self.manager = _Guarded(self.store.conf, self.store.database)
        self.context = RequestContext(project_id=_Guarded.refused_project, user_id="someone")

    def serve(self):
        broker = Broker.of(self.store.conf)
        for queue in routing.QUEUES:
            server = BatchServer(
                self.store.conf, broker, self.manager, [routing.name(self.topic, queue)],
                0 if queue == contract.CLAIMS else 2, Attempts(self.store.database), queue)
            server.begin()
            self.addCleanup(server.wait)
            self.addCleanup(server.stop)
        commands = CommandConsumer(self.store.conf, broker, self.manager, self.topic)
        commands.start()
        self.addCleanup(commands.stop)
        client = api.PlacementAPI(conf=self.store.conf, topic=self.topic, pin="2026.2")
        self.addCleanup(client.close)
        return client

    def calls(self, client):
        """Return a call of each kind: plain, of a bulk queue, batched in either, remembered."""
        uuid = base.new_uuid()
        return {
            "get_provider": lambda: client.get_provider(self.context, uuid),
            "create_provider": lambda: client.create_provider(self.context, "node"),
            "set_inventory": lambda: client.set_inventory(self.context, uuid, []),
            "sync_compute_node": lambda: client.sync_compute_node(
                self.context, node(uuid=uuid), {}, time.time()),
            "claim_allocations": lambda: client.claim_allocations(
                self.context, base.claim({uuid: {"VCPU": 1}})),
            "release_allocations": lambda: client.release_allocations(self.context, uuid)}

    def check(self, client):
        for method, call in self.calls(client).items():
            self.assertRaises(exception.Forbidden, call)
            self.assertEqual([method], self.manager.refused)
            self.manager.refused.clear()

    def test_in_this_process(self):
        client = api.PlacementAPI(transport="local", manager=self.manager)
        self.addCleanup(client.close)
        self.check(client)

    def test_on_the_bus(self):
        self.check(self.serve())

    def test_in_the_command_queue(self):
        client = self.serve()
        client.release_allocations(self.context, base.new_uuid(), cast=True)
        self.assertTrue(self.manager.was_refused.wait(30))
        self.assertEqual(["release_allocations"], self.manager.refused)

    def test_the_calls_tried_are_of_every_kind(self):
        def kinds(calls):
            return {(call.queue, call.batched, call.remembered) for call in calls}

        self.assertEqual(kinds(contract.CALLS.values()), kinds(
            contract.CALLS[method] for method in self.calls(None)))


class TableTest(base.TestCase):

    def test_a_method_without_an_entry_cannot_be_exposed(self):
        def define():
            class _Undeclared(manager.Manager):
                @endpoint.exposed
                def undeclared(self, context):
                    """Not in the table."""
            return _Undeclared

        self.assertRaises(TypeError, define)
