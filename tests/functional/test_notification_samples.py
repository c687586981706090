# SPDX-License-Identifier: Apache-2.0
"""``docs/notification_samples/`` holds what is really sent, one file for each type of event.

After a change of payloads write them again, and check the difference::

    python -m tests.functional.test_notification_samples
"""

import datetime
import json
import pathlib
import subprocess
import sys
import time

import fixtures

from placement_rpc import exception
from placement_rpc.accounting import outbox, reconciliation, snapshot
from placement_rpc.context import RequestContext
from placement_rpc.db.queries import events
from placement_rpc.notifications.event import Event
from placement_rpc.objects import catalog
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.payloads import StoreImportPayload
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

_SAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "notification_samples"

_NODE = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a01"
_HOST = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a03"
_SHARE = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a02"
_SERVER = "7e64b4d2-14b5-4e0b-93d5-1a2b3c4d5e01"
_OTHER = "7e64b4d2-14b5-4e0b-93d5-1a2b3c4d5e02"
_AGGREGATE = "c9a3f7d8-3c11-4d7c-8f5e-6b7a8c9d0e01"
_PROJECT = "5e2a8b0c7d9f4e1a8b3c6d5f4e2a1b0c"
_USER = "9d8c7b6a5f4e4d3c8b2a1f0e9d8c7b6a"
# The service that makes the requests.
_CALLER = RequestContext(user_id="3f1e5d7c9b2a4860af1c3e5d7b9a2c4e",
                         project_id="a1c3e5d7b9f24608c1e3a5b7d9f02468")

# What differs each time, and what stands for it.
_SAME = {
    "event_id": "e1f2d3c4-b5a6-4789-8abc-def012345678",
    "message_id": "e1f2d3c4-b5a6-4789-8abc-def012345678",
    "epoch": "a0b1c2d3-e4f5-4607-8819-2a3b4c5d6e7f",
    "previous_epoch": "a0b1c2d3-e4f5-4607-8819-2a3b4c5d6e7e",
    "snapshot_id": "f0e1d2c3-b4a5-4687-9a8b-7c6d5e4f3a2b",
    "occurred_at": "2026-11-21T12:00:00.000000+00:00",
    "timestamp": "2026-11-21 12:00:00.000000",
}

# A program of an operator, given the names of files with messages.
_READER = """\
import pathlib
import sys

from placement_rpc.notifications import listener

for name in sys.argv[1:]:
    print(listener.Event.of_message(pathlib.Path(name).read_text()).event_type)
"""


class Story(fixtures.Fixture):
    """Every type of event, once; ``messages`` are their notifications."""

    def _setUp(self):
        running = self.useFixture(placement_fixtures.RunningService())
        self.api, self.database = running.api, running.database
        for part in (self._inventories, self._compute_node, self._allocations,
                     self._over_full, self._classes):
            part()
        snapshot.begin(self.database)
        while snapshot.go_on(self.database) is not None:
            pass
        self.api.release_allocations(_CALLER, _OTHER, request_id="req-release")
        self.api.delete_provider(_CALLER, _SHARE, request_id="req-delete")
        self._import()
        self._reconciliation()
        self.messages = []
        while not any(each["event_type"] == "outbox.reconciled" for each in self.messages):
            received = running.conductor.publisher.read(timeout=20)
            if not received:
                raise TimeoutError("the last event was not published")
            self.messages += received
        for each in self.messages:
            # The library's listener removes it.
            del each["_unique_id"]

    def _inventories(self):
        self.api.create_provider(
            _CALLER, "cmp0001.row1.example.org", _NODE, request_id="req-create")
        self.api.create_provider(_CALLER, "old name", _SHARE, request_id="req-share")
        self.api.update_provider(_CALLER, _SHARE, "/mnt/nfs/row1", request_id="req-rename")
        self.api.set_aggregates(_CALLER, _SHARE, [_AGGREGATE], request_id="req-associate")
        self.api.set_aggregates(_CALLER, _SHARE, [], request_id="req-disassociate")
        self.api.set_inventory(_CALLER, _NODE, [
            base.inventory("VCPU", {"total": 48, "max_unit": 48, "allocation_ratio": 16.0}),
            base.inventory("MEMORY_MB", {"total": 262144, "reserved": 512, "max_unit": 262144}),
            base.inventory("DISK_GB", 2000)], request_id="req-inventory")
        self.api.update_inventory(_CALLER, _NODE, base.inventory("MEMORY_MB", {
            "total": 262144, "reserved": 1024, "max_unit": 262144}), request_id="req-update")
        self.api.delete_inventory(_CALLER, _NODE, "DISK_GB", request_id="req-remove")

    def _compute_node(self):
        self.api.sync_compute_node(_CALLER, ComputeNode(
            uuid=_HOST, host="cmp0002", hypervisor_hostname="cmp0002.row1.example.org", vcpus=48,
            memory_mb=131072, local_gb=0), {}, time.time(), request_id="req-sync")

    def _allocations(self):
        def claim(consumer, request_id, named=None, **amounts):
            self.api.claim_allocations(_CALLER, base.claim(
                {_NODE: amounts}, consumer, project_id=_PROJECT, user_id=_USER, **named or {}),
                request_id=request_id)

        claim(_SERVER, "req-claim", {"mappings": {"": [_NODE]}}, VCPU=2, MEMORY_MB=4096)
        claim(_SERVER, "req-resize", VCPU=4, MEMORY_MB=8192)
        try:
            claim(_OTHER, "req-too-much", MEMORY_MB=262144)
        except exception.CapacityExceeded:
            pass
        else:
            raise AssertionError("it was granted")
        claim(_SERVER, "req-type", {"consumer_type": "INSTANCE"}, VCPU=4, MEMORY_MB=8192)
        self.api.move_allocations(_CALLER, _SERVER, _OTHER, request_id="req-move")

    def _over_full(self):
        """Change an inventory whose capacity was already below its used amount."""
        with self.database.writer() as tx:
            tx.exec_driver_sql("UPDATE inventories SET total = 1024, reserved = 0, "
                               "capacity = 1024 WHERE total = 262144")
        self.api.update_inventory(_CALLER, _NODE, base.inventory("MEMORY_MB", 4096),
                                  request_id="req-over-full")

    def _classes(self):
        self.api.resource_class_create(_CALLER, "CUSTOM_GOLD", request_id="req-class")
        self.api.resource_class_rename(_CALLER, "CUSTOM_GOLD", "CUSTOM_SILVER",
                                       request_id="req-class-rename")
        self.api.resource_class_delete(_CALLER, "CUSTOM_SILVER", request_id="req-class-delete")
        self.api.create_trait(_CALLER, "CUSTOM_QUIET", request_id="req-trait")
        self.api.set_provider_traits(
            _CALLER, _NODE, ["CUSTOM_QUIET", "HW_CPU_X86_AVX2"], request_id="req-traits")
        self.api.set_provider_traits(
            _CALLER, _NODE, ["HW_CPU_X86_AVX2"], request_id="req-fewer-traits")
        self.api.delete_trait(_CALLER, "CUSTOM_QUIET", request_id="req-trait-delete")

    def _import(self):
        """The event alone: an import begins with an empty store."""
        outbox.written(self.database, lambda tx, found: found.add(
            "store.import", StoreImportPayload(passes=3, finished=True)))

    def _reconciliation(self):
        """The event alone, as after two events that the store does not have."""
        base.wait_published(self.database)
        with self.database.reader() as tx:
            state = events.state(tx)
        at = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC).isoformat()
        lost = [
            Event("e1f2d3c4-b5a6-4789-8abc-def012345670", "allocation.create", 60, at, {
                "epoch": state.epoch, "consumer_uuid": _SERVER,
                "providers": [{"provider_uuid": _NODE}]}),
            Event("e1f2d3c4-b5a6-4789-8abc-def012345671", "trait.create", 61, at, {
                "epoch": state.epoch, "name": "CUSTOM_QUIET"})]
        reconciliation.reconcile(self.database, events.Comparison(
            lost, [], state.last_position, 61, state))

    def samples(self):
        """dict of event type to the first message of the type"""
        found = {}
        for message in self.messages:
            found.setdefault(message["event_type"], _same(message))
        return found


def _same(value):
    """A message with what differs each time replaced."""
    if isinstance(value, dict):
        return {key: _SAME.get(key) or _same(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_same(item) for item in value]
    return value


def _read():
    return {path.stem: json.loads(path.read_text()) for path in _SAMPLES.glob("*.json")}


class NotificationSampleTest(base.TestCase):

    maxDiff = None

    def test_the_samples_are_what_is_sent(self):
        story = self.useFixture(Story())
        samples = story.samples()
        stored = _read()
        for event_type, sample in samples.items():
            self.assertEqual(sample, stored.get(event_type), event_type)
        self.assertEqual(set(samples), set(stored))

    def test_there_is_one_of_every_type(self):
        self.assertEqual(set(catalog.EVENTS), set(_read()))

    def test_a_program_that_imports_only_the_listener_kit_reads_all(self):
        files = sorted(_SAMPLES.glob("*.json"))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", _READER, *map(str, files)],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual([path.stem for path in files], done.stdout.split(), done.stderr)


def write():
    """Write the samples again."""
    _SAMPLES.mkdir(exist_ok=True)
    with Story() as story:
        for event_type, sample in story.samples().items():
            (_SAMPLES / f"{event_type}.json").write_text(json.dumps(sample, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(write())
