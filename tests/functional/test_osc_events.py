# SPDX-License-Identifier: Apache-2.0
"""Events as the commands list and follow them."""

import json

import fixtures

from placement_rpc.osc import event_text
from tests.functional.test_osc_commands import (
    AGGREGATE,
    INVENTORY,
    OTHER,
    UUID,
    CommandTest,
    error,
)
from tests.functional.test_osc_program import Terminal


def event(position, event_type="resource_provider.create", **payload):
    return {"position": position, "event_type": event_type, "event_id": f"id {position}",
            "occurred_at": "2026-11-21T12:00:00.000000+00:00",
            "payload": {"provider_uuid": UUID, "name": "share\u2028", **payload}}


def page(position, *events):
    body = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in events)
    return (200, body.encode(), {"placement-position": str(position),
                                 "Content-Type": "application/x-ndjson"})


class EventTest(CommandTest):

    def test_list_reads_on_until_there_are_no_more(self):
        self.server.on("GET /events", page(2, event(1), event(2, "inventory.update")),
                       page(3, event(3)), page(3))
        listed = self.run_json("event", "list", "--event-type", "resource_provider.*")
        self.assertEqual([1, 3], [each["position"] for each in listed])
        self.assertEqual(UUID, listed[0]["payload"]["provider_uuid"])
        self.assertEqual([{}, {"after": "2"}, {"after": "3"}],
                         [each["query"] for each in self.server.requests])

    def test_types_are_in_one_line_without_the_payloads(self):
        name = "resource_provider.aggregate.disassociate"
        self.server.on("GET /events", page(1, event(1, name, name=None)), page(1))
        _, out, _ = self.openstack("event", "list", "-c", "position", "-c", "event_type")
        self.assertIn(f"| {name} |", out)

    def test_a_table_has_names_and_fits_100_columns(self):
        consumer, gone = AGGREGATE, "0" * 8 + OTHER[8:]
        self.server.on("GET /events", page(
            2147483647, event(2147483645, "resource_provider.aggregate.disassociate", name=None,
                              aggregates=[AGGREGATE]),
            event(2147483646, "allocation.claim.refused", provider_uuid=None, name=None,
                  allocations={UUID: {}}, error={"message": f"VCPU of {UUID} is used up"}),
            event(2147483647, "allocation.create", provider_uuid=None, name=None,
                  consumer_uuid=consumer, project_id="p", providers=[
                      {"provider_uuid": each, "before": {}, "after": {"VCPU": 1}}
                      for each in (UUID, gone)])), page(2147483647))
        self.server.on("GET /resource_providers", (200, {"resource_providers": [
            {"uuid": UUID, "name": "node-1"}, {"uuid": OTHER, "name": "node-2"}]}))
        _, out, err = self.openstack("event", "list")
        self.assertEqual("", err)
        self.assertLessEqual(max(map(len, out.splitlines())), 100, out)
        for text in ("2026-11-21T12:00:00Z", "VCPU of node-1 is used up", consumer, gone):
            self.assertIn(text, out)
        for text in (UUID, "00:00.0", "node-2"):
            self.assertNotIn(text, out)

    def test_a_deleted_providers_name_is_that_of_its_events(self):
        self.server.on("GET /events", page(
            2, event(1, name="node-1"), event(2, "inventory.delete", name=None)), page(2))
        _, out, _ = self.openstack("event", "list")
        self.assertEqual(2, out.count("node-1"), out)
        self.assertEqual([], self.server.asked("GET /resource_providers"))

    def test_without_names_there_are_uuids(self):
        self.server.on("GET /events", page(1, event(1, "inventory.delete", name=None)), page(1))
        self.server.on("GET /resource_providers", (503, error(503, "store is away")))
        code, out, err = self.openstack("event", "list")
        self.assertEqual((0, ""), (code, err))
        self.assertIn(UUID, out)

    def test_list_says_where_to_go_on(self):
        self.server.on("GET /events", page(3, event(4), event(5), event(6)))
        code, out, err = self.openstack("event", "list", "--limit", "2", "-f", "value")
        self.assertEqual((0, 2), (code, len(out.splitlines())))
        self.assertIn("--after 5", err)

    def test_list_of_one_provider(self):
        self.server.on("GET /events", page(
            3, event(1, provider_uuid=OTHER), event(2),
            event(3, "allocation.create", provider_uuid=None,
                  providers=[{"provider_uuid": UUID}]),
            event(4, "allocation.claim.refused", provider_uuid=None,
                  allocations={UUID: {"VCPU": 1}})), page(4))
        listed = self.run_json("event", "list", "--provider", UUID.upper())
        self.assertEqual([2, 3, 4], [each["position"] for each in listed])

    def test_a_position_that_was_pruned(self):
        self.server.on("GET /events", (410, error(410, "pruned", oldest_position=17)))
        self.assertIn("17", self.refused("event", "list", "--after", "3"))

    def test_watch_in_a_pipe_is_one_object_a_line_and_nothing_else(self):
        self.server.on("GET /events", page(7), page(8, event(8)), page(8),
                       page(10, event(9), event(10)))
        code, out, err = self.openstack("event", "watch", "--count", "2")
        self.assertEqual((0, ""), (code, err))
        self.assertEqual([event(8), event(9)], [json.loads(line) for line in out.splitlines()])
        self.assertEqual([("now", "0"), ("7", "30"), ("8", "30"), ("8", "30")],
                         [(each["query"]["after"], each["query"]["wait"])
                          for each in self.server.requests])

    def test_watch_on_a_terminal_is_coloured_and_prints_no_control_characters(self):
        self.useFixture(fixtures.EnvironmentVariable("TERM", "xterm-256color"))
        self.useFixture(fixtures.EnvironmentVariable("NO_COLOR"))
        self.server.on("GET /events", page(1, event(1, name="evil\x1b[2J")))
        code, out, err = self.openstack("event", "watch", "--count", "1", stdout=Terminal())
        self.assertEqual(0, code, err)
        self.assertIn("\x1b[32mresource_provider.create", out)
        self.assertNotIn("\x1b[2J", out)

    def test_watch_goes_on_when_the_service_is_back(self):
        self.useFixture(fixtures.MonkeyPatch("time.sleep", lambda seconds: None))
        self.server.on("GET /events", page(7), (503, error(503, "store is away")),
                       page(8, event(8)))
        code, out, err = self.openstack("event", "watch", "--count", "1")
        self.assertEqual((0, 1), (code, len(out.splitlines())))
        self.assertIn("store is away", err)
        self.assertEqual(["now", "7", "7"],
                         [each["query"]["after"] for each in self.server.requests])

    def test_watch_tells_a_service_that_is_not_there(self):
        self.server.on("GET /events", (503, error(503, "store is away")))
        self.assertEqual("store is away", self.refused("event", "watch"))

    def test_the_changed_values_of_an_inventory_are_shown(self):
        after = {**INVENTORY, "resource_class": "VCPU", "used": 1, "max_unit": 5}
        for before, change in (({**INVENTORY, "resource_class": "VCPU"}, "max_unit 10 -> 5"),
                               (None, "none -> 10")):
            self.assertEqual(f"{UUID} VCPU {change}", event_text.summary("inventory.update", {
                "provider_uuid": UUID, "inventories": [
                    {"resource_class": "VCPU", "before": before, "after": after}]}))

    def test_a_payload_of_another_form_is_no_mistake(self):
        for event_type in ("allocation.create", "allocation.claim.refused", "inventory.create",
                           "inventory.capacity_exceeded", "resource_provider.create",
                           "resource_provider.aggregate.associate", "something.new"):
            self.assertIsInstance(event_text.summary(event_type, {}), str)
