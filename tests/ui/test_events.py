# SPDX-License-Identifier: Apache-2.0
"""The pages about events: Live and Usage."""

import collections
import datetime
import json
import random

import requests

from placement_rpc import exception
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.usage import UsageAccount
from tests import base
from tests.ui import fleets
from tests.ui.browser import PageTest

# Applies events to the page's own account; returns its lines at a moment.
_ACCOUNT = """
const [events, begin, now, done] = arguments;
import("/ui/hours.js").then(({ UsageAccount }) => {
  const account = new UsageAccount(begin ?? -Infinity);
  for (const event of events) account.apply(event);
  done([account.complete, account.lines(now)]);
});
"""


class LiveTest(PageTest):

    def setUp(self):
        super().setUp()
        self.running = self.facade()
        self.hosts = fleets.small(self.running.api, 2)
        self.open(self.running.url, "live")
        self.wait_text("#connection", "Live")

    def claim(self, *arguments, **how):
        return fleets.claim(self.running.api, *arguments, **how)

    def test_events_appear_and_are_filtered(self):
        consumer = self.claim(self.hosts[0], VCPU=2)
        self.wait_text("#events", "allocation.create", "host0: VCPU 2")
        self.claim(self.hosts[0], consumer, VCPU=3)
        self.claim(self.hosts[1], project="red", VCPU=4)
        self.assertRaises(exception.CapacityExceeded, self.claim, self.hosts[1], VCPU=127)
        self.running.api.create_provider(None, "another")
        self.wait_text("#events", "VCPU 2 \u2192 VCPU 3", "host1: VCPU 4", "127", "another")
        self.choose("#filter-type", "Refused claims")
        self.wait_text("#events-note", "1 event")
        self.wait_text("#events", "124 of a capacity of 128 are free")
        self.choose("#filter-type", "Allocations")
        self.wait("#filter-provider").send_keys("host0")
        self.wait_text("#events-note", "2 event")
        self.wait("#filter-provider").clear()
        self.wait("#filter-provider").send_keys(self.hosts[1][:13])
        self.wait("#filter-project").send_keys("red")
        self.wait_text("#events-note", "1 event")
        self.claim(self.hosts[1], project="red", VCPU=5)
        self.wait_text("#events", "host1: VCPU 5")
        self.click("#events summary")
        shown = json.loads(self.wait_text("#events pre", "payload"))
        self.assertEqual("red", shown["payload"]["project_id"])

    def test_pausing(self):
        self.claim(self.hosts[0], VCPU=1)
        self.wait_text("#events", "VCPU 1")
        self.click("#pause")
        self.claim(self.hosts[0], VCPU=2)
        self.claim(self.hosts[0], VCPU=3)
        self.wait_text("#events-note", "2 events wait")
        self.assertNotIn("VCPU 2", self.text("#events"))
        # A filter shows what was there before.
        self.wait("#filter-project").send_keys("blue")
        self.wait_text("#events", "VCPU 1")
        self.assertNotIn("VCPU 2", self.text("#events"))
        self.click("#pause")
        rows = self.wait_text("#events", "VCPU 2", "VCPU 3")
        self.assertLess(rows.index("VCPU 3"), rows.index("VCPU 2"))
        # Those from before are kept when another page was shown.
        self.go("overview")
        self.go("live")
        self.wait_text("#events", "VCPU 1", "VCPU 2", "VCPU 3")


class UsageTest(PageTest):

    def setUp(self):
        super().setUp()
        self.running = self.facade()
        self.hosts = fleets.small(self.running.api, 4)

    def test_the_table_is_what_is_held(self):
        fleets.claim(self.running.api, self.hosts[0], VCPU=5)
        released = fleets.claim(self.running.api, self.hosts[1], project="red", MEMORY_MB=7)
        self.running.api.release_allocations(None, released)
        base.wait_published(self.running.database)
        self.open(self.running.url, "usage")
        self.wait_text("#usage-note", "From all events")
        self.wait_text("#usage-table", "blue\tVCPU\t0.0", "\t5", "red\tMEMORY_MB\t0.0", "\t0")
        self.wait("#usage-chart canvas")
        fleets.claim(self.running.api, self.hosts[0], project="green", VCPU=6)
        self.wait_text("#usage-table", "green\tVCPU")
        self.choose("#period", "the last hour")
        self.wait_text("#usage-table", "green\tVCPU")

    def test_the_same_hours_as_a_listener_computes(self):
        for _ in range(60):
            self.change(random.Random(_))
        base.wait_published(self.running.database)
        events = [json.loads(line) for line in requests.get(
            f"{self.running.url}/events", headers={"X-Auth-Token": "admin"},
            timeout=30).text.splitlines()]
        self.load(self.running.url)
        first, last = (datetime.datetime.fromisoformat(events[at]["occurred_at"])
                       for at in (0, -1))
        now = last + datetime.timedelta(hours=7)
        for begin in (first, first + (last - first) / 2):
            is_complete, lines = self.driver.execute_async_script(
                _ACCOUNT, events, begin.timestamp() * 1000, now.timestamp() * 1000)
            self.assertTrue(is_complete)
            self.compare(self.expected(events, begin, now), lines)

    def change(self, chance):
        """Make a random change of one of few consumers; some are refused."""
        consumer = f"11111111-1111-4111-8111-11111111111{chance.randrange(6)}"
        try:
            if chance.random() < 0.3:
                self.running.api.release_allocations(None, consumer)
            else:
                fleets.claim(self.running.api, chance.choice(self.hosts), consumer,
                             chance.choice(("blue", "red")), VCPU=chance.randrange(1, 60),
                             MEMORY_MB=chance.randrange(1, 60))
        except exception.PlacementException as error:
            self.assertIn(error.http_status, (404, 409))

    @staticmethod
    def expected(events, begin, end):
        account = UsageAccount(begin, end)
        for event in events:
            account.apply(Event(**event))
        found = collections.defaultdict(lambda: [0.0, 0])
        for line in account.lines():
            found[line.project_id, line.resource_class][0] += float(line.resource_hours)
            found[line.project_id, line.resource_class][1] += line.held
        return dict(found)

    def compare(self, expected, lines):
        found = {(project, name): (hours, held) for project, name, hours, held in lines}
        self.assertEqual(set(expected), set(found))
        for key, (hours, held) in expected.items():
            self.assertEqual(held, found[key][1], key)
            # The page counts milliseconds, and events have microseconds.
            self.assertAlmostEqual(hours, found[key][0], 3, key)
