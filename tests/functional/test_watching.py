# SPDX-License-Identifier: Apache-2.0
"""The dashboards and Prometheus rules of etc/integration name metrics that exist, and work."""

import collections
import json
import pathlib
import re
import subprocess
from unittest import mock

import fixtures
import yaml
from prometheus_client import parser

from placement_rpc.db.queries import bulk, events, services
from placement_rpc.service import collectors
from placement_rpc.service.fleet_gauges import FleetGauges
from placement_rpc.telemetry.metrics import Metrics
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

_ETC = pathlib.Path(__file__).parents[2] / "etc" / "integration"
_DOCS = pathlib.Path(__file__).parents[2] / "docs" / "source"
RULES = _ETC / "prometheus" / "placement_rpc.rules.yml"
_NAME = re.compile(r"(?<![\w:])placement_rpc_[a-z_]+")
_LABELS = re.compile(r"(placement_rpc_[a-z_]+)\{([^}]*)\}")

_Process = collections.namedtuple("_Process", "binary last_seen_at")


def exported():
    """Return a dict of the name of each sample that a service exports to its labels."""
    metrics = Metrics()
    metrics.answered("ping", "done", 0.1)
    metrics.refused("claims")
    metrics.requested("GET", "/usages", 200, 0.1)
    database, index = mock.MagicMock(), mock.MagicMock()
    database.connections.return_value = (1, 5)
    index.statistics.return_value = dict.fromkeys(
        ("providers", "inventories", "bytes", "position", "age_seconds", "made", "applied"), 1)
    index.peek.return_value.__enter__.return_value = None
    with mock.patch.object(events, "lag", return_value=(0, None)), mock.patch.object(
            services, "everyone", return_value=[_Process("conductor", bulk.now())]):
        metrics.watch(lambda: collectors.state(
            database, index, {"calls": mock.Mock(busy=0, places=1)}, mock.Mock(difference=None),
            60))
        metrics.watch(FleetGauges(index, ()), of_fleet=True)
        text = metrics.show(with_fleet=True).decode()
    found = collections.defaultdict(set)
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name].update(sample.labels)
    return found


def expressions(board):
    """Return the expressions of a dashboard, with those of its variables."""
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]] + [
        variable["query"] for variable in board["templating"]["list"]]


def _labelled(labels):
    labels = {"job": "placement-rpc-conductor", "instance": "a:9102", **labels}
    pairs = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{{{pairs}}}"


class WatchingTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.groups = yaml.safe_load(RULES.read_text())["groups"]
        self.rules = [rule for group in self.groups for rule in group["rules"]]
        self.boards = {path.name: json.loads(path.read_text())
                       for path in (_ETC / "grafana").glob("*.json")}

    def promtool(self, *arguments, text=""):
        done = subprocess.run(["promtool", *map(str, arguments)], text=True, check=False,
                              input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def test_every_metric_exists(self):
        known, fleet = exported(), {
            f"placement_rpc_{prefix}{name}" for prefix in ("", "aggregate_")
            for name in ("capacity", "reserved", "used", "headroom")}
        asked = [rule["expr"] for rule in self.rules] + [
            each for board in self.boards.values() for each in expressions(board)]
        used = {name for each in asked for name in _NAME.findall(each)}
        self.assertLess(20, len(used))
        self.assertEqual(set(), used - set(known) - fleet)
        for each in asked:
            for name, labels in _LABELS.findall(each):
                wanted = set(re.findall(r"(\w+)\s*(?:=|!)", re.sub(r'"[^"]*"', "", labels)))
                if name in known:
                    self.assertEqual(set(), wanted - known[name] - {"job", "instance"}, each)

    def test_every_recorded_series_that_is_used_is_recorded(self):
        recorded = {rule["record"] for rule in self.rules if "record" in rule}
        used = {name for rule in self.rules
                for name in re.findall(r"\w+:\w+(?::\w+)?", rule["expr"])}
        self.assertEqual(set(), used - recorded)

    def test_every_alert_says_what_to_do(self):
        text = (_DOCS / "watching.rst").read_text()
        for rule in self.rules:
            if "alert" in rule:
                self.assertIn(rule["labels"]["severity"], ("warning", "critical"))
                self.assertEqual({"summary", "description"}, set(rule["annotations"]))
                self.assertIn(f"``{rule['alert']}``", text)

    def test_the_panels_of_a_dashboard_do_not_overlap(self):
        self.assertEqual({"fleet.json", "service.json"}, set(self.boards))
        for board in self.boards.values():
            taken = [(column, row) for panel in board["panels"]
                     for at in (panel["gridPos"],) for column in range(at["x"], at["x"] + at["w"])
                     for row in range(at["y"], at["y"] + at["h"])]
            self.assertEqual(len(taken), len(set(taken)))
            self.assertGreater(24, max(column for column, _ in taken))
            numbers = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(numbers), len(set(numbers)))

    def test_prometheus_reads_the_rules(self):
        self.assertIn("rules found", self.promtool("check", "rules", RULES))
        self.promtool("check", "config", _ETC / "prometheus" / "prometheus.yml")

    def test_prometheus_evaluates_the_rules_as_they_are_meant(self):
        self.promtool("test", "rules", _ETC / "prometheus" / "placement_rpc.test.yml")

    def test_prometheus_evaluates_the_rules_on_what_a_service_exports(self):
        """Of a working service no alert fires, and one whose worker died has the one for it."""
        running = self.useFixture(placement_fixtures.RunningService())
        uuid = running.api.create_provider(None, "node").uuid
        running.api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        base.wait_published(running.database, 20)
        running.api.claim_allocations(None, base.claim({uuid: {"VCPU": 2}}))
        base.wait_published(running.database, 20)
        running.manager.candidates.index.refresh()
        text = running.manager.metrics.show(with_fleet=True).decode()
        self.evaluate(text, [])
        dead = re.sub(r"(?m)^(placement_rpc_services_down.*) 0.0$", r"\1 1.0", text)
        self.assertNotEqual(text, dead)
        self.evaluate(dead, ["PlacementRpcWorkerWithoutHeartbeat"])

    def evaluate(self, text, alerts):
        """Check which alerts fire if a service exports a text for half an hour."""
        series = [
            {"series": f"{sample.name}{_labelled(sample.labels)}",
             "values": f"{sample.value:.17g}x30"}
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples]
        tests = [{"interval": "1m", "input_series": series, "promql_expr_test": [
            {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "30m",
             "exp_samples": [{"labels": f'{{alertname="{each}"}}', "value": 1}
                             for each in alerts]},
            {"expr": "count(job_method:placement_rpc_calls:rate5m) > bool 2", "eval_time": "30m",
             "exp_samples": [{"labels": "{}", "value": 1}]}]}]
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "test.yml"
        path.write_text(yaml.safe_dump({
            "rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
        self.promtool("test", "rules", path)

    def test_prometheus_reads_the_metrics(self):
        metrics = Metrics()
        metrics.answered("ping", "done", 0.1)
        self.promtool("check", "metrics", text=metrics.show().decode())

    def test_prometheus_reads_the_expressions_of_the_dashboards(self):
        """They are checked as rules, with a value for each variable of the dashboard."""
        rules = [{"record": "of_a_panel", "expr": each.replace("$job", ".*").replace(
                     "$method", ".*").replace("$resource_class", ".*").replace("$request", ".*")}
                 for board in self.boards.values() for panel in board["panels"]
                 for target in panel["targets"] for each in [target["expr"]]]
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "panels.yml"
        path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
        self.promtool("check", "rules", "--lint=none", path)
