# SPDX-License-Identifier: Apache-2.0
"""Fingerprints, which distinguish a retry from another request of the same id."""

from placement_rpc.accounting import fingerprint
from placement_rpc.objects import register_all
from placement_rpc.objects.candidates import CandidateGroup, CandidatesRequest
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ResourceRequest
from tests import base

_CONSUMER, _PROVIDER = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2))
# They are stored, and later releases compare with them: they must never change.
_STORED = {
    "claim_allocations": "82aa7836a3a5063606f2d752a70749eef24927da5f1dd4cb9cf16516be9a3d27",
    "claim_batch": "c445d9a1fc1192bbf9e4ed4cc42109091abb42bbfd4fe421ea69865b53e896fc",
    "set_inventory": "35b9d3d0debb10f00fe197380a8d5c08512451bde4878a0c04be21767243c35a",
    "claim_by_request": "909d108efe800dfaa51493a66fe0ecb7ce3da884513303ae61a1b60c52787266",
    "in groups": "3d695f6c2d60cef19303d378399c7aab384fb6263fecdc3661177dfb7057e348",
}

_IN_GROUPS = CandidatesRequest(
    groups=[CandidateGroup(resources={"VCPU": 1}, required=[["HW_CPU_X86_AVX"]]),
            CandidateGroup(suffix="_A", resources={"VGPU": 2}, in_tree=_PROVIDER)],
    group_policy="none", root_forbidden=["COMPUTE_STATUS_DISABLED"])


class FingerprintTest(base.TestCase):

    def setUp(self):
        super().setUp()
        register_all()
        self.claim = Claim(consumer_uuid=_CONSUMER, project_id="blue", user_id="ada",
                           allocations={_PROVIDER: {"VCPU": 2, "MEMORY_MB": 512}})
        self.other = Claim(consumer_uuid=_CONSUMER, project_id="blue", user_id="ada",
                           consumer_generation=3, allocations=None)

    def test_they_never_change(self):
        inventory = Inventory(resource_class="VCPU", total=8, allocation_ratio=1.5)
        self.assertEqual(_STORED, {
            method: fingerprint.fingerprint(method, arguments) for method, arguments in (
                ("claim_allocations", {"claim": self.claim}),
                ("claim_batch", {"claims": [self.claim, self.other]}),
                ("set_inventory", {
                    "uuid": _PROVIDER, "inventories": [inventory], "at": None}),
                ("claim_by_request", {
                    "wanted": ResourceRequest(resources={"VCPU": 1}, limit=5),
                    "claim": self.other}))} | {"in groups": fingerprint.fingerprint(
                        "claim_by_request", {"wanted": _IN_GROUPS, "claim": self.other})})

    def test_a_canonical_form_has_the_fingerprint_of_its_object(self):
        forms = [fingerprint.CanonicalForm(self.claim), fingerprint.CanonicalForm(self.other)]
        self.assertEqual(_STORED["claim_batch"],
                         fingerprint.fingerprint("claim_batch", {"claims": forms}))

    def test_an_added_field_counts_unless_it_is_empty(self):
        before = fingerprint.fingerprint("claim_allocations", {"claim": self.claim})
        self.claim.consumer_generation = None
        self.assertEqual(before, fingerprint.fingerprint(
            "claim_allocations", {"claim": self.claim}))
        self.claim.consumer_generation = 0
        self.assertNotEqual(
            before, fingerprint.fingerprint("claim_allocations", {"claim": self.claim}))
