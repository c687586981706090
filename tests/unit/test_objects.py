# SPDX-License-Identifier: Apache-2.0
"""Objects as they travel: a changed object needs a new version."""

import json

from oslo_versionedobjects import base as base_of_all
from oslo_versionedobjects import fields as ovo_fields
from oslo_versionedobjects import fixture

from placement_rpc import exception, objects
from placement_rpc.objects import base as objects_base
from placement_rpc.objects import codec, fields
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.nova.base import NovaObjectRegistry
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.nova.pci_device_pool import PciDevicePool, PciDevicePoolList
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from tests import base
from tests.compute_nodes import nodes
from tests.unit.test_manifests import _full

# Change a fingerprint together with the object's VERSION and the history above it, never alone.
FINGERPRINTS = {
    "Allocation": "1.1-b3bf82e6c6ce6de1170a0b0d13279058",
    "AllocationCandidates": "1.0-7169376591218d9532d4b8937962a29c",
    "AllocationList": "1.2-8683182b82ebdb8513ece0684737eaba",
    "AllocationPayload": "1.2-6a6ddde90c2fa0ec0cc46394f1c8ca7a",
    "CandidateClaimResult": "1.0-ac2e4984e1da9b8ec674524f604333d3",
    "CandidateGroup": "1.0-c60e506479c21f22ea463df8264e2eb8",
    "CandidatesRequest": "1.0-86b8d8bb796c01e1e60fec89f162e80c",
    "CapacityExceededPayload": "1.1-f04e7f1971fc4c0da5604810dad1db64",
    "Claim": "1.2-14e2b747b585ad8953a95ca0b0a116db",
    "ClaimList": "1.0-15ecf022a68ddbb8c2a6739cfc9f8f5e",
    "ClaimRefusedPayload": "1.1-250c9834daba273b3daa86eab92dbfe9",
    "ClaimResult": "1.2-3899cae5128285865cbcbc5601b59fe2",
    "ClaimResultList": "1.0-15ecf022a68ddbb8c2a6739cfc9f8f5e",
    "ComputeNode": "1.19-7e9f86e6a1e382c5bbbe9da21a7060ab",
    "ComputeNodeList": "1.17-bc97ee2797abbacf62e0d7e5fe9f134b",
    "ComputeNodePayload": "1.1-75d7c53337855d5e3cc7c92188c4575c",
    "Consumer": "1.1-fde538a6239d9b59eb9f7c0d5760c95c",
    "ConsumerPayload": "1.0-42526c425e0fe19b5e22271a72c0342a",
    "ConsumerSummary": "1.0-337e06d4dfd4710ce000c15fed082caf",
    "ConsumerSummaryList": "1.0-55b564e9eaf471ab70e840d0bcaa1b12",
    "Disagreement": "1.0-2a663d3119b50803a305119281e6b6d9",
    "EventPage": "1.0-d17bc00a8e95fe57e82473ee922b91a8",
    "EventPositions": "1.0-7f03df0981c9a477570486af4b22dced",
    "Explanation": "1.0-6d770fc4b48a95fc579336b9cb31704d",
    "ExplanationList": "1.1-758642a1063f9e42c2dc0ade9f9fa9fb",
    "HVSpec": "1.2-de4b9ae8ca33938d865df4aeaa3cc39e",
    "Inventory": "1.0-c42637ff0dd9abdfc36f0c14d4c093b2",
    "Headroom": "1.0-cddb69e02dc29415d0b5744806e58413",
    "InventoryChange": "1.0-9aeb6af0f5e28eaed8f5b442fdc19a96",
    "InventoryList": "1.1-bbfe5f8ddc2c4dc34c2f0e539dc49b15",
    "InventoryPayload": "1.1-7e9f14ca72429d4bf754c6dccb20d9da",
    "LostEvent": "1.0-da6093d5e8bb2225f57cdf36eecc47c4",
    "NUMACell": "1.5-2592de3c926a7840d763bcc85f81afa7",
    "NUMAPagesTopology": "1.1-edab9fa2dc43c117a38d600be54b4542",
    "NUMATopology": "1.2-c63fad38be73b6afd04715c9c1b29220",
    "NetworkMetadata": "1.0-2cb8d21b34f87b0261d3e1d1ae5cf218",
    "OutboxReconciledPayload": "1.0-ce6aad5bc9d39d2db75c07cbbc12dc4f",
    "PciDevicePool": "1.1-3f5ddc3ff7bfa14da7f6c7e9904cc000",
    "PciDevicePoolList": "1.1-15ecf022a68ddbb8c2a6739cfc9f8f5e",
    "ProjectUsages": "1.0-c03f7d90e0272ab3fc72e526f98d1b8f",
    "ProviderAggregates": "1.0-af72e512b537a198afdd3b6950d60311",
    "ProviderAggregatesPayload": "1.1-6c559db98332dc6615fbe06f2b05f039",
    "ProviderAllocation": "1.0-ce2f6961642a990f8c457fd452d1db82",
    "ProviderSummary": "1.0-741f19d59a62a0be658bfc1970fc631f",
    "ProviderSummaryList": "1.0-55b564e9eaf471ab70e840d0bcaa1b12",
    "ProviderTraits": "1.0-22c38c37cf0a5e6e3fc1c63bc9ff1c17",
    "ProviderTraitsPayload": "1.0-f5281b09cb8034509bfb0229cec6ec0b",
    "ReconciledConsumer": "1.0-6da04443ba7865d2feafca419a9f3e16",
    "ReconciledProvider": "1.0-a5bfe6affe8b054ccb0dbd27f9ec349a",
    "RequestResult": "1.0-ff1303240a51ff47b39e93cd619405e8",
    "Reshape": "1.0-1688cdc0d1235a7b0318e4f5fcb768a3",
    "ReshapeResult": "1.0-02352e17aef34f90c71dfe3773d856cf",
    "ResourceClass": "1.1-b763762b1534ff6b59ce74e38a268e60",
    "ResourceClassList": "1.0-15ecf022a68ddbb8c2a6739cfc9f8f5e",
    "ResourceClassPayload": "1.1-61b86c04292e4df877ff988fcf6bbf17",
    "ResourceProvider": "1.2-e16970c53f4ae45374cc28860c366195",
    "ResourceProviderList": "1.1-336c734725c0ffe71ddfad828d7948e0",
    "ResourceProviderPayload": "1.1-a8af0b17e77421cc194fc583ce0c29c8",
    "ResourceRequest": "1.2-ce5a9d8c7dd55cef9c996cd377969a7a",
    "Service": "1.1-d9de2a9e61c9d0969ed18e9287b9feaa",
    "ServiceList": "1.0-15ecf022a68ddbb8c2a6739cfc9f8f5e",
    "SnapshotPayload": "1.1-02be340cff825a161c2b33aef08432a1",
    "StoreImportPayload": "1.0-9e81c9b815a64cca8b608a7603c73b20",
    "SyncResult": "1.0-2c2710bae0308807f6e66e733fee5a43",
    "Trait": "1.0-8448dfa45b70ba48510142334ceb70d4",
    "TraitList": "1.0-15ecf022a68ddbb8c2a6739cfc9f8f5e",
    "TraitPayload": "1.0-5413c0886afde3324d870855f935278e",
    "Usage": "1.0-b4d5b8f104e655ccfda7c7f3006fe007",
    "UsageList": "1.0-0fa3485f83b067afcac438457aafb902",
}


class VersionTest(base.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.classes = {**objects_base.PlacementObjectRegistry.obj_classes(),
                        **NovaObjectRegistry.obj_classes()}

    def test_fingerprints(self):
        checker = fixture.ObjectVersionChecker(self.classes)
        expected, actual = checker.test_hashes(FINGERPRINTS)
        self.assertEqual(expected, actual)

    def test_older_versions_can_be_made(self):
        checker = fixture.ObjectVersionChecker(self.classes)
        checker.test_compatibility_routines()


class TravelTest(base.TestCase):

    def test_an_object_of_an_older_sender_is_of_this_release_from_then_on(self):
        primitive = Inventory(resource_class="VCPU", total=8).obj_to_primitive()
        received = Inventory.obj_from_primitive(primitive)
        self.assertNotIn("VERSION", vars(received).get("__dict__", {}))
        self.assertEqual(Inventory.VERSION, received.VERSION)

    def test_what_travels_names_its_type_and_version(self):
        primitive = Claim(consumer_uuid=base.new_uuid()).obj_to_primitive()
        self.assertEqual("placement", primitive["placement_object.namespace"])
        self.assertEqual(Claim.VERSION, primitive["placement_object.version"])


class FieldTest(base.TestCase):

    def refused(self, field_type, *values):
        for value in values:
            error = self.assertRaises(
                exception.InvalidInput, field_type.coerce, None, "the_field", value)
            self.assertIn("the_field", error.text)

    def test_whole_numbers(self):
        number = fields.WholeNumber(minimum=1, maximum=9)
        self.assertEqual(9, number.coerce(None, "n", 9))
        self.refused(number, 0, 10, "5", 5.0, True, None)

    def test_ratios(self):
        self.assertEqual(16.0, fields.Ratio().coerce(None, "r", 16))
        self.refused(fields.Ratio(), "1", float("nan"), float("inf"), -float("inf"), True, 3.5e38)

    def test_uuids_are_kept_in_one_spelling(self):
        canonical = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
        for spelling in (canonical.upper(), canonical.replace("-", "")):
            self.assertEqual(canonical, fields.Uuid().coerce(None, "u", spelling))
        self.refused(fields.Uuid(), "", "nonsense", 5, None, f"{{{canonical}}}", "1_" * 16)

    def test_class_names(self):
        name = fields.ClassName()
        self.assertEqual("IPV4_ADDRESS", name.coerce(None, "c", "IPV4_ADDRESS"))
        self.assertEqual("NUMA_MEMORY_MB", name.coerce(None, "c", "NUMA_MEMORY"))
        self.refused(name, "vcpu", "", "A" * 256, 5, "VCPU\n")

    def test_booleans(self):
        for name in ("keep_owner", "raise_generation"):
            for value in ("false", "", 0, 1, [], float("nan")):
                self.assertRaises(exception.InvalidInput, Claim, **{name: value})
            for value in (True, False, None):
                self.assertIs(value, getattr(Claim(**{name: value}), name))

    def test_mappings(self):
        provider = base.new_uuid()
        for suffix in ("a" * 65, "a b", "\0", "\ud800", 5):
            self.assertRaises(exception.InvalidInput, Claim, mappings={suffix: [provider]})
        mappings = {"": [provider], "_a-1": [provider]}
        self.assertEqual(mappings, Claim(mappings=mappings).mappings)

    def test_lists_of_alternatives(self):
        for member_of in ([[]], [[base.new_uuid()], []]):
            self.assertRaises(exception.InvalidInput, ResourceRequest, member_of=member_of)
        self.assertEqual([], ResourceRequest(member_of=[]).member_of)

    def test_text(self):
        self.refused(fields.Text(5), "", "123456", 5, "a\nb", "\x00")

    def test_a_long_value_is_shown_in_part(self):
        error = self.assertRaises(
            exception.InvalidInput, fields.Text(5).coerce, None, "n", "x" * 10000)
        self.assertLess(len(error.text), 200)

    def test_schemas(self):
        for cls in (Claim, Inventory):
            self.assertIn("properties", cls.to_json_schema())


class LeanTest(base.TestCase):
    """The fast conversion gives the same result as the library's."""

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.classes = [known[0] for registry in (
            objects_base.PlacementObjectRegistry, NovaObjectRegistry)
            for known in registry.own.values()]

    def test_every_class_travels_as_the_library_sends_it(self):
        for cls in self.classes:
            full = _full(cls)
            for instance in (full, cls()):
                lean = base.without_order(instance.obj_to_primitive())
                theirs = base.without_order(base_of_all.VersionedObject.obj_to_primitive(instance))
                self.assertEqual(theirs, lean, cls.__name__)

    def test_every_class_is_read_as_the_library_reads_it(self):
        for cls in self.classes:
            primitive = json.loads(json.dumps(_full(cls).obj_to_primitive()))
            primitive[cls._obj_primitive_key("changes")] = sorted(cls.fields)[:1]
            lean = cls.obj_from_primitive(primitive)
            theirs = base_of_all.VersionedObject._obj_from_primitive.__func__(
                cls, None, cls.VERSION, primitive)
            self.assertEqual(base.without_order(theirs.obj_to_primitive()),
                             base.without_order(lean.obj_to_primitive()))
            self.assertEqual(theirs.obj_what_changed(), lean.obj_what_changed())
            self.assertEqual(_values(theirs), _values(lean))

    def test_every_node_of_nova_is_read_and_sent_alike(self):
        for sent in nodes():
            lean = ComputeNode.read(sent)
            theirs = base_of_all.VersionedObject._obj_from_primitive.__func__(
                ComputeNode, None, ComputeNode.VERSION, sent)
            self.assertEqual(_values(theirs), _values(lean))
            self.assertEqual(
                base.without_order(base_of_all.VersionedObject.obj_to_primitive(theirs)),
                base.without_order(lean.obj_to_primitive()))

    def test_what_is_wrong_is_refused_alike(self):
        for data in ({"uuid": "5"}, {"generation": None}, {"generation": "5"}, {"free": {}}):
            primitive = ResourceProvider(uuid=base.new_uuid()).obj_to_primitive()
            primitive["placement_object.data"] |= data
            self.assertRaises(
                (exception.InvalidInput, ValueError), ResourceProvider.obj_from_primitive,
                primitive)
        listed = ResourceProviderList(objects=[ResourceProvider()]).obj_to_primitive()
        listed["placement_object.data"]["objects"][0] = Inventory().obj_to_primitive()
        self.assertRaises(ValueError, ResourceProviderList.obj_from_primitive, listed)

    def test_each_object_of_a_list_has_its_own_version_and_form(self):
        new = {"placement_object.name": "ResourceProvider", "placement_object.version": "1.2",
               "placement_object.namespace": "placement", "placement_object.data": {"name": "a"}}
        listed = ResourceProviderList(objects=[]).obj_to_primitive()
        deserialize = objects_base.Serializer().deserialize_entity
        for version in "1.2", "1.0.7":
            listed["placement_object.data"]["objects"] = [
                new, {**new, "placement_object.version": version}, new]
            self.assertEqual(["a"] * 3, [each.name for each in deserialize(None, listed).objects])
        for other, error in (
                ({"placement_object.version": "1.99"}, exception.IncompatibleObjectVersion),
                ({"placement_object.version": 5}, exception.InvalidInput),
                ({"placement_object.namespace": "nova"}, exception.InvalidInput),
                ({"placement_object.name": "Inventory"}, exception.InvalidInput),
                ({"placement_object.name": ["Inventory"]}, exception.InvalidInput),
                ({"placement_object.data": {"nam": "a"}}, exception.InvalidInput),
                ({"placement_object.data": []}, exception.InvalidInput)):
            listed["placement_object.data"]["objects"] = [new, {**new, **other}, new]
            self.assertRaises(error, deserialize, None, listed)
        for item in (None, 5, "x", [], [new], {}):
            listed["placement_object.data"]["objects"] = [new, item]
            self.assertRaises(exception.InvalidInput, deserialize, None, listed)

    def test_every_list_is_of_a_class_that_is_registered(self):
        for cls in self.classes:
            for field in cls.fields.values():
                if isinstance(field, ovo_fields.ListOfObjectsField):
                    self.assertTrue(cls.registry.obj_classes()[field.objname])

    def test_what_is_stored_has_no_changed_fields(self):
        """Their names would be a fifth of a list of candidates."""
        found = codec.stored(ResourceProviderList, more=False, objects=[
            codec.stored(ResourceProvider, name="a")])
        self.assertEqual(set(), found.obj_what_changed())
        self.assertNotIn("changes", str(found.obj_to_primitive()))

    def test_an_object_that_changes_marks_the_field_that_it_is_in(self):
        for node in map(ComputeNode.read, nodes()[:3]):
            node.forget_changes()
            self.assertNotIn("nova_object.changes", node.obj_to_primitive())
            node.pci_device_pools = PciDevicePoolList(objects=[])
            node.forget_changes()
            node.pci_device_pools.objects = [PciDevicePool(count=1)]
            self.assertEqual(["pci_device_pools"], node.obj_to_primitive()["nova_object.changes"])

    def test_a_received_list_without_objects_takes_those_of_its_class(self):
        sent = codec.stored(ResourceProviderList, more=True).obj_to_primitive()
        del sent["placement_object.data"]["objects"]
        found = ResourceProviderList.obj_from_primitive(sent)
        self.assertEqual([], found.objects)
        self.assertEqual(set(), found.obj_what_changed())
        self.assertRaises(ValueError, found.objects.append, "x")

    def test_an_object_that_changes_marks_the_list_that_it_is_in(self):
        found = codec.stored(ResourceProviderList, objects=[codec.stored(ResourceProvider)])
        found.objects[0].name = "b"
        self.assertEqual(["objects"], found.obj_to_primitive()["placement_object.changes"])

    def test_no_list_is_refused_as_the_library_refuses_it(self):
        sent = ComputeNode(supported_hv_specs=[]).obj_to_primitive()
        sent["nova_object.data"]["supported_hv_specs"] = None
        error = self.assertRaises(exception.InvalidInput, ComputeNode.read, sent)
        self.assertIn("supported_hv_specs", str(error))

    def test_none_becomes_the_default(self):
        primitive = ResourceRequest(resources={"VCPU": 1}).obj_to_primitive()
        primitive["placement_object.data"]["member_of"] = None
        self.assertEqual([], ResourceRequest.obj_from_primitive(primitive).member_of)


def _values(instance):
    return {name: getattr(instance, name) for name in instance.fields
            if instance.obj_attr_is_set(name) and "object" not in type(
                instance.fields[name]).__name__.lower()}
