# SPDX-License-Identifier: Apache-2.0
"""Casts, on every transport: the outcome is reported, not returned."""

from placement_rpc import exception
from tests import base


class CastTest(base.ContractTest):
    """Without a broker a cast is settled before it returns, and reported the same way."""

    def test_a_cast(self):
        provider = self.provider(VCPU=4)
        consumer = base.new_uuid()
        request_id = self.api.claim_allocations(
            None, base.claim({provider: {"VCPU": 1}}, consumer), cast=True)
        self.assertEqual({provider: 2}, self.api.get_request_result(
            None, request_id).result().generations)
        request_id = self.api.claim_allocations(
            None, base.claim({provider: {"VCPU": 9}}), cast=True)
        self.assertRaises(exception.ClaimRefused, self.api.get_request_result(
            None, request_id).result)
        self.api.release_allocations(None, consumer, cast=True)
        self.assertEqual({"VCPU": 0}, self.used(provider))

