# SPDX-License-Identifier: Apache-2.0
"""The metrics that a running service exports to Prometheus."""

import socket
import urllib.error
import urllib.request

from prometheus_client import parser

from placement_rpc import exception
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.facade import Facade
from tests import base


def scrape(url):
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    return {(sample.name, *sorted(sample.labels.values())): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples}


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
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
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
        for name in ("placement_rpc_outbox_unsent", "placement_rpc_index_age_seconds",
                     "placement_rpc_database_connections",
                     "placement_rpc_outbox_oldest_unsent_seconds"):
            self.assertIn((name,), found)
        # No uuids are exported.
        self.assertNotIn(uuid, str(found))

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
