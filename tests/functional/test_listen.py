# SPDX-License-Identifier: Apache-2.0
"""What ``placement-rpc listen`` shows and says, of the events of a service in this process."""

import contextlib
import csv
import io
import json

import fixtures
import yaml

from placement_rpc.cmd import client_parser, listen, local, provider_names
from tests import base
from tests.functional import candidate_fleet


class Stream:
    """A stream of given events, in the place of RabbitMQ's.

    :param events: list of :class:`placement_rpc.notifications.event.Event`
    """

    def __init__(self, events):
        self._events = events
        self.starts, self.idle = [], None

    def __call__(self, start):
        self.starts.append(start)
        return self

    def tail(self):
        return len(self._events)

    def events(self, idle=None):
        self.idle = idle
        return iter(self._events)


class ListenTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "300"))
        self.node = self.provider("node 1", VCPU=8)
        self.claim({self.node: {"VCPU": 2}})
        candidate_fleet.assign_positions(self.service.database, 100)
        self.stream = Stream(list(local.stored_events(self.service.database)))

    def listen(self, *arguments, names=None):
        """Run the command on the events; return what it prints, and its messages."""
        options = client_parser.parser().parse_args(["listen", "--format", "table", *arguments])
        with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(
                io.StringIO()) as said:
            self.assertEqual(0, listen.run(self.stream, options, names))
        return shown.getvalue().splitlines(), said.getvalue()

    def test_it_begins_with_what_it_waits_for_and_how_to_end_it(self):
        for arguments, sentence in (
                ((), "Showing all events from now on; Ctrl-C ends it."),
                (("--event-type", "allocation.*", "--provider", self.node, "--from", "7",
                  "--count", "9", "--idle", "2.5"),
                 f"Showing events of type allocation.* of provider {self.node} from position 7 "
                 "on; 9 events or 2.5 s without an event or Ctrl-C end it.")):
            lines, said = self.listen(*arguments)
            self.assertEqual((sentence, ""), (lines[0], said))
        self.assertEqual((["next", 7], 2.5), (self.stream.starts, self.stream.idle))

    def test_names_are_beside_uuids(self):
        lines, _ = self.listen()
        for words in ("inventory.create", "allocation.create"):
            at = next(number for number, each in enumerate(lines) if words in each)
            self.assertIn(f"node 1 ({self.node})", lines[at + 1])

    def test_names_of_providers_that_are_older_than_the_first_event(self):
        names = provider_names.ProviderNames(self.api)
        lines, _ = self.listen("--event-type", "allocation.*", names=names)
        self.assertIn(f"node 1 ({self.node}) nothing -> VCPU:2", lines[-1])
        self.stream = Stream(list(local.stored_events(self.service.database))[-1:])
        self.assertIn(f"node 1 ({self.node}) ", self.listen(
            names=provider_names.ProviderNames(self.api))[0][-1])
        self.assertIn(f" {self.node} nothing", self.listen()[0][-1])
        self.assertIsNone(provider_names.ProviderNames(self.api).name(base.new_uuid()))

    def test_count_ends_it(self):
        lines, _ = self.listen("--count", "1")
        self.assertEqual(["resource_provider.create"], [
            line.split()[2] for line in lines[2::2]])

    def test_narrow_terminals_break_no_uuid_and_times_are_whole_seconds(self):
        for columns in (80, 40):
            self.useFixture(fixtures.EnvironmentVariable("COLUMNS", str(columns)))
            lines, _ = self.listen(names=provider_names.ProviderNames(self.api))
            self.assertLessEqual(max(map(len, lines[2:])), max(columns, 20 + 2 + 36 + 2))
            self.assertTrue(all(self.node in line for line in lines if self.node[:9] in line))
            self.assertIn(self.node, "".join(lines))
            for line in lines[2:]:
                if not line.startswith(" " * 20):
                    self.assertRegex(line, r"^ *\d+  \d\d:\d\d:\d\d  [a-z_.]+$")

    def test_a_type_that_no_event_has(self):
        lines, said = self.listen("--event-type", "alocation.*")
        self.assertEqual(1, len(lines))
        self.assertIn("no event type of this release matches 'alocation.*'; did you mean "
                      "allocation.*", said)
        _, said = self.listen("--event-type", "nothing like it")
        self.assertIn("allocation.create", said)
        self.assertLessEqual(max(map(len, said.splitlines()[1:])), 80)

    def test_other_formats_have_the_same_events(self):
        shown = {style: "\n".join(self.listen("--format", style)[0]) for style in (
            "json", "csv", "yaml")}
        events = [json.loads(line) for line in shown["json"].splitlines()]
        self.assertEqual(3, len(events))
        self.assertEqual(events, list(yaml.safe_load_all(shown["yaml"])))
        self.assertEqual(events, [
            {**row, "position": int(row["position"]), "payload": json.loads(row["payload"])}
            for row in csv.DictReader(io.StringIO(shown["csv"]))])
