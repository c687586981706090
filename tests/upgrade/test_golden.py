# SPDX-License-Identifier: Apache-2.0
"""The messages of clients and listeners of each release, replayed in every later release."""

import datetime
import json

import testscenarios

from placement_rpc import manager
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.usage import UsageAccount
from placement_rpc.rpc.dispatcher import Dispatcher
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import releases
from tests import base
from tests.upgrade import golden


class RecordedTest(base.TestCase):

    def test_every_published_release_is(self):
        published = list(releases.RELEASES[:-1])
        self.assertEqual(published, golden.recorded()[:len(published)])


class GoldenTest(testscenarios.WithScenarios, base.TestCase):

    maxDiff = None
    scenarios = [(each.name, {"release": each}) for each in golden.recorded()]

    def test_every_message_is_answered_as_it_was(self):
        store = self.useFixture(placement_fixtures.Store())
        self.useFixture(golden.in_order())
        dispatcher = Dispatcher(manager.Manager(store.conf, store.database))
        for number, call in enumerate(golden.read(self.release, "calls")):
            answer = golden.masked(golden.ask(dispatcher, call["message"], call["context"]))
            self.assertEqual(golden.expected(golden.masked(call["answer"]), answer), answer,
                             f"{number}: {call['message']['method']}")

    def test_every_call_of_the_release_was_recorded(self):
        recorded = {call["message"]["method"] for call in golden.read(self.release, "calls")}
        self.assertEqual(
            {method for method, call in golden.contract.CALLS.items()
             if releases.number(call.since) <= self.release.number}, recorded)

    def test_no_answer_says_more_than_the_release_reads(self):
        for call in golden.read(self.release, "calls"):
            for name, version in base.objects_in(call["answer"]):
                self.assertIn(name, self.release.objects)
                self.assertLessEqual(
                    releases.number(version), releases.number(self.release.objects[name]))

    def test_every_event_can_be_read(self):
        messages = golden.read(self.release, "events")
        found = [Event.of_message(json.dumps(message)) for message in messages]
        self.assertTrue(all(event.known for event in found))
        self.assertEqual(list(range(1, len(found) + 1)), [event.position for event in found])
        begin = datetime.datetime.fromisoformat(found[0].occurred_at)
        account = UsageAccount(begin, begin + datetime.timedelta(days=1))
        for event in found:
            account.apply(event)
        self.assertTrue(account.complete)
        used = {(golden.NODE, "VCPU"), (golden.NODE, "MEMORY_MB"), (golden.SHARE, "DISK_GB")}
        if self.release.number >= (1, 3):
            used |= {(golden.NODE, "VGPU"), (golden.CHILD, "VGPU")}
        self.assertEqual(used, {(line.provider_uuid, line.resource_class)
                                for line in account.lines()})

    def test_a_listener_of_the_release_is_still_sent_the_same(self):
        _, messages = golden.play(self.release)
        self.assertEqual(golden.masked(golden.read(self.release, "events")),
                         golden.masked(json.loads(json.dumps(messages))))

    def test_a_client_of_the_release_still_says_the_same(self):
        calls, _ = golden.play(self.release)
        recorded = golden.read(self.release, "calls")
        self.assertEqual([golden.masked(call["message"]) for call in recorded],
                         [golden.masked(call["message"]) for call in calls])
