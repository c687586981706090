# SPDX-License-Identifier: Apache-2.0
"""Messages as clients of each release send them, with the answers that they got.

``golden/RELEASE/calls.json`` and ``events.json`` are recorded once, when the release is made, and
replayed for ever: a client of that release is out there. For a new release::

    python -m tests.upgrade.golden RELEASE

A file that is there already is never written anew: what is in it was sent.
"""

import argparse
import contextlib
import copy
import json
import pathlib
import sys

import fixtures
import numpy as np

from placement_rpc import api, exception
from placement_rpc.accounting import snapshot
from placement_rpc.db.queries import events
from placement_rpc.manager import Manager
from placement_rpc.notifications import envelope
from placement_rpc.notifications.payload_pin import pinned
from placement_rpc.objects.candidates import CandidateGroup, CandidatesRequest
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.rpc import serializer
from placement_rpc.rpc.dispatcher import Dispatcher
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract, releases
from tests import base
from tests.compute_nodes import nodes, without_id

DIRECTORY = pathlib.Path(__file__).with_name("golden")

NODE = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a01"
SHARE = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a02"
SERVER = "7e64b4d2-14b5-4e0b-93d5-1a2b3c4d5e01"
CHILD = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a03"
OTHER = "7e64b4d2-14b5-4e0b-93d5-1a2b3c4d5e02"
AGGREGATE = "c9a3f7d8-3c11-4d7c-8f5e-6b7a8c9d0e01"

# What differs each time.
_MASKED = frozenset(("event_id", "occurred_at", "message_id", "timestamp", "_unique_id",
                     "snapshot_id", "pid", "time", "incident", "updated_at", "epoch",
                     "tag", "created_at",
                     # How much memory the index of a release takes.
                     "bytes"))


def recorded():
    """Return the releases whose messages are recorded: all that are published."""
    return [each for each in releases.RELEASES if (DIRECTORY / each.name).exists()]


def expected(recorded, answer):
    """Return what an answer has to be: as it was recorded, with the same changed fields or none.

    The names of changed fields mean nothing in an object that was read, and are left out by now.
    nova's objects keep them, and save the fields that are named.
    """
    if isinstance(recorded, dict) and isinstance(answer, dict):
        return {key: expected(item, answer.get(key)) for key, item in recorded.items()
                if key != "placement_object.changes" or key in answer}
    if isinstance(recorded, list) and isinstance(answer, list) and len(recorded) == len(answer):
        return [expected(*both) for both in zip(recorded, answer, strict=True)]
    return recorded


def masked(value, key=None):
    """Return a message with values that differ each time replaced, and unordered lists sorted."""
    if key in _MASKED and not isinstance(value, (dict, list)):
        return f"<{key}>"
    if key == "body":
        return _candidates(value)
    if isinstance(value, dict):
        return {name: masked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        found = [masked(item) for item in value]
        return sorted(found) if key is not None and key.endswith(".changes") else found
    return value


def _candidates(body):
    """Return candidates, which are rendered JSON in any parts and in any order.

    :param body: list of str; or what this returned, which is recorded
    """
    found = json.loads("".join(body)) if isinstance(body, list) else body
    return {"allocation_requests": sorted(found["allocation_requests"], key=json.dumps),
            "provider_summaries": {uuid: {
                name: sorted(value) if name == "traits" else value
                for name, value in each.items()}
                for uuid, each in found["provider_summaries"].items()}}


def ask(dispatcher, message, ctxt):
    """What a message is answered: dict of ``result``, or of ``error`` with code and values."""
    try:
        answer = dispatcher.answer(
            message["version"], message["method"], copy.deepcopy(ctxt),
            copy.deepcopy(message["args"]))
        if message["method"] == "ping":
            # Of the machine and of this very release.
            answer = dict.fromkeys(answer)
        return {"result": json.loads(json.dumps(answer))}
    except exception.PlacementException as error:
        return {"error": {"code": error.code, "kwargs": error.kwargs}}


class _Recorder:
    """Stands in for the bus, and records each message with its answer."""

    def __init__(self, manager):
        self._dispatcher = Dispatcher(manager)
        self._serializer = serializer.Serializer()
        self.calls = []

    def call(self, context, method, arguments, timeout):
        message = {"method": method, "version": context.release.contract, "args": {
            name: self._serializer.serialize_entity(context, value)
            for name, value in arguments.items()}}
        ctxt = self._serializer.serialize_context(context)
        # A golden message is never late.
        ctxt.pop("deadline", None)
        ctxt.pop("request_id", None)
        message = json.loads(json.dumps(message))
        answer = ask(self._dispatcher, message, ctxt)
        self.calls.append({"message": message, "context": ctxt, "answer": masked(answer)})
        if "error" in answer:
            raise exception.from_code(answer["error"]["code"], answer["error"]["kwargs"])
        return self._serializer.deserialize_entity(context, answer["result"])

    def close(self):
        """Do nothing: there are no resources to release."""


class Story:
    """Every call that a client of a release can make, each once.

    :param client: :class:`PlacementAPI`, pinned to the release
    :param release: :class:`placement_rpc.versions.releases.Release`
    """

    def __init__(self, client, release):
        self.api = client
        self.release = release
        self._number = 0

    def tell(self):
        for part in (self._providers, self._claims, self._reading, self._nodes, self._of_1_1,
                     self._of_1_2, self._of_1_3, self._endings, self._looking,
                     self._candidates, self._headroom, self._summaries):
            part()

    def _do(self, method, *arguments, **named):
        """Make a call, if the release has it; a refusal is an answer too."""
        if releases.number(contract.CALLS[method].since) > self.release.number:
            return
        self._number += 1
        if "request_id" in getattr(api.PlacementAPI, method).__code__.co_varnames and (
                not method.startswith("get_")):
            named["request_id"] = f"golden-{self._number}"
        with contextlib.suppress(exception.PlacementException):
            getattr(self.api, method)(None, *arguments, **named)

    def _providers(self):
        self._do("create_provider", "cmp0001.row1.example.org", NODE)
        self._do("create_provider", "cmp0001.row1.example.org")
        self._do("create_provider", "share", SHARE)
        self._do("update_provider", SHARE, "/mnt/nfs/row1", 0)
        self._do("set_aggregates", SHARE, [AGGREGATE])
        self._do("set_aggregates", NODE, [AGGREGATE])
        self._do("set_inventory", NODE, [
            base.inventory("VCPU", {"total": 48, "max_unit": 48, "allocation_ratio": 16.0}),
            base.inventory("MEMORY_MB", {"total": 262144, "reserved": 512})])
        self._do("set_inventory", NODE, [base.inventory("VCPU", 1)], 0)
        self._do("add_inventory", SHARE, base.inventory("DISK_GB", 1000))
        self._do("add_inventory", SHARE, base.inventory("VCPU", 1))
        self._do("update_inventory", SHARE, base.inventory("DISK_GB", 2000))
        self._do("delete_inventory", SHARE, "VCPU")

    def _claims(self):
        self._do("claim_allocations", base.claim({
            NODE: {"VCPU": 2, "MEMORY_MB": 4096}, SHARE: {"DISK_GB": 50}}, SERVER))
        self._do("claim_allocations", base.claim({NODE: {"VCPU": 4}}, OTHER))
        self._do("claim_allocations", base.claim({NODE: {"VCPU": 4000}}, OTHER))
        self._do("claim_allocations", base.claim({NODE: {"VCPU": 8}}, OTHER))
        self._do("release_allocations", OTHER)
        self._do("release_allocations", OTHER)

    def _reading(self):
        self._do("get_provider", NODE)
        self._do("get_provider", OTHER)
        self._do("list_providers")
        self._do("get_inventory", NODE)
        self._do("get_allocations", SERVER)
        self._do("get_provider_allocations", NODE)
        self._do("get_usages", NODE)
        self._do("get_aggregates", NODE)
        self._do("get_by_request", ResourceRequest(resources={"VCPU": 2, "MEMORY_MB": 1024}))
        self._do("resource_class_list")
        self._do("resource_class_get", "VCPU")
        self._do("get_request_result", "golden-13")
        self._do("ping")
        self._do("get_versions")

    def _node(self):
        """One of nova's, with a uuid and devices."""
        return ComputeNode.read(without_id(next(
            each for each in nodes() if each["nova_object.version"] == "1.16"
            and each["nova_object.data"]["pci_device_pools"]["nova_object.data"]["objects"])))

    def _nodes(self):
        node = self._node()
        self._do("object_action", node, "create", (), {})
        versions = {name: version for name, version in self.release.objects.items()
                    if name in node.versions()}
        self._do("object_class_action_versions", "ComputeNode", "get_by_host_and_nodename",
                 versions, (node.host, node.hypervisor_hostname), {})
        self._do("object_class_action_versions", "ComputeNodeList", "get_all", versions, (), {})
        self._do("object_backport_versions", node, {"ComputeNode": "1.14"})

    def _of_1_1(self):
        if self.release.number < (1, 1):
            return
        self._do("resource_class_create", "CUSTOM_GOLD")
        self._do("resource_class_rename", "CUSTOM_GOLD", "CUSTOM_SILVER")
        self._do("resource_class_delete", "CUSTOM_SILVER")
        self._do("claim_allocations", base.claim(
            {NODE: {"VCPU": 1}}, OTHER, consumer_generation=0))
        self._do("claim_allocations", base.claim(
            {NODE: {"VCPU": 2}}, OTHER, consumer_generation=7))
        self._do("release_allocations", OTHER, 1)
        self._do("get_by_request", ResourceRequest(resources={"VCPU": 2}, limit=1))

    def _of_1_2(self):
        if self.release.number < (1, 2):
            return
        self._do("claim_batch", [base.claim({NODE: {"VCPU": 1}}, OTHER), base.claim(
            {NODE: {"VCPU": 9999}}, AGGREGATE)])
        self._do("move_allocations", OTHER, AGGREGATE)
        self._do("claim_by_request", ResourceRequest(
            resources={"VCPU": 1}, member_of=[[AGGREGATE]]), base.claim(None, OTHER))
        self._do("get_by_request", ResourceRequest(
            resources={"VCPU": 2}, member_of=[[AGGREGATE]]))
        self._do("sync_compute_node", self._node(), {SERVER: {
            "project_id": "project", "user_id": "user", "resources": {"VCPU": 2}}}, 1.0e9)

    def _of_1_3(self):
        if self.release.number < (1, 3):
            return
        self._do("create_trait", "CUSTOM_FAST")
        self._do("create_trait", "CUSTOM_SLOW")
        self._do("list_traits", ["CUSTOM_FAST", "HW_CPU_X86_AVX2"])
        self._do("set_provider_traits", NODE, ["CUSTOM_FAST", "HW_CPU_X86_AVX2"])
        self._do("get_provider_traits", NODE)
        self._do("delete_trait", "CUSTOM_SLOW")
        self._do("delete_trait", "CUSTOM_FAST")
        self._do("create_provider", "gpu_0", CHILD, parent_provider_uuid=NODE)
        self._do("update_provider", CHILD, "gpu_0", parent_provider_uuid=None)
        self._do("update_provider", CHILD, "gpu_0", parent_provider_uuid=NODE)
        self._do("update_provider", NODE, "cmp0001.row1.example.org", parent_provider_uuid=CHILD)
        self._do("list_providers", in_tree=CHILD, required=[["CUSTOM_FAST"]],
                 forbidden=["HW_CPU_X86_AVX"], not_member_of=[SERVER], resources={"VCPU": 1})
        self._do("list_providers", uuid=CHILD)
        self._do("add_inventory", NODE, base.inventory("VGPU", 4))
        self._do("claim_allocations", base.claim(
            {NODE: {"VCPU": 1, "VGPU": 2}}, OTHER, consumer_type="INSTANCE",
            mappings={"": [NODE]}))
        self._do("claim_allocations", base.claim(
            {NODE: {"VGPU": 3}}, AGGREGATE, consumer_tags=["1-1"]))
        self._do("update_inventory", NODE, base.inventory("VGPU", 1), allow_below_use=True)
        self._do("reshape", [InventoryList(provider_uuid=CHILD, objects=[
            base.inventory("VGPU", 4)])], [base.claim({CHILD: {"VGPU": 2}}, OTHER)])
        self._do("set_allocations", [
            base.claim({}, AGGREGATE), base.claim({NODE: {"VCPU": 2}}, SERVER)])
        self._do("set_allocations", [
            base.claim({NODE: {"VCPU": 9999}}, AGGREGATE), base.claim({}, SERVER)])
        self._do("get_allocations", OTHER)
        self._do("get_project_usages", "project", consumer_type="INSTANCE")
        self._do("release_allocations", OTHER, consumer_tags=["1-1"])

    def _endings(self):
        self._do("release_allocations", SERVER)
        self._do("set_aggregates", SHARE, [])
        self._do("delete_provider", SHARE)
        self._do("delete_provider", OTHER)

    def _looking(self):
        self._do("explain", ResourceRequest(resources={"VCPU": 9999}))
        self._do("get_event_positions")
        self._do("list_events")
        self._do("verify_index")

    def _candidates(self):
        if self.release.number < (1, 3):
            return
        self._do("get_allocation_candidates", CandidatesRequest(
            groups=[CandidateGroup(resources={"PGPU": 1})]))
        self._do("get_allocation_candidates", CandidatesRequest(
            groups=[CandidateGroup(resources={"CUSTOM_NONE": 1})]))
        self._do("get_allocation_candidates", CandidatesRequest(groups=[]))
        wanted = CandidatesRequest(groups=[
            CandidateGroup(resources={"VCPU": 1}, required=[["CUSTOM_FAST", "HW_CPU_X86_AVX"]]),
            CandidateGroup(suffix="_A", resources={"VGPU": 1})], group_policy="none",
            same_subtree=[["_A"]], root_forbidden=["HW_CPU_X86_AVX"], limit=10)
        for microversion in ("1.39", "1.29"):
            self._do("get_allocation_candidates", wanted, microversion=microversion)
        self._do("get_allocation_candidates", CandidatesRequest(groups=[CandidateGroup(
            resources={"VGPU": 1}, in_tree=NODE)]), microversion="1.10")

    def _headroom(self):
        if self.release.number < (1, 3):
            return
        grouped = CandidatesRequest(groups=[
            CandidateGroup(resources={"VCPU": 2, "MEMORY_MB": 1024}),
            CandidateGroup(suffix="1", resources={"VGPU": 1}, required=[["CUSTOM_FAST"]])],
            root_required=["HW_CPU_X86_AVX2"])
        self._do("get_headroom", ResourceRequest(resources={"VCPU": 2}), "aggregate")
        self._do("get_headroom", grouped, "class-limit")
        self._do("get_headroom", CandidatesRequest(
            groups=[CandidateGroup(resources={"VCPU": 2})]), "trait")
        self._do("get_headroom", ResourceRequest(resources={"VCPU": 2}), "colour")
        self._do("explain", grouped, funnel=True)
        self._do("explain", ResourceRequest(resources={"VCPU": 9999}), funnel=True)


    def _summaries(self):
        if self.release.number < (1, 3):
            return
        self._do("list_provider_summaries")
        self._do("list_provider_summaries", marker=NODE, limit=1)
        self._do("list_consumers", project_id="project", user_id="user", provider_uuid=CHILD)
        self._do("list_consumers", marker=SERVER, limit=1)
        self._do("list_consumers", provider_uuid=OTHER)


def in_order():
    """Return a fixture that makes the order of the providers that fit deterministic."""
    return fixtures.MonkeyPatch(
        "placement_rpc.candidates.ordering.choose",
        lambda count, order, limit, left, random: np.arange(count)[:limit])


def play(release):
    """Tell a release's story to a new service.

    :returns: tuple of the calls, and of the events as a listener of the release receives them
    """
    with placement_fixtures.Store() as store, in_order():
        client = api.PlacementAPI(
            "local", store.conf, manager=Manager(store.conf, store.database), pin=release.name)
        client.sender = recorder = _Recorder(Manager(store.conf, store.database))
        Story(client, release).tell()
        snapshot.begin(store.database)
        while snapshot.go_on(store.database) is not None:
            pass
        with store.database.reader() as tx:
            rows = events.waiting(tx)
        return recorder.calls, [envelope.message(pinned(row, release)) for row in rows]


def read(release, name):
    """Return the recorded messages."""
    return json.loads((DIRECTORY / release.name / f"{name}.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("release", choices=[each.name for each in releases.RELEASES])
    release = releases.named(parser.parse_args().release)
    directory = DIRECTORY / release.name
    if directory.exists():
        parser.error(f"{directory} is there already: what is in it was sent")
    directory.mkdir(parents=True)
    for name, found in zip(("calls", "events"), play(release), strict=True):
        (directory / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
