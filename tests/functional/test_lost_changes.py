# SPDX-License-Identifier: Apache-2.0
"""The candidate index and the sums of projects' usages forget what the store has lost."""

from placement_rpc import api
from placement_rpc.accounting.project_usages import UsageReader
from tests import base
from tests.functional.reconciliation_case import ReconciliationCase


class LostChangesTest(ReconciliationCase):

    def test_lost_changes_whose_positions_are_given_again_are_forgotten(self):
        """By a relay that cannot compare the store with the stream yet."""
        other = self.second_provider()
        self.save()
        usages = UsageReader(self.database.reader)
        gone = self.claim(2, provider=other)
        last = self.published()
        self.assertEqual((998, {"VCPU": 3}), (self.room(other), self.sums(usages)))
        self.relay.stop()
        self.put_back()
        self.stream.is_away = True
        self.claim(4)
        self.relay = self.started("three")
        base.wait_until(lambda: self.last_position() == last)
        self.assertEqual((1000, 995, {"VCPU": 5}), (
            self.room(other), self.room(), self.sums(usages)), gone)

    def test_a_lost_change_whose_row_id_is_given_again_is_forgotten(self):
        other = self.second_provider()
        self.save()
        self.relay.stop()
        usages = UsageReader(self.database.reader)
        self.room()
        gone = self.claim(2, provider=other)
        self.assertEqual((998, {"VCPU": 3}), (self.room(other), self.sums(usages)))
        self.put_back()
        self.claim(4)
        self.assertEqual((1000, 995, {"VCPU": 5}), (
            self.room(other), self.room(), self.sums(usages)), gone)

    def second_provider(self):
        uuid = self.api.create_provider(None, "b").uuid
        self.api.set_inventory(None, uuid, [base.inventory("VCPU", 1000)])
        return uuid

    def test_a_change_without_a_position_is_forgotten_by_the_index_and_the_sums(self):
        self.save()
        self.relay.stop()
        usages = UsageReader(self.database.reader)
        self.assertEqual((999, {"VCPU": 1}), (self.room(), self.sums(usages)))
        self.claim(2)
        self.assertEqual((997, {"VCPU": 3}), (self.room(), self.sums(usages)))
        self.put_back()
        self.assertEqual((999, {"VCPU": 1}), (self.room(), self.sums(usages)))

    def sums(self, usages):
        return usages.of_project("project").usages

    def room(self, provider=None):
        """Return the free amount of a provider by the candidate index."""
        found = self.api.get_allocation_candidates(None, api.CandidatesRequest(groups=[
            api.CandidateGroup(resources={"VCPU": 1})]))
        summary = found.provider_summaries[provider or self.provider]["resources"]["VCPU"]
        return summary["capacity"] - summary["used"]
