# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a conductor and an HTTP facade, with the files of ``etc/``."""

import contextlib
import urllib.parse

import requests

from placement_rpc import exception
from placement_rpc.api import PlacementAPI
from placement_rpc.http.facade import Facade
from placement_rpc.http.server import Server
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import server_process
from tests import base, servers
from tests.integration import processes, prometheus
from tests.integration.deployment import DeploymentCase

# Of calls and requests that succeed, and of claims that find no room. The other recorded series
# need failures: they have no value in a service without any.
_RECORDED = {
    "job_method:placement_rpc_calls:rate5m", "job_method:placement_rpc_call_seconds:p99_5m",
    "job_route:placement_rpc_http_request_seconds:p99_5m",
    "job:placement_rpc_claims_refused:rate5m",
    "job:placement_rpc_outbox_oldest_unsent_seconds:max"}


class PrometheusTest(DeploymentCase):

    def setUp(self):
        super().setUp()
        broker = self.useFixture(servers.VirtualHost())
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transport_url=broker.url,
            api__auth_strategy="noauth2", api__bind_port=0))
        self.client = PlacementAPI(conf=self.store.conf)
        self.addCleanup(self.client.close)
        facade = Server(Facade(self.store.conf, self.client, is_remote=True))
        self.addCleanup(facade.stop)
        facade.start()
        self.facade = facade.url
        self.conductors = [self.conductor(broker.url, number) for number in range(2)]
        self.client.ping(None, timeout=60)
        self.targets = {
            "127.0.0.1:9102": self.conductors[0].address,
            "127.0.0.1:9103": self.conductors[1].address,
            "127.0.0.1:8778": urllib.parse.urlsplit(self.facade).netloc}
        self.prometheus = self.useFixture(prometheus.Prometheus(self.targets))

    def conductor(self, transport_url, number):
        """Start a conductor of one worker; ``address`` is that of its metrics.

        Two conductors take the place of two workers, whose ports would have to follow each other.
        """
        port = server_process.reserve_port(self)
        conductor = self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": transport_url},
            "database": {"connection": self.store.conf.database.connection},
            "conductor": {"host": f"host{number}", "workers": 1, "threads": 4,
                          "report_interval": 1},
            "metrics": {"port": port}}))
        conductor.address = f"127.0.0.1:{port}"
        return conductor

    def use(self, provider):
        """Make a claim that fits and one that does not, and a request over HTTP."""
        self.client.claim_allocations(None, base.claim({provider: {"VCPU": 1}}))
        with contextlib.suppress(exception.ClaimRefused):
            self.client.claim_allocations(None, base.claim({provider: {"VCPU": 100_000}}))
        requests.get(f"{self.facade}/resource_providers", timeout=60, headers={
            "x-auth-token": "admin"}).raise_for_status()

    def up(self):
        """Return a dict of the address of each target to whether it answers its scrapes."""
        return {labels["instance"]: value == 1 for labels, value in self.prometheus.query("up")}

    def recorded(self):
        """Return the names of the recorded series that have a value."""
        return {labels["__name__"]
                for labels, _ in self.prometheus.query('{__name__=~".+:placement_rpc_.+"}')}

    def evaluated(self):
        """Return the rules once each has been evaluated without an error; None before."""
        rules = self.prometheus.rules()
        return rules if all(rule["health"] == "ok" for rule in rules) else None

    def wait_for_values(self):
        """Use the service until Prometheus has recorded the rates and times of its calls."""
        provider = self.client.create_provider(None, "node").uuid
        self.client.set_inventory(None, provider, [base.inventory("VCPU", 10_000)])

        def has_values():
            self.use(provider)
            return self.recorded() >= _RECORDED and any(
                value > 0 for _, value in self.prometheus.query(
                    'job_method:placement_rpc_calls:rate5m{method="claim_allocations"}'))

        base.wait_until(has_values, message=lambda: str(self.recorded()))

    def test_it_scrapes_the_service_and_evaluates_the_rules(self):
        self.wait_for_values()
        self.assertEqual(dict.fromkeys(self.targets.values(), True), self.up())
        rules = base.wait_until(self.evaluated, message=lambda: str([
            rule["name"] for rule in self.prometheus.rules() if rule["health"] != "ok"]))
        self.assertEqual(
            (prometheus.FILES / "placement_rpc.rules.yml").read_text().count("expr:"), len(rules))
        self.assertEqual([], [rule for rule in rules if rule.get("lastError")])
        self.assertEqual([], [rule["name"] for rule in rules if rule.get("state") == "firing"])

    def test_it_sees_that_a_worker_was_killed(self):
        base.wait_until(lambda: self.up() == dict.fromkeys(self.targets.values(), True),
                        message=lambda: str(self.up()))
        self.conductors[0].kill()
        base.wait_until(lambda: self.up() == {
            **dict.fromkeys(self.targets.values(), True), self.conductors[0].address: False},
            message=lambda: str(self.up()))
        base.wait_until(lambda: self.conductors[0].address in [
            alert["labels"].get("instance")
            for alert in self.prometheus.get("alerts")["alerts"]
            if alert["labels"]["alertname"] == "PlacementRpcTargetDown"])
