# SPDX-License-Identifier: Apache-2.0
"""Events as listeners receive them, whatever is in a message."""

import dataclasses
import datetime
import io
import json
import pathlib

import rich.console

from placement_rpc.cmd import listen
from placement_rpc.notifications.event import Event, NotAPlacementEvent
from placement_rpc.notifications.usage import UsageAccount
from placement_rpc.objects.codec import without_envelopes
from tests import base

_SAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "notification_samples"
_OTHERS = (None, 5, 2 ** 80, "x", "\ud800", [], [5], {}, {"a": "b"})
_BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
# Fields that a later minor version added.
_ADDED = ("consumer_generation", "previous_consumer_generation", "parent_provider_uuid",
          "root_provider_uuid", "previous_parent_provider_uuid", "previous_root_provider_uuid",
          "consumer_type", "previous_consumer_type", "mappings", "epoch", "initiator", "reason")


def samples():
    """The notification of each type of event."""
    return [json.loads(path.read_text()) for path in sorted(_SAMPLES.glob("*.json"))]


def use(event):
    """Do with an event what the programs do."""
    account = UsageAccount(_BEGIN, _BEGIN + datetime.timedelta(days=365))
    account.apply(event)
    account.lines()
    text = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    listen.Table(rich.console.Console(file=text))(event)
    return event.providers


class EventTest(base.TestCase):

    def read(self, message):
        return Event.of_message(json.dumps(message))

    def made(self, event_type, **payload):
        return self.read({"event_type": event_type, "payload": {
            "event_id": "e", "position": 7, "occurred_at": "2026-02-01T00:00:00+00:00",
            **payload}})

    def test_every_sample_can_be_used(self):
        self.assertGreater(len(samples()), 15)
        for sample in samples():
            use(self.read(sample))

    def test_a_known_type_without_one_of_its_fields_is_refused(self):
        for sample in samples():
            data = sample["payload"]["placement_object.data"]
            for name in data.keys() - set(_ADDED):
                value = data.pop(name)
                self.assertRaises(NotAPlacementEvent, self.read, sample)
                data[name] = value
            use(self.read(sample))

    def test_whatever_is_in_a_field_the_event_is_refused_or_can_be_used(self):
        refused = 0
        for sample in samples():
            for data in list(_mappings(sample["payload"])):
                for name in list(data):
                    value = data[name]
                    for other in _OTHERS:
                        data[name] = other
                        try:
                            event = self.read(sample)
                        except ValueError:
                            refused += 1
                        else:
                            use(event)
                    data[name] = value
        self.assertGreater(refused, 500)

    def test_a_type_that_is_not_known_may_contain_anything(self):
        for name in ("name", "providers", "provider_uuid", "allocations", "inventories"):
            for other in _OTHERS:
                for event_type in ("new.type", "inventory.new", "allocation.snapshot.new"):
                    use(self.made(event_type, **{name: other}))
        use(self.made("[/closed]", name="\x1b[2J [/bold]"))

    def test_the_providers_of_a_later_type_are_found(self):
        event = self.made("new.type", providers=[{"provider_uuid": "a"}], provider_uuid="b",
                          allocations={"c": {}})
        self.assertEqual({"a", "b", "c"}, event.providers)

    def test_the_fields_of_a_later_minor_version_are_kept(self):
        sample = samples()[0]
        sample["payload"]["placement_object.data"]["later"] = [1]
        self.assertEqual([1], self.read(sample).payload["later"])

    def test_no_envelope_is_left(self):
        for sample in samples():
            data = sample["payload"]["placement_object.data"]
            # Of a later minor version.
            data["later"] = [{"placement_object.name": "Later", "placement_object.data": {"a": 1}}]
            expected = without_envelopes(sample["payload"])
            self.assertEqual([{"a": 1}], expected["later"])
            self.assertEqual(expected, self.read(sample).payload)

    def test_objects_may_have_no_envelopes(self):
        for sample in samples():
            expected = self.read(sample)
            sample["payload"] = without_envelopes(sample["payload"])
            self.assertEqual(expected, self.read(sample))

    def test_an_object_with_two_envelopes_is_refused(self):
        for sample in samples():
            sample["payload"] = {"placement_object.data": sample["payload"]}
            error = self.assertRaises(NotAPlacementEvent, self.read, sample)
            self.assertIn("two envelopes", str(error))
        claimed, = (each for each in samples() if each["event_type"] == "allocation.create")
        providers = claimed["payload"]["placement_object.data"]["providers"]
        providers[0] = {"placement_object.data": providers[0]}
        error = self.assertRaises(NotAPlacementEvent, self.read, claimed)
        self.assertIn("ProviderAllocation has two envelopes", str(error))

    def test_a_field_of_json_is_returned_unchanged(self):
        claimed, = (each for each in samples() if each["event_type"] == "allocation.create")
        value = {"placement_object.data": {"a": 1}}
        claimed["payload"]["placement_object.data"]["mappings"] = value
        self.assertEqual(value, self.read(claimed).payload["mappings"])

    def test_it_can_be_stored_and_made_again(self):
        for sample in samples():
            event = self.read(sample)
            stored = json.dumps(dataclasses.asdict(event))
            self.assertEqual(event, Event(**json.loads(stored)))

    def test_an_epoch_that_is_no_text_is_not_known(self):
        self.assertIsNone(self.made("new.type", epoch=5).epoch)

    def test_a_time_that_no_other_zone_can_show_is_refused(self):
        for time in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00"):
            self.assertRaises(NotAPlacementEvent, self.made, "new.type", occurred_at=time)


def _mappings(value):
    """Yield all mappings within a value."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else (
            value if isinstance(value, list) else ()):
        yield from _mappings(each)
