# SPDX-License-Identifier: Apache-2.0
"""Clients and conductors of different releases, in one process."""

import json
import pathlib
import subprocess
import sys
import time

import fixtures
import sqlalchemy as sa

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.context import RequestContext
from placement_rpc.db import migration, models, schema_version
from placement_rpc.db.queries import requests, services
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.service.conductor import Conductor
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import pins, releases
from tests import base, servers


class MixedTest(base.TestCase):

    def serve(self, pin="auto", **options):
        """A service that keeps to a release."""
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url, upgrade_levels__placement=pin, **options))
        return self.running

    def client(self, pin="auto", **how):
        conf = configuration.new_config(
            config_files=[], transport_url=self.running.conf.transport_url,
            placement_client__deadline=20.0)
        client = api.PlacementAPI(conf=conf, topic=self.running.topic, pin=pin, **how)
        self.addCleanup(client.close)
        return client

    def provider(self, client):
        uuid = client.create_provider(None, f"provider {base.new_uuid()}").uuid
        client.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        return uuid


class OldClientTest(MixedTest):

    def test_it_sets_no_capacity_below_what_is_used(self):
        """Unless it says so, or is of contract 1.3."""
        self.serve()
        new = self.client()
        uuid = self.provider(new)
        new.claim_allocations(None, base.claim({uuid: {"VCPU": 8}}))
        for number, release in enumerate(("newton", "2026.2")):
            old, less = self.client(release), base.inventory("VCPU", 7 - number)
            for call, wanted in ((old.set_inventory, [less]), (old.update_inventory, less)):
                self.assertRaises(exception.CapacityConflict, call, None, uuid, wanted)
                self.assertRaises(exception.CapacityConflict, call, None, uuid, wanted,
                                  allow_below_use=False)
                self.assertRaises(exception.ServiceTooOld, call, None, uuid, wanted,
                                  allow_below_use=True)
            self.assertRaises(exception.CapacityConflict, new.update_inventory, None, uuid, less,
                              allow_below_use=False)
            new.update_inventory(None, uuid, less)

    def test_its_tracker_reports_no_less_than_is_used(self):
        self.serve()
        node = ComputeNode(uuid=base.new_uuid(), host="h", hypervisor_hostname="h", vcpus=8,
                           memory_mb=0, local_gb=0, cpu_allocation_ratio=1.0)

        def sync(client, **values):
            return client.sync_compute_node(None, node, {}, time.time(), **values).changed

        old, new = self.client("2026.2"), self.client()
        sync(old)
        new.claim_allocations(None, base.claim({node.uuid: {"VCPU": 8}}))
        node.vcpus = 7
        for values in ({}, {"allow_below_use": False}):
            self.assertRaises(exception.CapacityConflict, sync, old, **values)
        self.assertRaises(exception.ServiceTooOld, sync, old, allow_below_use=True)
        self.assertRaises(exception.CapacityConflict, sync, new, allow_below_use=False)
        self.assertEqual(["VCPU"], sync(new))

    def test_it_is_answered_at_its_versions(self):
        self.serve()
        old, new = self.client("newton"), self.client()
        uuid = self.provider(old)
        wanted = base.claim({uuid: {"VCPU": 1}})
        done = old.claim_allocations(None, wanted)
        self.assertEqual({uuid: 2}, done.generations)
        self.assertFalse(done.obj_attr_is_set("consumer_generation"))
        held = old.get_allocations(None, wanted.consumer_uuid)
        self.assertFalse(held.obj_attr_is_set("consumer"))
        self.assertEqual({uuid: {"VCPU": 1}}, held.by_provider())
        self.assertEqual(1, new.get_allocations(None, wanted.consumer_uuid).consumer.generation)

    def test_a_pinned_client_refuses_what_its_release_lacks(self):
        self.serve()
        old, uuid = self.client("newton"), base.new_uuid()
        for call in (
                lambda: old.claim_batch(None, []),
                lambda: old.resource_class_create(None, "CUSTOM_GOLD"),
                lambda: old.release_allocations(None, uuid, consumer_generation=1),
                lambda: old.claim_allocations(None, base.claim(
                    {uuid: {"VCPU": 1}}, consumer_generation=1)),
                lambda: old.claim_allocations(None, base.claim(
                    {uuid: {"VCPU": 1}}, consumer_generation=1), cast=True),
                lambda: old.get_by_request(None, ResourceRequest(
                    resources={"VCPU": 1}, limit=1))):
            error = self.assertRaises(exception.ServiceTooOld, call)
            self.assertIn("newton", error.text)

    def test_the_oldest_release_that_still_calls_is_reported(self):
        running = self.serve(conductor__report_interval=1)
        self.client("newton").create_provider(None, "provider")

        def row():
            found, = running.api.get_versions(None).objects
            return found

        base.wait_until(lambda: row().oldest_caller == "newton")
        self.assertEqual("auto", row().pin)

    def test_the_versions_of_single_objects(self):
        self.serve()
        client = self.client(object_versions={"ClaimResult": "1.0", "Claim": "1.0"})
        done = client.claim_allocations(None, base.claim({self.provider(client): {"VCPU": 1}}))
        self.assertFalse(done.obj_attr_is_set("consumer_generation"))

    def test_it_knows_no_custom_classes(self):
        self.serve()
        old = self.client("newton")
        for call in (
                lambda: old.claim_allocations(None, base.claim(
                    {base.new_uuid(): {"CUSTOM_GOLD": 1}})),
                lambda: old.set_inventory(None, base.new_uuid(), [
                    base.inventory("CUSTOM_GOLD", 1)]),
                lambda: old.resource_class_get(None, "CUSTOM_GOLD"),
                lambda: old.get_by_request(None, ResourceRequest(
                    resources={"CUSTOM_GOLD": 1}))):
            self.assertIn("custom", self.assertRaises(exception.ServiceTooOld, call).text)

    def test_a_client_without_a_manifest_is_answered_at_the_versions_it_sends(self):
        """A client reads the versions that it sends."""
        self.serve()
        client = self.client()
        uuid = self.provider(client)
        context = RequestContext(deadline=time.time() + 20)
        context.release = releases.RELEASES[0]
        context.receiver = context.release.versions
        done = client.sender.call(context, "claim_allocations", {
            "claim": base.claim({uuid: {"VCPU": 1}}), "request_id": "one"}, 20)
        self.assertFalse(done.obj_attr_is_set("consumer_generation"))

    def test_a_request_made_in_two_releases_is_the_same_request(self):
        self.serve()
        new, old = self.client("2026.2"), self.client("newton")
        wanted = base.claim({self.provider(new): {"VCPU": 1}}, consumer_generation=None)
        new.claim_allocations(None, wanted, request_id="the-same")
        self.assertTrue(old.claim_allocations(None, wanted, request_id="the-same").replayed)

    def test_manifests_that_are_not_valid_are_refused(self):
        self.serve()
        for manifest in ("nonsense", 5, [5], {"Claim": "x"}, {"Claim": 1}, "1" * 99,
                         {str(number): "1.0" for number in range(300)}):
            client = self.client(object_versions=manifest)
            self.assertRaises(exception.InvalidInput, client.list_providers, None)


class OldConductorTest(MixedTest):

    def test_a_client_keeps_to_it_by_itself(self):
        self.serve("newton")
        client = self.client()
        uuid = self.provider(client)
        done = client.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}))
        self.assertEqual({uuid: 2}, done.generations)
        self.assertIs(releases.RELEASES[0], client.pin.last)
        error = self.assertRaises(exception.ServiceTooOld, client.claim_batch, None, [])
        self.assertIn("1.2", error.text)

    def test_it_sets_no_capacity_below_what_is_used(self):
        self.serve("2026.2")
        client = self.client()
        uuid = self.provider(client)
        client.claim_allocations(None, base.claim({uuid: {"VCPU": 8}}))
        less = base.inventory("VCPU", 7)
        for how in ({}, {"allow_below_use": False}):
            self.assertRaises(
                exception.CapacityConflict, client.update_inventory, None, uuid, less, **how)
        self.assertRaises(exception.ServiceTooOld, client.update_inventory, None, uuid, less,
                          allow_below_use=True)

    def test_it_takes_nothing_newer(self):
        self.serve("newton")
        client = self.client("2026.2")
        self.assertRaises(exception.UnsupportedCall, client.claim_batch, None, [])
        self.assertRaises(
            (exception.IncompatibleObjectVersion, exception.UnsupportedCall),
            client.claim_allocations, None, base.claim({base.new_uuid(): {"VCPU": 1}}))
        # Also if a message declares the older version of the contract.
        context = RequestContext(deadline=time.time() + 20)
        context.release = releases.RELEASES[0]
        self.assertRaises(
            exception.UnsupportedCall, client.sender.call, context, "claim_batch", {}, 20)
        self.assertRaises(
            exception.IncompatibleObjectVersion, client.sender.call, context,
            "claim_allocations", {"claim": base.claim({base.new_uuid(): {"VCPU": 1}}),
                                  "request_id": "one"}, 20)

    def test_a_client_notices_that_a_service_was_replaced_by_an_older_one(self):
        """It took all services for new; after an error it lists them again and continues."""
        running = self.serve("ocata")
        client = self.mistaken_client()
        uuid = self.provider(client)
        done = client.claim_allocations(
            None, base.claim({uuid: {"VCPU": 1}}, consumer_generation=0))
        self.assertEqual(1, done.consumer_generation)
        self.assertIs(releases.RELEASES[1], client.pin.last)
        self.assertEqual("ocata", running.conductor.manager.release.name)

    def test_a_pinned_service_stores_what_that_release_can_read(self):
        running = self.serve("newton")
        client = self.client()
        client.claim_allocations(
            None, base.claim({self.provider(client): {"VCPU": 1}}), request_id="one")
        with running.database.reader() as tx:
            stored = json.loads(requests.find(tx, ["one"])["one"].outcome)["result"]
            payloads = [json.loads(text) for text in tx.execute(sa.select(
                models.events.c.payload).where(
                    models.events.c.event_type == "allocation.create")).scalars()]
        self.assertEqual(1, len(payloads))
        for each in (stored, *payloads):
            self.assertEqual("1.0", each["placement_object.version"])

    def test_a_later_service_answers_again_what_was_stored_under_a_pin(self):
        """The first answer was lost: the conductor ended after it had settled the request."""
        before = self.serve("newton")
        client = self.client("newton")
        wanted = base.claim({self.provider(client): {"VCPU": 1}})
        requests_made = {"claim": ("claim_allocations", wanted),
                         "release": ("release_allocations", wanted.consumer_uuid)}

        def make(client, name):
            method, *arguments = requests_made[name]
            return getattr(client, method)(None, *arguments, request_id=name)

        first = {name: make(client, name) for name in requests_made}
        self.serve("auto", database_url=before.conf.database.connection)
        for name, done in first.items():
            again = make(self.client("newton"), name)
            self.assertEqual((True, False, done.generations),
                             (again.replayed, done.replayed, again.generations))

    def test_a_command_that_is_newer_than_its_pin_is_not_lost(self):
        running = self.serve("newton")
        client = self.client("2026.2")
        uuid = self.provider(running.api)
        for generation, outcome in ((0, None), (7, exception.ConsumerConflict)):
            request_id = client.claim_allocations(None, base.claim(
                {uuid: {"VCPU": 1}}, consumer_generation=generation), cast=True)
            result = self.settled(running.api, request_id)
            if outcome is None:
                self.assertEqual({uuid: 2}, result.result().generations)
            else:
                self.assertRaises(outcome, result.result)

    def test_a_cast_is_understood_too(self):
        self.serve("ocata")
        client = self.mistaken_client()
        uuid = self.provider(client)
        wanted = base.claim({uuid: {"VCPU": 1}})
        request_id = client.claim_allocations(None, wanted, cast=True)
        self.settled(client, request_id)
        self.assertEqual({uuid: {"VCPU": 1}},
                         client.get_allocations(None, wanted.consumer_uuid).by_provider())

    def test_an_attempt_with_an_unknown_outcome_is_not_reported_as_refused(self):
        self.serve()
        client = self.client("newton")
        outcomes = [exception.ServiceUnavailable(reason="the answer was lost"),
                    exception.UnsupportedCall(reason="not known here")]

        def call(*_call):
            raise outcomes.pop(0)

        self.patch(client.sender, "call", call)
        self.assertRaises(
            exception.DeadlineExceeded, client.release_allocations, None, base.new_uuid())
        self.assertEqual([], outcomes)

    def test_a_pin_is_read_again_on_reload(self):
        self.serve()
        client = self.client(None)
        client.reload()
        self.assertIsInstance(client.pin, pins.AutoPin)
        client.conf.set_override("placement", "ocata", group="upgrade_levels")
        client.reload()
        self.assertEqual("ocata", client.pin.release(1).name)

    def test_while_the_services_cannot_be_listed_casts_do_not_all_wait(self):
        self.serve()
        client, queries, _ = self.client_without_answers()
        for _ in range(5):
            client.release_allocations(None, base.new_uuid(), cast=True)
        self.assertEqual(["get_versions"], queries)

    def test_a_pinned_service_reports_its_contract_version(self):
        running = self.serve("ocata")
        (row,) = self.client().get_versions(None).objects
        self.assertEqual("1.1", row.rpc_version)
        self.assertFalse(row.obj_attr_is_set("pin"))
        self.assertEqual("1.1", running.api.ping(None)["rpc_version"])

    def test_a_cast_while_no_service_answers_is_made_in_the_oldest_release_that_has_it(self):
        self.serve()
        client, _, cast = self.client_without_answers()
        plain = base.claim({base.new_uuid(): {"VCPU": 1}})
        guarded = base.claim({base.new_uuid(): {"VCPU": 1}}, consumer_generation=0)
        for wanted in (plain, guarded):
            client.claim_allocations(None, wanted, cast=True)
        self.assertEqual(["newton", "ocata"], cast)

    def client_without_answers(self):
        """Return a client whose calls are lost, and whose casts are not sent.

        :returns: the client, a list that grows by the name of each call, and one that grows by the
            release of each cast
        """
        client, calls, casts = self.client(), [], []

        def call(_context, method, *_arguments):
            calls.append(method)
            raise exception.ServiceUnavailable(reason="no answer")

        self.patch(client.sender, "call", call)
        self.patch(client.command_publisher, "cast",
                   lambda context, *_arguments: casts.append(context.release.name))
        return client, calls, casts

    def mistaken_client(self):
        """Return a client that takes all services for new, as it does after they were replaced."""
        client = self.client()
        call = client.sender.call

        def mistake(context, method, *arguments):
            answer = call(context, method, *arguments)
            if method == "get_versions":
                for service in answer.objects:
                    service.rpc_version = releases.CURRENT.contract
                client.sender.call = call
            return answer

        self.patch(client.sender, "call", mistake)
        return client

    @staticmethod
    def settled(client, request_id):
        """Wait for the stored outcome of a cast and return it."""
        def found():
            try:
                return client.get_request_result(None, request_id)
            except exception.RequestNotFound:
                return None

        return base.wait_until(found)


class StartupCheckTest(base.TestCase):
    """Services and schemas alongside which a conductor starts, or does not."""

    time_limit = 240

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            transport_url="inprocess://tests/"))

    def add_service(self, version, rpc_version, host="old.example.org"):
        identity = {"binary": "placement-rpc-conductor", "host": host, "worker": 0}
        self.store.database.write(lambda tx: services.beat(
            tx, identity, {"version": version, "rpc_version": rpc_version}, True))

    def start(self):
        conductor = Conductor(self.store.conf)
        self.addCleanup(conductor.stop)
        conductor.start()

    def test_one_that_is_older_than_every_release(self):
        self.add_service("0.0.9", "0.9")
        self.add_service("0.0.8", "0.8", "older.example.org")
        error = self.assertRaises(exception.ServiceTooOld, self.start)
        for word in ("old.example.org", "older.example.org", "0.0.9", "0.8"):
            self.assertIn(word, error.text)

    def test_the_release_before(self):
        self.add_service("0.1.0", "1.0")
        self.start()

    def test_the_release_before_once_the_schema_was_contracted(self):
        migration.contract(self.store.database)
        self.add_service("0.1.0", "1.0")
        self.assertRaises(exception.ServiceTooOld, self.start)

    def test_a_schema_that_a_later_release_expanded(self):
        with self.store.database.writer() as tx:
            tx.exec_driver_sql("UPDATE alembic_version SET version_num = '0099'")
        self.start()
        self.assertFalse(schema_version.is_contracted(self.store.database))

    def test_the_program_says_so_in_a_line_and_ends(self):
        self.add_service("0.0.9", "0.9")
        path = self.useFixture(fixtures.TempDir()).join("placement-rpc.conf")
        for text, words in (("", "old.example.org"),
                            ("[upgrade_levels]\nplacement = mitaka\n", "mitaka"),
                            ("[notifications]\npayload_pin = mitaka\n", "mitaka")):
            if text:
                self.store.database.write(lambda tx: services.remove(tx, {
                    "binary": "placement-rpc-conductor", "host": "old.example.org",
                    "worker": 0}))
            pathlib.Path(path).write_text(
                f"[database]\nconnection = {self.store.conf.database.connection}\n"
                f"[DEFAULT]\ntransport_url = inprocess://x/\n{text}")
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.conductor",
                 "--config-file", path], check=False, capture_output=True, text=True, timeout=100)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_writing_what_is_gone(self):
        migration.contract(self.store.database)
        self.store.conf.set_override("inventory_migration", "never", group="compute_nodes")
        self.assertRaises(exception.InvalidInput, self.start)
