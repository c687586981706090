# SPDX-License-Identifier: Apache-2.0
"""The metrics that a running service exports to Prometheus."""

import datetime
import json
import pathlib
import re
import socket
import urllib.error
import urllib.request
from unittest import mock

import fixtures
import sqlalchemy as sa
from prometheus_client import parser

from placement_rpc import exception
from placement_rpc.candidates import taking
from placement_rpc.conf import service as configuration
from placement_rpc.conf.headroom import NamedRequestType
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events
from placement_rpc.notifications.event import Event
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.service.fleet_gauges import FleetGauges
from placement_rpc.service.http import HTTPService
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.facade import Facade
from tests import base, http


def scrape(url):
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    return {(sample.name, *sorted(sample.labels.values())): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class MetricsTest(base.TestCase):

    def work(self, running):
        """Something of everything; returns the provider's uuid."""
        api = running.api
        uuid = api.create_provider(None, "provider").uuid
        api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        api.claim_allocations(None, base.claim({uuid: {"VCPU": 2}}))
        self.assertRaises(exception.CapacityExceeded, api.claim_allocations, None,
                          base.claim({uuid: {"VCPU": 8}}))
        api.get_by_request(None, ResourceRequest(resources={"VCPU": 1}))
        return uuid

    def test_a_conductor_shows_what_it_does(self):
        port = free_port()
        running = self.useFixture(placement_fixtures.RunningService(metrics__port=port))
        uuid = self.work(running)
        found = scrape(f"http://127.0.0.1:{port}")
        calls = "placement_rpc_calls_total"
        self.assertEqual((1, 1, 1), (
            found[calls, "claim_allocations", "done"], found[calls, "done", "get_by_request"],
            found[calls, "claim_allocations", exception.CapacityExceeded.code]))
        self.assertEqual((1, 1), (found["placement_rpc_index_providers",],
                                  found["placement_rpc_index_inventories",]))
        self.assertEqual(2, found["placement_rpc_settled_together_count",])
        self.assertEqual([1, 0, 0], [
            value for name in ("services_up", "services_down", "dead_letters_total")
            for key, value in found.items() if key[0] == f"placement_rpc_{name}"])
        for name in ("placement_rpc_outbox_unsent", "placement_rpc_index_age_seconds",
                     "placement_rpc_database_connections",
                     "placement_rpc_outbox_oldest_unsent_seconds"):
            self.assertIn((name,), found)
        # No uuids are exported.
        self.assertNotIn(uuid, str(found))

    def test_a_process_without_heartbeat_is_counted(self):
        port = free_port()
        running = self.useFixture(placement_fixtures.RunningService(metrics__port=port))
        long_ago = bulk.now() - datetime.timedelta(
            seconds=running.conf.conductor.service_down_time + 5)
        identity = {"binary": "placement-rpc-conductor", "host": "gone", "worker": 3}
        running.database.write(lambda tx: tx.execute(models.services.insert().values(
            **identity, version="1", rpc_version="1.3", started_at=long_ago,
            last_seen_at=long_ago)), "test")
        found = scrape(f"http://127.0.0.1:{port}")
        down = {key[1]: value for key, value in found.items()
                if key[0] == "placement_rpc_services_down"}
        self.assertEqual(1, down["placement-rpc-conductor"])
        self.assertEqual(1, sum(down.values()))

    def test_a_port_that_is_taken_does_not_keep_it_from_answering(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            running = self.useFixture(placement_fixtures.RunningService(
                metrics__port=taken.getsockname()[1]))
            running.api.ping(None)
        self.assertIn("Cannot serve metrics", self.log.output)

    def test_the_facade_shows_requests_too(self):
        facade = self.useFixture(Facade())
        for path, token in (("/resource_providers", "admin"), ("/resource_providers", None),
                            ("/not_there", "admin")):
            request = urllib.request.Request(
                facade.url + path, headers={"x-auth-token": token} if token else {})
            try:
                urllib.request.urlopen(request).close()
            except urllib.error.HTTPError as error:
                error.close()
        found = scrape(facade.url)
        name = "placement_rpc_http_requests_total"
        for labels in (("/resource_providers", "200"), ("none", "401"),
                       ("none", "404")):
            self.assertEqual(1, found[(name, *sorted((*labels, "GET")))], labels)
        self.assertIn(("placement_rpc_index_providers",), found)

    def test_it_can_be_turned_off(self):
        facade = self.useFixture(Facade(metrics__http=False))
        error = self.assertRaises(urllib.error.HTTPError, scrape, facade.url)
        error.close()

    def test_a_slow_call_says_where_its_time_went(self):
        running = self.useFixture(placement_fixtures.RunningService(metrics__slow_call=0.000001))
        self.work(running)
        lines = [line for line in self.log.output.splitlines() if "Slow call: claim" in line]
        self.assertEqual(2, len(lines))
        self.assertRegex(lines[0], r"took \d+\.\d+ s \(.*database \d+\.\d+.*request 'req-")


class FleetTest(base.TestCase):
    """Capacity, use and headroom of the fleet."""

    requests = ("m1.large=VCPU:2,MEMORY_MB:1000", "gpu=VGPU:1")

    def setUp(self):
        super().setUp()
        self.zone = base.new_uuid()

    def fill(self, api):
        """Make a node with a device in a zone, and another node; return their uuids."""
        uuids = [api.create_provider(None, f"node{number}").uuid for number in range(2)]
        uuids.append(api.create_provider(None, "gpu", parent_provider_uuid=uuids[0]).uuid)
        for uuid in uuids[:2]:
            api.set_inventory(None, uuid, [
                base.inventory("VCPU", {"total": 8, "reserved": 1, "allocation_ratio": 2.0}),
                base.inventory("MEMORY_MB", {"total": 4000, "reserved": 500})])
        api.set_inventory(None, uuids[2], [base.inventory("VGPU", 4)])
        api.set_aggregates(None, uuids[0], [self.zone])
        api.claim_allocations(None, base.claim({
            uuids[0]: {"VCPU": 3, "MEMORY_MB": 600}, uuids[2]: {"VGPU": 1}}))
        return uuids

    def test_sums_and_headroom(self):
        port = free_port()
        running = self.useFixture(placement_fixtures.RunningService(
            metrics__port=port, headroom__request=list(self.requests)))
        uuids = self.fill(running.api)
        running.manager.candidates.index.refresh()
        url = f"http://127.0.0.1:{port}"
        found = scrape(url)

        def gauges(name):
            return {key[1:]: value for key, value in found.items()
                    if key[0] == f"placement_rpc_{name}"}

        self.assertEqual({("VCPU",): 28, ("MEMORY_MB",): 7000, ("VGPU",): 4}, gauges("capacity"))
        self.assertEqual({("VCPU",): 2, ("MEMORY_MB",): 1000, ("VGPU",): 0}, gauges("reserved"))
        self.assertEqual({("VCPU",): 3, ("MEMORY_MB",): 600, ("VGPU",): 1}, gauges("used"))
        self.assertEqual({("m1.large",): 5, ("gpu",): 3}, gauges("headroom"))
        zone = self.zone

        def in_zone(**values):
            return {tuple(sorted((zone, name.replace("_large", ".large")))): value
                    for name, value in values.items()}

        # The device is in the zone by the root of its tree.
        self.assertEqual(in_zone(VCPU=14, MEMORY_MB=3500, VGPU=4), gauges("aggregate_capacity"))
        self.assertEqual(in_zone(VCPU=1, MEMORY_MB=500, VGPU=0), gauges("aggregate_reserved"))
        self.assertEqual(in_zone(VCPU=3, MEMORY_MB=600, VGPU=1), gauges("aggregate_used"))
        self.assertEqual(in_zone(m1_large=2, gpu=3), gauges("aggregate_headroom"))
        # What changes is in the next scrape.
        running.api.claim_allocations(None, base.claim({uuids[0]: {"VCPU": 10}}))
        running.manager.candidates.index.refresh()
        found = scrape(url)
        self.assertEqual({("m1.large",): 3, ("gpu",): 3}, gauges("headroom"))
        running.api.set_aggregates(None, uuids[2], [base.new_uuid(), self.zone])
        running.manager.candidates.index.refresh()
        found = scrape(url)
        self.assertEqual({4}, {value for key, value in gauges("aggregate_capacity").items()
                               if "VGPU" in key})

    def test_the_facade_shows_them_only_if_it_is_told_to(self):
        for shows in (False, True):
            facade = self.useFixture(Facade(metrics__http_fleet=shows))
            self.fill(facade.running.api)
            facade.running.manager.candidates.index.refresh()
            found = {key[0] for key in scrape(facade.url)}
            for name in ("capacity", "aggregate_capacity", "used", "reserved"):
                self.assertEqual(shows, f"placement_rpc_{name}" in found)

    def test_a_process_of_a_wsgi_server_shows_those_of_its_own_index(self):
        running = self.useFixture(placement_fixtures.RunningService())
        self.fill(running.api)
        service = HTTPService(configuration.new_config(
            config_files=[], database__connection=running.conf.database.connection,
            api__transport="local", api__auth_strategy="noauth2", metrics__http_fleet=True,
            headroom__request=list(self.requests)))
        self.addCleanup(service.close)
        # It waits for the index.
        answer = http.request(
            service.facade.application, "GET", "/allocation_candidates", "resources=VGPU:1",
            {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"})
        self.assertEqual(200, answer.status_code, answer.text)
        shown = http.request(service.facade.application, "GET", "/metrics").text
        self.assertIn('placement_rpc_capacity{resource_class="VGPU"} 4.0', shown)
        self.assertIn('placement_rpc_headroom{request="gpu"} 3.0', shown)

    def test_requests_that_cannot_be_read(self):
        for text in ("m1.large", "=VCPU:1", "m1.large=", "m1.large=VCPU", "m1.large=VCPU:0",
                     "m1.large=VCPU:1,VCPU:2", "m1.large=VCPU:x", "a b=VCPU:1",
                     "m1.large=VCPU:9999999999"):
            self.assertRaises(ValueError, NamedRequestType(), text)
        self.assertEqual("m1.large=VCPU:2,MEMORY_MB:4096", str(
            NamedRequestType()(" m1.large=VCPU:2, MEMORY_MB:4096 ")))

    def test_a_name_that_is_given_twice(self):
        error = self.assertRaises(
            exception.InvalidInput, FleetGauges, None,
            [NamedRequestType()(text) for text in ("a=VCPU:1", "b=VCPU:1", "a=VCPU:2")])
        self.assertIn("a is named twice", error.text)

    def test_a_class_that_does_not_exist_yet(self):
        port = free_port()
        self.useFixture(placement_fixtures.RunningService(
            metrics__port=port, headroom__request=["a=CUSTOM_GOLD:1", "b=VCPU:1"]))
        found = scrape(f"http://127.0.0.1:{port}")
        self.assertEqual([("placement_rpc_headroom", "b")], [
            key for key in found if key[0] == "placement_rpc_headroom"])
        scrape(f"http://127.0.0.1:{port}")
        self.assertEqual(1, self.log.output.count("The headroom of a is not exported"))

    def test_the_dashboard_knows_them(self):
        port = free_port()
        running = self.useFixture(placement_fixtures.RunningService(
            metrics__port=port, headroom__request=list(self.requests)))
        self.fill(running.api)
        running.manager.candidates.index.refresh()
        exported = {key[0] for key in scrape(f"http://127.0.0.1:{port}")}
        text = (pathlib.Path(__file__).parents[2] / "etc" / "integration" / "grafana"
                / "fleet.json").read_text()
        json.loads(text)
        used = set(re.findall(r"placement_rpc_[a-z_]+", text))
        self.assertEqual(set(), used - exported)
        for name in ("headroom", "aggregate_headroom", "capacity", "used", "reserved"):
            self.assertIn(f"placement_rpc_{name}", used)

    def test_a_request_that_is_too_complex_leaves_the_other_metrics(self):
        port = free_port()
        running = self.useFixture(placement_fixtures.RunningService(
            metrics__port=port, headroom__request=["a=VCPU:1"]))
        self.fill(running.api)
        running.manager.candidates.index.refresh()
        with mock.patch.object(taking, "take", side_effect=exception.RequestTooComplex(
                reason="it concerns too many inventories")):
            found = scrape(f"http://127.0.0.1:{port}")
        self.assertEqual(28, found["placement_rpc_capacity", "VCPU"])
        self.assertEqual([], [key for key in found if key[0] == "placement_rpc_headroom"])
        self.assertIn("The headroom of a is not exported", self.log.output)


class DivergedTest(base.TestCase):

    def test_a_store_that_lost_events_goes_on_answering_requests(self):
        """All facades of the store would be unhealthy at once, though only events wait."""
        running = self.useFixture(placement_fixtures.RunningService(
            api__auth_strategy="noauth2", metrics__http=True))
        facade = http.Facade(running.conf, running.api, metrics=running.manager.metrics,
                             check=running.conductor.check_database)
        self.addCleanup(facade.close)

        def get(path):
            return http.request(facade.application, "GET", path)

        def diverged(value):
            return f"placement_rpc_outbox_diverged {value}" in get("/metrics").text

        running.api.create_provider(None, "lost")
        base.wait_published(running.database)
        with running.database.reader() as tx:
            published = [Event.of_row(row) for row in events.after(tx, 0, 10)]
        self.assertTrue(diverged("0.0"))
        # As a stream is, the events of which are there after the store was restored.
        self.useFixture(fixtures.MonkeyPatch(
            "placement_rpc.notifications.publishers.MemoryPublisher.is_kept", True))
        running.conductor.publisher.last_events = lambda after: published
        with running.database.writer() as tx:
            for table in (models.events, models.relay_state):
                tx.execute(sa.delete(table))
        base.wait_until(lambda: diverged("1.0"))
        self.assertEqual(200, get("/healthcheck").status_code)
        running.api.create_provider(None, "made meanwhile")
        self.assertTrue(diverged("1.0"))
        self.assertNotIn("The relay failed", self.log.output)
