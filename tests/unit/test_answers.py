# SPDX-License-Identifier: Apache-2.0
"""Which answers of two services say the same."""

import copy
import json
import random

import hypothesis
from hypothesis import strategies

from placement_rpc.moving import answers, limited_candidates
from placement_rpc.moving.access_log import Request
from placement_rpc.moving.answers import Answer, first_difference
from placement_rpc.moving.shadow import Result, Verdict
from placement_rpc.moving.shadow_report import ShadowReport
from tests import base

_VERSION = "openstack-api-version"
_PROVIDERS = {"resource_providers": [
    {"uuid": "a", "name": "one", "generation": 3, "parent_provider_uuid": None, "links": [
        {"rel": "self", "href": "/resource_providers/a"},
        {"rel": "usages", "href": "/resource_providers/a/usages"}]},
    {"uuid": "b", "name": "two", "generation": 4, "parent_provider_uuid": "a", "links": []}]}
_VALUES = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(0, 3) | strategies.text("ab"),
    lambda inner: strategies.lists(inner, max_size=4) | strategies.dictionaries(
        strategies.sampled_from(("uuid", "name", "x")), inner, max_size=3), max_leaves=8)
# The machine of the tests may be slow at making examples, too.
_EXAMPLES = hypothesis.settings(
    max_examples=base.examples(50), deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow])


def answer(body=None, status=200, base="", version="placement 1.39", **headers):
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(
        body).encode()
    return Answer(status, {_VERSION: version, "content-type": "application/json", **headers},
                  content, base=base)


def _shuffled(value, generator):
    """Return a JSON value whose lists and objects have another order."""
    if isinstance(value, dict):
        items = [(name, _shuffled(item, generator)) for name, item in value.items()]
        generator.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        items = [_shuffled(item, generator) for item in value]
        generator.shuffle(items)
        return items
    return value


def _sorted_text(value):
    """Return a text that is the same for values that differ in orders only."""
    if isinstance(value, dict):
        return json.dumps({name: _sorted_text(value[name]) for name in sorted(value)})
    if isinstance(value, list):
        return json.dumps(sorted(map(_sorted_text, value)))
    return f"{type(value).__name__} {value}"


class AnswersTest(base.TestCase):

    def same(self, old, new):
        self.assertIsNone(first_difference(old, new))

    def differ(self, where, old, new):
        found = first_difference(old, new)
        self.assertIsNotNone(found)
        self.assertEqual(where, found.where)
        return found.old, found.new

    @_EXAMPLES
    @hypothesis.given(_VALUES, strategies.integers(0, 1000))
    def test_order_is_free(self, value, seed):
        self.same(answer(value), answer(_shuffled(value, random.Random(seed))))

    @_EXAMPLES
    @hypothesis.given(_VALUES, _VALUES)
    def test_nothing_else_is(self, old, new):
        texts = [_sorted_text(each) for each in (old, new)]
        found = answers.difference_of(old, new)
        self.assertEqual(texts[0] == texts[1], found is None)

    def test_the_place_of_a_difference(self):
        for change, where, values in (
                (lambda new: new["resource_providers"][1].update(generation=5),
                 "body.resource_providers[uuid=b].generation", ("4", "5")),
                (lambda new: new["resource_providers"].pop(),
                 "body.resource_providers[uuid=b]",
                 (json.dumps(_PROVIDERS["resource_providers"][1], sort_keys=True), "nothing")),
                (lambda new: new["resource_providers"][0]["links"][1].update(href="/elsewhere"),
                 "body.resource_providers[uuid=a].links[rel=usages].href",
                 ("/resource_providers/a/usages", "/elsewhere")),
                (lambda new: new["resource_providers"][0].pop("parent_provider_uuid"),
                 "body.resource_providers[uuid=a].parent_provider_uuid", ("null", "nothing"))):
            new = copy.deepcopy(_PROVIDERS)
            change(new)
            self.assertEqual(values, self.differ(where, answer(_PROVIDERS), answer(new)))

    def test_elements_count(self):
        old, new = ({"allocation_requests": [{"allocations": {"a": amount}} for amount in amounts]}
                    for amounts in ((1, 2, 2), (2, 1, 1)))
        said = self.differ("body.allocation_requests", answer(old), answer(new))
        self.assertEqual(('3, of which 1 only here: {"allocations": {"a": 2}}',
                          '3, of which 1 only here: {"allocations": {"a": 1}}'), said)

    def test_long_values_are_shortened(self):
        said = self.differ("body.name", answer({"name": "x" * 9000}), answer({"name": ""}))
        self.assertLess(len(said[0]), 300)
        self.assertIn("9000 characters", said[0])

    def test_statuses_headers_and_bodies(self):
        ok = answer({})
        self.differ("status", ok, answer({}, status=404))
        self.differ(_VERSION, ok, answer({}, version="placement 1.38"))
        self.differ("content-type", ok, answer({}, **{"content-type": "text/html"}))
        self.same(ok, answer({}, **{"content-type": "application/json; charset=UTF-8"}))
        self.same(answer(status=204), answer(status=204))
        self.differ("body", answer(b"<html>"), answer({}))
        self.differ("body", answer(b"[" * 100_000), answer(b"[" * 100_001))
        self.assertEqual(("true", "1"), self.differ("body.a", answer({"a": True}),
                                                    answer({"a": 1})))
        self.same(answer({"a": 16.0}), answer({"a": 16}))

    def test_no_answer_is_no_equal_answer(self):
        failed = Answer(None, failure="ConnectTimeout: after 60 s")
        self.assertEqual(("no answer: ConnectTimeout: after 60 s", "200"),
                         self.differ("status", failed, answer({})))
        self.differ("status", answer({}), failed)
        self.differ("status", failed, failed)

    def test_errors(self):
        def error(code=None, detail="no", version="placement 1.39", status=409):
            return answer({"errors": [{"status": status, "detail": detail, "request_id": detail,
                                       **({"code": code} if code else {})}]}, status,
                          version=version)
        self.same(error("placement.a", "one"), error("placement.a", "another"))
        # Below microversion 1.23 Placement's errors have no code.
        self.same(error(), error("placement.a"))
        self.differ("body", error("placement.a"), error("placement.b"))
        self.differ("status", error("placement.a"), error("placement.a", status=400))
        self.same(error("placement.a", version=None), error("placement.a"))
        self.same(answer(b"<html>", 503, **{"content-type": "text/html"}),
                  answer(b"<html> ", 503, **{"content-type": "text/html"}))

    def test_links_below_each_address(self):
        moved = copy.deepcopy(_PROVIDERS)
        for link in moved["resource_providers"][0]["links"]:
            link["href"] = f"/placement{link['href']}"
        self.same(answer(moved, base="/placement"), answer(_PROVIDERS))
        self.differ("body.resource_providers[uuid=a].links[rel=self].href",
                    answer(moved), answer(_PROVIDERS))

    def test_standard_names_of_a_newer_release(self):
        for key, wrap in (("traits", str), ("resource_classes", lambda name: {"name": name})):
            old, new = ({key: [wrap(name) for name in names]} for names in (
                ("CUSTOM_A", "HW_ONE", "HW_TWO"), ("HW_THREE", "CUSTOM_A", "HW_ONE")))
            self.assertEqual(["HW_THREE", "HW_TWO"], answers.newer_names(old, new))
            custom = {key: [*new[key], wrap("CUSTOM_B")]}
            self.assertIsNone(answers.newer_names(old, custom))
            self.assertIsNone(answers.newer_names(old, {**new, "generation": 1}))
        links = [{"resource_classes": [{"name": "VCPU", "links": [href]}]} for href in "ab"]
        self.assertIsNone(answers.newer_names(*links))
        self.assertIsNone(answers.newer_names("", None))


def _candidates(*providers, used=0, roots=None):
    """Return an answer's body with one candidate for each provider."""
    return {"allocation_requests": [
        {"allocations": {each: {"resources": {"VCPU": 1}}}, "mappings": {"": [each]}}
        for each in providers],
        "provider_summaries": {each: {
            "resources": {"VCPU": {"capacity": 8, "used": used}},
            "root_provider_uuid": (roots or {}).get(each, each)} for each in providers}}


class LimitedCandidatesTest(base.TestCase):
    """Which candidates a limit keeps is free; all else is not."""

    request = Request("/allocation_candidates?resources=VCPU%3A1&limit=2&member_of=in:x", "1.36")

    def compare(self, old, new, stores=("abcdef", "abcdef")):
        self.asked = []

        def ask(number):
            def answer_of(request):
                self.asked.append((number, request))
                # As a service that finds the one provider that the query allows.
                tree = request.target.rpartition("in_tree=")[2]
                return answer(_candidates(*(each for each in stores[number] if each == tree)))
            return answer_of
        return limited_candidates.compare(self.request, (old, new), (ask(0), ask(1)))

    def test_limits(self):
        for query, limit in (("limit=2", 2), ("limit=2&limit=3", 2), ("", None), ("limit=x", None),
                             ("limit=", None)):
            self.assertEqual(limit, limited_candidates.limit_of(
                Request(f"/allocation_candidates?{query}")))
        self.assertIsNone(limited_candidates.limit_of(Request("/resource_providers?limit=2")))
        both = _candidates("a", "b"), _candidates("a")
        self.assertTrue(limited_candidates.are_cut(both, 2))
        self.assertFalse(limited_candidates.are_cut(both, 3))
        for odd in (None, "", [], {}, {"allocation_requests": 5}):
            self.assertFalse(limited_candidates.are_cut((odd, both[0]), 2))

    def test_another_choice(self):
        difference = self.compare(_candidates("a", "b"), _candidates("b", "c"))
        self.assertIsNone(difference)
        query = "/allocation_candidates?resources=VCPU%3A1&member_of=in%3Ax&in_tree="
        self.assertEqual([(1, Request(f"{query}a", "1.36")), (0, Request(f"{query}c", "1.36"))],
                         self.asked)

    def test_a_candidate_that_the_other_does_not_have(self):
        difference = self.compare(_candidates("a", "b"), _candidates("b", "c"), ("ab", "abc"))
        self.assertIn("in_tree=c", difference.where)
        self.assertEqual("it is not a candidate", difference.old)
        difference = self.compare(_candidates("a", "b"), _candidates("b", "c"), ("abc", "bc"))
        self.assertIn("in_tree=a", difference.where)
        self.assertEqual("it is not a candidate", difference.new)

    def test_another_number(self):
        difference = self.compare(_candidates("a", "b"), _candidates("a"))
        self.assertEqual(("body.allocation_requests", "2 candidates", "1 candidates"),
                         difference)

    def test_what_both_say_of_a_provider(self):
        difference = self.compare(_candidates("a", "b"), _candidates("b", "c", used=3))
        self.assertEqual(("body.provider_summaries.b.resources.VCPU.used", "0", "3"),
                         difference)

    def test_candidates_that_no_query_singles_out(self):
        """One whose group several trees serve, and one that does not say what serves a group."""
        old, new = _candidates("a", "b"), _candidates("c", "d")
        old["allocation_requests"][0]["mappings"][""].append("b")
        del old["allocation_requests"][1]["mappings"]
        self.assertIsNone(self.compare(old, new))
        self.assertEqual([0, 0], [number for number, _ in self.asked])


def _result(verdict=Verdict.SAME, seconds=(0.02, 0.01), target="/traits", **more):
    return Result(Request(target, "1.39"), 1, verdict, seconds, 200, **more)


class ShadowReportTest(base.TestCase):

    def test_latencies_and_verdicts_by_kind(self):
        report = ShadowReport()
        for number in range(1, 101):
            report.add(_result(seconds=(number / 1000, number / 4000)))
        report.add(_result(Verdict.MOVING, None, "/usages?project_id=p"))
        traits, usages, everything = report.rows()
        self.assertEqual((50.0, 99.0, 12.5, 24.75, 4.0), tuple(traits[name] for name in (
            "old_p50", "old_p99", "new_p50", "new_p99", "times_faster")))
        self.assertEqual(("/usages", 1, 1, None, None), tuple(usages[name] for name in (
            "kind", "requests", "moving", "old_p50", "times_faster")))
        self.assertEqual(("all", 101, 100), (
            everything["kind"], everything["requests"], everything["same"]))
        self.assertTrue(report.is_good)

    def test_what_is_not_good(self):
        self.assertFalse(ShadowReport().is_complete)
        for verdict in Verdict:
            report = ShadowReport()
            report.add(_result())
            report.add(_result(verdict))
            self.assertEqual(
                (verdict in (Verdict.SAME, Verdict.MOVING, Verdict.UNANSWERED),
                 verdict is not Verdict.UNANSWERED),
                (report.is_good, report.is_complete), verdict)

    def test_details_are_bounded(self):
        report = ShadowReport()
        for _ in range(1500):
            report.add(_result(Verdict.DATA, difference=answers.Difference("body", "1", "2")))
        self.assertEqual((1000, 1500), (len(report.differences), report.verdicts["data"]))
