# SPDX-License-Identifier: Apache-2.0
"""Traces: a call's spans at both ends belong together, also where calls are settled together."""


import fixtures

from placement_rpc import bodies
from placement_rpc.context import RequestContext
from placement_rpc.rpc import envelope
from placement_rpc.rpc.calls import Calls
from placement_rpc.rpc.serializer import Serializer
from placement_rpc.rpc.tracing import Tracing
from placement_rpc.telemetry import spans, tracing
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base


class Spans(fixtures.Fixture):
    """Collects the spans of this process, as the tracer that the library would make."""

    def _setUp(self):
        from opentelemetry.sdk.trace import TracerProvider, export
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(export.SimpleSpanProcessor(self._exporter))
        self.useFixture(fixtures.MonkeyPatch(
            "oslo_messaging._tracing.client._TRACER", provider.get_tracer("test")))
        self.addCleanup(tracing.begin, None)

    def named(self, name):
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


class TracesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.spans = self.useFixture(Spans())

    def start(self, **options):
        self.running = self.useFixture(placement_fixtures.RunningService(**options))
        self.tracing = Tracing(self.running.conf)
        self.serializer = Serializer()

    def traced(self):
        self.start(oslo_messaging_tracing__tracing_enabled=True)

    def sent(self, method, **arguments):
        """Return a call as a server receives it from a client that traces it."""
        context = RequestContext(user_id="ada", project_id="blue")
        values = self.serializer.serialize_context(context)
        with self.tracing.sending("placement", method, values):
            return envelope.open_call(envelope.seal_call(envelope.Call(
                method, self.running.manager.release.contract,
                {name: self.serializer.serialize_entity(context, value)
                 for name, value in arguments.items()}, values, base.new_uuid(), "replies")))

    def calls(self, queue=None):
        return Calls(self.running.manager, queue, bodies.ANSWERS)

    def check_pair(self, client, server):
        self.assertEqual(client.context.trace_id, server.context.trace_id)
        self.assertEqual(client.context.span_id, server.parent.span_id)

    def test_a_call(self):
        self.traced()
        body = self.calls().answer(self.sent("list_providers"))
        self.assertIsNone(envelope.open_answer(body).failure)
        client, = self.spans.named("placement.list_providers")
        server, = self.spans.named("list_providers receive")
        self.check_pair(client, server)
        within = [span for span in self.spans.named("database")
                  if span.parent.span_id == server.context.span_id]
        self.assertNotEqual([], within)

    def test_calls_that_are_settled_together(self):
        self.traced()
        api = self.running.api
        node = api.create_provider(None, "node").uuid
        api.set_inventory(None, node, [base.inventory("VCPU", 8)])
        sent = [self.sent("claim_allocations", claim=base.claim({node: {"VCPU": 1}}),
                          request_id=base.new_uuid()) for _ in range(2)]
        answers = self.calls(contract.CLAIMS).settle(sent)
        self.assertEqual([None, None], [
            envelope.open_answer(body).failure for _, body in answers])
        clients = self.spans.named("placement.claim_allocations")
        servers = self.spans.named("claim_allocations receive")
        self.assertEqual(2, len(servers))
        by_trace = {span.context.trace_id: span for span in servers}
        for client in clients:
            self.check_pair(client, by_trace[client.context.trace_id])
        batch, = self.spans.named("batch")
        self.assertIsNone(batch.parent)
        self.assertEqual({span.context.span_id for span in servers},
                         {link.context.span_id for link in batch.links})
        self.assertEqual(2, batch.attributes["calls"])
        self.assertIn(batch.context.trace_id, {
            span.context.trace_id for span in self.spans.named("database")})

    def test_events_that_are_published(self):
        self.traced()
        self.calls().answer(self.sent("ping"))
        self.running.api.create_provider(None, "node")
        base.wait_until(lambda: self.spans.named("relay"), 20)
        relayed = self.spans.named("relay")
        self.assertEqual(1, sum(span.attributes["events"] for span in relayed))
        self.assertEqual([None], [span.parent for span in relayed])

    def test_a_trace_context_of_the_wrong_type(self):
        self.traced()
        for wrong in (5, "", "00-zz", ["a"], {"a": 1}, None):
            call = self.sent("ping")
            call.context["traceparent"] = wrong
            answer = envelope.open_answer(self.calls().answer(call))
            self.assertIsNone(answer.failure)

    def test_off_by_default(self):
        self.start()
        call = self.sent("list_providers")
        self.assertNotIn("traceparent", call.context)
        self.assertIsNone(envelope.open_answer(self.calls().answer(call)).failure)
        self.assertEqual([], self.spans.named("list_providers receive"))

    def test_work_outside_of_a_trace_makes_no_spans(self):
        self.traced()
        with spans.span("alone"):
            pass
        self.assertEqual([], self.spans.named("alone"))


class NoLibraryTest(base.TestCase):

    def test_a_service_without_the_library_works_and_says_so(self):
        def missing(_conf):
            raise ImportError("No module named 'opentelemetry'")

        self.useFixture(fixtures.MonkeyPatch(
            "oslo_messaging._tracing.client._get_tracer", missing))
        running = self.useFixture(placement_fixtures.RunningService(
            oslo_messaging_tracing__tracing_enabled=True))
        values = {}
        with Tracing(running.conf).sending("placement", "ping", values):
            running.api.ping(None)
        self.assertEqual({}, values)
        self.assertIn("There are no traces", self.log.output)
