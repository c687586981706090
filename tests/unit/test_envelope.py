# SPDX-License-Identifier: Apache-2.0
"""Events as they travel: the quick way to make them gives what the objects would."""

import collections
import datetime
import json

from placement_rpc.accounting import events, ledger, outbox
from placement_rpc.notifications import envelope
from placement_rpc.objects import base as objects_base
from placement_rpc.objects import catalog, payloads
from tests import base

Row = collections.namedtuple("Row", "event_id event_type occurred_at payload position")


class EnvelopeTest(base.TestCase):

    def row(self, **data):
        book = outbox.Outbox("one")
        book.add("resource_class.create", payloads.ResourceClassPayload(
            name="CUSTOM_GOLD", previous_name=None))
        return Row(*book._rows[0][:-1], 7)

    def test_both_ways_to_make_a_message_are_one(self):
        row = self.row()
        quick, thorough = envelope.opened(envelope.sealed(row)), envelope.message(row)
        del quick["_unique_id"], thorough["_unique_id"]
        self.assertEqual(thorough, quick)
        self.assertEqual(7, quick["payload"]["placement_object.data"]["position"])

    def test_a_name_that_looks_like_a_position_stays_a_name(self):
        name = 'a "position": null b'
        book = outbox.Outbox("one")
        book.add("resource_provider.create", payloads.ResourceProviderPayload(
            provider_uuid=base.new_uuid(), generation=0, previous_generation=None, name=name,
            previous_name=name))
        data = envelope.opened(envelope.sealed(Row(*book._rows[0][:-1], 7)))["payload"][
            "placement_object.data"]
        self.assertEqual((name, name, 7), (data["name"], data["previous_name"], data["position"]))

    def test_no_message_is_like_another(self):
        row = self.row()
        ids = {envelope.message(row)["_unique_id"] for _ in range(3)}
        self.assertEqual(3, len(ids))


class PlainPayloadTest(base.TestCase):

    def test_what_the_claim_path_writes_is_what_the_objects_write(self):
        change = ledger.ConsumerChange(
            base.new_uuid(), 2, 1, ("blue", "ada"), ("red", "ada"), {(1, 0): 1}, {(2, 2): 5},
            {1: (3, 4), 2: (0, 1)})
        providers = {id_: ledger.ProviderEntry(id_, base.new_uuid(), 0, 0) for id_ in (1, 2)}
        book = outbox.Outbox("one")
        events.record(book, change, providers, {0: "VCPU", 2: "DISK_GB"})
        event_id, event_type, at, text, _ = book._rows[0]
        self.assertIsInstance(at, datetime.datetime)
        written = json.loads(text)
        received = objects_base.Serializer().deserialize_entity(None, written)
        self.assertIs(catalog.EVENTS[event_type], type(received))
        self.assertEqual(set(received.fields), set(written["placement_object.data"]))
        self.assertEqual(event_id, received.event_id)
        received.obj_reset_changes(recursive=True)
        self.assertEqual(written, received.obj_to_primitive())
