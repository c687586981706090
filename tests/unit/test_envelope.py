# SPDX-License-Identifier: Apache-2.0
"""Events as they travel: both ways to serialize them give the same."""

import collections
import datetime
import json
import types

from placement_rpc.accounting import events, ledger, locked_state, outbox
from placement_rpc.notifications import envelope
from placement_rpc.objects import base as objects_base
from placement_rpc.objects import catalog, payloads
from tests import base

Row = collections.namedtuple("Row", "event_id event_type occurred_at payload position epoch")
EPOCH = "5b8a1c3e-0d2f-4e6a-9c7b-1f3d5e7a9b0c"


def _recorded(box):
    """Return the only row of an outbox, as this release stores it."""
    row, = box.rows(types.SimpleNamespace(info={}))
    return row


class EnvelopeTest(base.TestCase):

    def row(self, event_type="resource_class.create", payload=None, epoch=EPOCH):
        box = outbox.Outbox("one")
        box.add(event_type, payload or payloads.ResourceClassPayload(
            name="CUSTOM_GOLD", previous_name=None))
        return Row(*_recorded(box)[:4], 7, epoch)

    def test_both_ways_to_make_a_message_give_the_same(self):
        row = self.row()
        quick, thorough = envelope.opened(envelope.sealed(row)), envelope.message(row)
        del quick["_unique_id"], thorough["_unique_id"]
        self.assertEqual(thorough, quick)
        data = quick["payload"]["placement_object.data"]
        self.assertEqual((7, EPOCH), (data["position"], data["epoch"]))

    def test_of_a_store_without_an_epoch(self):
        data = envelope.message(self.row(epoch=None))["payload"]["placement_object.data"]
        self.assertEqual((7, None), (data["position"], data["epoch"]))

    def test_the_epoch_of_an_event_in_its_payload_stays_as_it_is(self):
        lost = payloads.LostEvent(event_id=base.new_uuid(), event_type="resource_class.create",
                                  position=3, epoch=None)
        row = self.row("outbox.reconciled", payloads.OutboxReconciledPayload(
            previous_epoch=None, agreed_position=2, part=1, parts=1, lost_events=[lost],
            providers=[], consumers=[], resource_classes={}, traits={}))
        for found in (envelope.opened(envelope.sealed(row)), envelope.message(row)):
            data = found["payload"]["placement_object.data"]
            self.assertEqual((7, EPOCH), (data["position"], data["epoch"]))
            self.assertIsNone(data["previous_epoch"])
            lost_event, = data["lost_events"]
            self.assertIsNone(lost_event["placement_object.data"]["epoch"])

    def test_a_name_that_looks_like_a_position_stays_a_name(self):
        name = 'a "position": null b'
        row = self.row("resource_provider.create", payloads.ResourceProviderPayload(
            provider_uuid=base.new_uuid(), generation=0, previous_generation=None, name=name,
            previous_name=name))
        data = envelope.opened(envelope.sealed(row))["payload"]["placement_object.data"]
        self.assertEqual((name, name, 7), (data["name"], data["previous_name"], data["position"]))

    def test_every_message_has_an_id_of_its_own(self):
        row = self.row()
        ids = {envelope.message(row)["_unique_id"] for _ in range(3)}
        self.assertEqual(3, len(ids))


class PlainPayloadTest(base.TestCase):

    def test_the_claim_path_writes_the_same_as_the_objects(self):
        change = ledger.ConsumerChange(
            base.new_uuid(), 2, 1, ledger.Owner("blue", "ada"), ledger.Owner("red", "ada"),
            {(1, 0): 1}, {(2, 2): 5}, {1: (3, 4), 2: (0, 1)})
        providers = {id_: locked_state.ProviderEntry(id_, base.new_uuid(), 0, 0)
                     for id_ in (1, 2)}
        box = outbox.Outbox("one")
        events.record(box, change, providers, {0: "VCPU", 2: "DISK_GB"})
        # The owner is another, so there are two events.
        rows = list(box.rows(types.SimpleNamespace(info={})))
        self.assertEqual(["allocation.update", "consumer.update"],
                         sorted(row.event_type for row in rows))
        for row in rows:
            self.assertIsInstance(row.occurred_at, datetime.datetime)
            written = json.loads(row.payload)
            received = objects_base.Serializer().deserialize_entity(None, written)
            self.assertIs(catalog.EVENTS[row.event_type].payload, type(received))
            self.assertEqual(set(received.fields) - received.optional,
                             set(written["placement_object.data"]))
            self.assertEqual(row.event_id, received.event_id)
            received.obj_reset_changes(recursive=True)
            self.assertEqual(written, received.obj_to_primitive())
