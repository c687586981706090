# SPDX-License-Identifier: Apache-2.0
"""The table of ``placement-rpc usage-report``, of the events of a service in this process."""

import contextlib
import io
import json
import types
from unittest import mock

import fixtures
import yaml

from placement_rpc import exception
from placement_rpc.cmd import client_parser, local, provider_names, usage_report
from placement_rpc.notifications.event import Event
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.functional import candidate_fleet

_PROJECTS = ("f3d9c0a1b2e44d5f8a6b7c8d9e0f1a2b", "0a1b2c3d4e5f60718293a4b5c6d7e8f9")


class _Stream:
    """A stream of some events."""

    offset = None

    def __init__(self, events):
        self._events = events

    def tail(self):
        return len(self._events)

    def events(self, **_):
        return iter(self._events)


class _Nobody:
    """A client of a service that does not answer."""

    def get_event_positions(self, _context, timeout):
        raise exception.ReadTimedOut(
            method="get_event_positions", seconds=timeout, reason="nobody is there")


class UsageReportTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "80"))
        self.nodes = [self.provider(f"node {number}", VCPU=80, MEMORY_MB=4096)
                      for number in range(2)]
        for number in range(4):
            self.claim({self.nodes[number % 2]: {"VCPU": 2, "MEMORY_MB": 512}},
                       project_id=_PROJECTS[number // 2], user_id=f"user {number}")
        candidate_fleet.assign_positions(self.service.database, 100)

    def report(self, *arguments):
        options = client_parser.parser().parse_args(
            ["usage-report", "--from", "2026-01-01", *arguments])
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(0, local.report_usage(
                self.service.database, options, provider_names.ProviderNames(self.api)))
        return shown.getvalue()

    def test_it_sums_up_by_project_and_class_in_80_columns(self):
        shown = self.report("--format", "table")
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)
        rows = [[cell.strip() for cell in line.split("│")[1:-1]]
                for line in shown.splitlines() if line.startswith("│")]
        self.assertEqual(sorted(
            [project, name, held] for project, vcpus, memory in (
                *((each, "4", "1024") for each in _PROJECTS), ("all", "8", "2048"))
            for name, held in (("VCPU", vcpus), ("MEMORY_MB", memory))),
            sorted([project, name, held] for project, name, _hours, held in rows))
        for uuid in self.nodes:
            self.assertNotIn(uuid, shown)

    def test_details_have_names(self):
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "120"))
        shown = self.report("--format", "table", "--details")
        for words in ("node 0", "node 1", "user 0", "user 3"):
            self.assertIn(words, shown)
        self.assertNotIn(self.nodes[0], shown)

    def test_json_has_all_lines(self):
        lines = json.loads(self.report("--format", "json"))["lines"]
        self.assertEqual(8, len(lines))
        self.assertEqual(set(self.nodes), {each["provider_uuid"] for each in lines})

    def test_a_store_without_any_event_has_a_complete_report(self):
        options = client_parser.parser().parse_args(
            ["usage-report", "--from", "2026-01-01", "--format", "json"])
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(0, local.report_usage(
                self.useFixture(placement_fixtures.Store()).database, options))
        self.assertEqual((True, []), tuple(
            json.loads(shown.getvalue())[name] for name in ("complete", "lines")))

    def test_a_stream_without_any_event_proves_nothing(self):
        """The first events may wait to be published."""
        options = client_parser.parser().parse_args(["usage-report", "--from", "2026-01-01"])
        client = mock.Mock(get_event_positions=lambda *_, **_kw: types.SimpleNamespace(last=0))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(1, usage_report.from_stream(
                lambda *_: mock.Mock(tail=lambda: None), options, 0, client))
        self.assertIn("outbox status", said.getvalue())
        self.assertNotIn("stream_max_age", said.getvalue())

    def notes(self, client, read):
        """Return what a report of the first events of the stream says on standard error."""
        options = client_parser.parser().parse_args(
            ["usage-report", "--from", "2026-01-01", "--format", "json", "--allow-incomplete"])
        with contextlib.redirect_stdout(io.StringIO()), (
                contextlib.redirect_stderr(io.StringIO())) as said:
            usage_report.from_stream(
                lambda *_, **__: _Stream(read), options, 0, client)
        return said.getvalue()

    def test_changes_that_wait_are_noted_only_if_there_are_any(self):
        events = [Event(each["event_id"], each["event_type"], each["position"],
                        each["occurred_at"], each["payload"])
                  for each in self.api.list_events(None, after=0, limit=100).events]
        self.assertNotIn("published", self.notes(self.api, events))
        self.assertIn("2 later changes are not published yet", self.notes(self.api, events[:-2]))
        self.assertIn("does not answer", self.notes(_Nobody(), events))

    def test_a_period_without_usage(self):
        self.assertIn("Nothing was held", self.report("--format", "table", "--project", "none"))

    def test_yaml_is_the_same_as_json(self):
        found = [load(self.report("--to", "2026-02-01", "--allow-incomplete", "--format", style))
                 for style, load in (("yaml", yaml.safe_load), ("json", json.loads))]
        self.assertEqual(found[0], found[1])
