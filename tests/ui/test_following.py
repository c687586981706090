# SPDX-License-Identifier: Apache-2.0
"""The page's fleet follows the events to exactly what the service would answer anew."""

import json
import random

import requests
from testtools import content

from placement_rpc import exception
from tests import base
from tests.ui import fleets
from tests.ui.browser import PageTest

_LOAD = """
const [name, done] = arguments;
Promise.all([import("/ui/fleet.js"), import("/ui/service.js")]).then(async ([f, s]) => {
  const fleet = new f.Fleet();
  await fleet.load(new s.Service({ token: "admin" }));
  window[name] = fleet;
  done(fleet.position);
});
"""
_APPLY = "window[arguments[0]].apply(arguments[1])"
_STATE = """
const state = {};
for (const { loaded, ...each } of window[arguments[0]].providers.values()) {
  state[each.uuid] = { ...each, traits: [...each.traits].sort(), aggregates: [...each.aggregates].sort() };
}
return state;
"""  # noqa: E501
_TRAITS = ("HW_CPU_X86_AVX2", "HW_CPU_X86_SSE", "STORAGE_DISK_SSD")
_CLASSES = ("VCPU", "MEMORY_MB", "VGPU")


class Changes:
    """Random changes of every kind that events tell of; some are refused."""

    def __init__(self, api, chance):
        self.api, self.chance = api, chance
        self.uuids = [base.new_uuid() for _ in range(8)]
        self.consumers = [base.new_uuid() for _ in range(6)]
        self.made = 0

    def one(self):
        change = self.chance.choice((
            self.create, self.create, self.rename, self.delete, self.inventory, self.inventory,
            self.traits, self.aggregates, self.claim, self.claim, self.claim, self.release))
        self.attempt(change, self.chance.choice(self.uuids))

    def attempt(self, change, uuid):
        try:
            change(uuid)
        except exception.PlacementException as error:
            if error.http_status not in (400, 404, 409):
                raise

    def fill(self):
        """Create the providers that are not there, so that there is something to compare."""
        for uuid in self.uuids:
            self.attempt(self.create_root, uuid)
            self.attempt(self.inventory, uuid)

    def new_name(self):
        self.made += 1
        return f"provider {self.made}"

    def create(self, uuid):
        parent = self.chance.choice((None, *self.uuids))
        self.api.create_provider(None, self.new_name(), uuid, parent_provider_uuid=parent)

    def create_root(self, uuid):
        """Create a provider that no other one has to exist for."""
        self.api.create_provider(None, self.new_name(), uuid)

    def rename(self, uuid):
        self.api.update_provider(None, uuid, self.new_name(), parent_provider_uuid=(
            self.chance.choice((None, *self.uuids))))

    def delete(self, uuid):
        self.api.delete_provider(None, uuid)

    def inventory(self, uuid):
        names = self.chance.sample(_CLASSES, self.chance.randrange(4))
        self.api.set_inventory(None, uuid, [base.inventory(name, {
            "total": self.chance.randrange(5, 50), "reserved": self.chance.randrange(4),
            "allocation_ratio": self.chance.choice((1.0, 1.5))}) for name in names])

    def traits(self, uuid):
        self.api.set_provider_traits(
            None, uuid, self.chance.sample(_TRAITS, self.chance.randrange(3)))

    def aggregates(self, uuid):
        self.api.set_aggregates(
            None, uuid, self.chance.sample(fleets.AGGREGATES, self.chance.randrange(3)))

    def claim(self, uuid):
        consumer, other = (self.chance.choice(self.consumers) for _ in range(2))
        # Several claims of one transaction share a generation.
        self.api.claim_batch(None, [base.claim({uuid: {self.chance.choice(
            _CLASSES): self.chance.randrange(1, 9)}}, each) for each in {consumer, other}])

    def release(self, _uuid):
        self.api.release_allocations(None, self.chance.choice(self.consumers))


class FollowingTest(PageTest):

    def test_events_lead_to_the_same_fleet(self):
        running = self.facade()
        seed = random.randrange(10 ** 6)
        self.addDetail("seed", content.text_content(str(seed)))
        changes = Changes(running.api, random.Random(seed))
        self.change(running, changes)
        self.load(running.url)
        position = self.driver.execute_async_script(_LOAD, "early")
        self.change(running, changes)
        events = [json.loads(line) for line in requests.get(
            f"{running.url}/events?after={position}", timeout=30,
            headers={"X-Auth-Token": "admin"}).text.splitlines()]
        # Some changes are refused.
        self.assertGreater(len(events), 20)
        self.run_script(_APPLY, "early", events)
        self.driver.execute_async_script(_LOAD, "late")
        expected = self.run_script(_STATE, "late")
        self.assertEqual(set(changes.uuids), set(expected))
        self.assertEqual(expected, self.run_script(_STATE, "early"))
        # As if all changes had come between its first page and the others.
        self.run_script(_APPLY, "late", events)
        self.assertEqual(expected, self.run_script(_STATE, "late"))

    def change(self, running, changes):
        for _ in range(150):
            changes.one()
        changes.fill()
        base.wait_published(running.database)
