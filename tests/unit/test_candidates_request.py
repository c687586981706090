# SPDX-License-Identifier: Apache-2.0
"""Requests for candidates with groups, and the rendered answers to them."""

import base64
import json
import zlib

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.conf import placement
from placement_rpc.objects.candidates import (
    AllocationCandidates,
    CandidateGroup,
    CandidatesRequest,
)
from placement_rpc.objects.claim import Claim
from placement_rpc.telemetry.cut_answers import CutAnswers
from placement_rpc.telemetry.metrics import Metrics
from placement_rpc.versions import contract, releases
from tests import base


def _request(*groups, **values):
    return CandidatesRequest(groups=[CandidateGroup(**each) for each in groups], **values)


_VCPU = {"resources": {"VCPU": 1}}


class RequestTest(base.TestCase):

    def test_what_is_accepted(self):
        for request in (
                _request(_VCPU), _request({"suffix": "", **_VCPU}),
                _request(_VCPU, {"suffix": "_A", **_VCPU}, {"suffix": "_B", "required": [["T"]]},
                         same_subtree=[["_A", "_B"]], group_policy="isolate"),
                _request({**_VCPU, "required": [["A", "B"]], "forbidden": ["A"]}),
                _request(_VCPU, root_required=["A"], root_forbidden=["B"], limit=5)):
            request.check()
            request.check_claimable(500)

    def test_what_is_refused(self):
        many = [{"suffix": str(number), **_VCPU} for number in range(101)]
        for text, request in (
                ("no group has resources", CandidatesRequest()),
                ("no group has resources", _request()),
                ("no group has resources", _request({"required": [["T"]]})),
                ("101 groups", _request(*many)),
                ("two groups have the same suffix", _request(_VCPU, {"suffix": "", **_VCPU})),
                ("a group that is not there: '_B'", _request(
                    {"suffix": "_A", **_VCPU}, same_subtree=[["_A", "_B"]])),
                ("a group that is not there: ''", _request(_VCPU, same_subtree=[[""]])),
                ("group '_A' has no resources", _request(_VCPU, {"suffix": "_A"})),
                ("a list of alternatives in required of group '' is empty", _request(
                    {**_VCPU, "required": [[]]})),
                ("all of them are forbidden", _request(
                    {**_VCPU, "required": [["A", "B"]], "forbidden": ["A", "B", "C"]})),
                ("the root is to have A", _request(
                    _VCPU, root_required=["A"], root_forbidden=["A"]))):
            self.assertIn(text, self.assertRaises(exception.InvalidInput, request.check).text)

    def test_what_cannot_be_claimed(self):
        request = _request({"resources": {"VCPU": 2 ** 31 - 1}}, {"suffix": "1", **_VCPU})
        request.check()
        self.assertIn("more than 2147483647 of VCPU", self.assertRaises(
            exception.InvalidInput, request.check_claimable, 500).text)
        self.assertRaises(exception.BatchTooLarge, _request(
            _VCPU, {"suffix": "1", **_VCPU}).check_claimable, 1)

    def test_values_that_no_request_can_have(self):
        for values in ({"suffix": "a b"}, {"suffix": "a" * 65},
                       {"suffix": "a\n"}, {"suffix": 5}, {"in_tree": "x"},
                       {"resources": {"VCPU": 0}},
                       {"resources": {"VCPU": 2 ** 63}}, {"required": ["T"]},
                       {"required": [["lower"]]}, {"member_of": [["x"]]}, {"member_of": [[]]}):
            self.assertRaises(exception.InvalidInput, CandidateGroup, **values)
        for values in ({"group_policy": "any"}, {"same_subtree": [[]]}, {"limit": 0}):
            self.assertRaises(exception.InvalidInput, CandidatesRequest, **values)

    def test_it_says_what_it_asks_for(self):
        self.assertEqual("MEMORY_MB:5, VCPU:1; group _A: VGPU:2", _request(
            {"resources": {"VCPU": 1, "MEMORY_MB": 5}},
            {"suffix": "_A", "resources": {"VGPU": 2}}, {"suffix": "_B"}).text)

    def test_which_releases_understand_it(self):
        claim = Claim(consumer_uuid=base.new_uuid())
        arguments = {"wanted": _request(_VCPU), "claim": claim}
        self.assertEqual(["CandidatesRequest"], contract.missing(
            "claim_by_request", arguments, releases.named("2026.2")))
        self.assertEqual([], contract.missing(
            "claim_by_request", arguments, releases.CURRENT))

    def test_which_answers_may_be_large(self):
        call = contract.CALLS["get_allocation_candidates"]
        for request, large in ((_request(_VCPU), True), (_request(_VCPU, limit=1000), True),
                               (_request(_VCPU, limit=10), False)):
            self.assertIs(large, call.is_large({"wanted": request.obj_to_primitive()}))


_ANSWER = {"allocation_requests": [{"allocations": {"é": 1}}] * 50_000,
           "provider_summaries": {str(number): {"name": "é"} for number in range(50_000)}}


class AnswerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        text = json.dumps(_ANSWER, ensure_ascii=False)
        self.parts = [text[at:at + 100_000] for at in range(0, len(text), 100_000)]

    def answer(self, deflated):
        sent = AllocationCandidates.of(
            iter(self.parts), deflated, position=5, is_cut=True, count=50_000)
        return AllocationCandidates.obj_from_primitive(
            json.loads(json.dumps(sent.obj_to_primitive())))

    def test_both_encodings_say_the_same(self):
        for deflated in (False, True):
            answer = self.answer(deflated)
            self.assertEqual("".join(self.parts).encode(), b"".join(answer.chunks()))
            self.assertEqual(_ANSWER["allocation_requests"], answer.allocation_requests)
            self.assertEqual(_ANSWER["provider_summaries"], answer.provider_summaries)
            self.assertIs(answer.provider_summaries, answer.provider_summaries)

    def test_the_deflated_one_is_small_and_is_read_in_pieces(self):
        answer = self.answer(True)
        self.assertLess(sum(map(len, answer.body)), sum(map(len, self.parts)) / 5)
        self.assertLessEqual(max(map(len, answer.chunks())), 256 * 1024)

    def test_one_part_that_inflates_to_much_is_read_in_pieces(self):
        bomb = AllocationCandidates.of(
            ["x" * 50_000_000], True, position=0, is_cut=False, count=0)
        self.assertLess(sum(map(len, bomb.body)), 500_000)
        sizes = list(map(len, bomb.chunks()))
        self.assertEqual(50_000_000, sum(sizes))
        self.assertLessEqual(max(sizes), 256 * 1024)

    def test_a_body_that_is_not_encoded_as_it_says_is_an_error(self):
        whole = self.answer(True).body
        other = base64.b64encode(zlib.compress(b"{}")).decode()
        for body in (whole[:-1], ["x"], ["!!!!"], [base64.b64encode(b"{}").decode()], [],
                     [other[:-4]]):
            broken = AllocationCandidates(
                body=body, encoding="deflate", position=0, is_cut=False, count=0)
            self.assertRaises(exception.InvalidInput, lambda each=broken: list(each.chunks()))

    def test_a_body_is_a_list_of_texts(self):
        for body in ("text", [5], None, {}):
            self.assertRaises(exception.InvalidInput, AllocationCandidates, body=body)


class OptionsTest(base.TestCase):

    def test_the_maximum(self):
        for value, maximum in ((None, 10_000), (-1, None), (0, 1), (5, 5)):
            options = {} if value is None else {"placement__max_allocation_candidates": value}
            conf = configuration.new_config(**options)
            self.assertEqual(maximum, placement.max_candidates(conf))


class CutAnswersTest(base.TestCase):

    def test_each_is_counted_and_one_in_a_while_is_logged(self):
        now, metrics = [100.0], Metrics()
        cut = CutAnswers(metrics, lambda: now[0])
        for seconds, lines in ((100, 1), (101, 1), (159, 1), (160, 2), (170, 2)):
            now[0] = seconds
            cut.count(10_000, "VCPU:1")
            self.assertEqual(lines, self.log.output.count("max_allocation_candidates = 10000"))
        self.assertIn("1 answers were cut", self.log.output)
        self.assertIn("3 answers were cut", self.log.output)
        self.assertIn(b"placement_rpc_allocation_candidates_cut_total 5.0", metrics.show())
