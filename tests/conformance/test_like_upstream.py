# SPDX-License-Identifier: Apache-2.0
"""The same requests to the facade and to openstack-placement, and their answers compared."""

import json
import re

import testscenarios

from tests import base
from tests.conformance import (
    amount_cases,
    candidate_cases,
    claim_cases,
    intended,
    inventory_cases,
    protocol_cases,
    provider_cases,
    resource_cases,
    web,
    wire,
)
from tests.conformance.case import Case

# After a request that may have changed something both servers are asked for these.
_AFTERWARDS = [Case(path, f"GET {path}") for path in (
    "/resource_providers/<full>", "/resource_providers/<full>/inventories",
    "/resource_providers/<full>/allocations", "/resource_providers/<empty>/inventories",
    "/resource_providers/<missing>", "/allocations/<missing>")]
_AFTERWARDS_OF_TREES = [Case(path, f"GET {path}", version="1.39") for path in (
    "/resource_providers?in_tree=<full>", "/resource_providers?in_tree=<empty>",
    "/resource_providers/<child>/traits", "/resource_providers/<empty>/traits",
    "/resource_providers/<empty>/aggregates", "/resource_providers/<missing>")]
_AFTERWARDS_OF_CLAIMS = [Case(path, f"GET {path}", version="1.39") for path in (
    "/resource_providers?in_tree=<root>", "/resource_providers/<root>/inventories",
    "/resource_providers/<leaf>/inventories", "/resource_providers/<leaf>/allocations",
    "/allocations/<missing>", "/allocations/<owned>", "/usages?project_id=<project>")]


def _scenarios(*modules):
    # A dot would have the test runner take the scenarios for several classes.
    return [(f"{number} " + re.sub(r"[^\w<>]+", " ", case.name).strip(), {"case": case})
            for number, case in enumerate(
                case for module in modules for group in module.GROUPS for case in group())
            # Each third one, and those of which a difference is known, unless in full.
            if base.FULL or number % 3 == 0 or case.name in intended.DIFFERENCES]


class _Worlds:
    """The world that the tests of this process share until one of them has changed it."""

    def __init__(self, make):
        self._make, self._world = make, None

    def current(self):
        if self._world is None:
            self._world = self._make()
            for address in web.SERVERS.values():
                self._world.make(address())
        return self._world

    def discard(self):
        self._world = None


class _LikeUpstream(testscenarios.WithScenarios):
    """Status, headers and body are the same, and so is what the stores hold afterwards."""

    worlds = _Worlds(wire.World)
    afterwards = _AFTERWARDS
    #: whether upstream may keep the consumers of claims that it refuses
    leaves_orphans = False

    def test_answers(self):
        world = self.worlds.current()
        found = self._differences(self.case, world)
        if self.case.changes and (min(self.statuses) < 400 or (
                self.leaves_orphans and self.statuses[1] == 400)):
            self.worlds.discard()
        difference = intended.DIFFERENCES.get(self.case.name)
        if difference is not None:
            self.assertNotEqual({}, found, "there is no difference any more")
            self.assertEqual(difference.statuses, self.statuses, difference.reason)
            found = {name: values for name, values in found.items()
                     if name not in difference.excused}
        elif self.case.changes:
            for case in self.afterwards:
                found.update({f"{case.name} afterwards: {name}": values for name, values
                              in self._differences(case, world).items()})
        if found:
            self.worlds.discard()
        self.assertEqual({}, found, self.words)

    def _differences(self, case, world):
        """Return a dict of the name of each difference to its values here and there."""
        answers = [case.send(address(), world) for address in web.SERVERS.values()]
        if case is self.case:
            self.statuses = tuple(answer.status for answer in answers)
            self.words = " | ".join(answer.summary() for answer in answers)
        here, there = (answer.comparable(case.whole) for answer in answers)
        wire.without_more_words(here["body"], there["body"])
        for name in ("openstack-api-version", "vary"):
            # Every answer of the facade has them; of upstream's errors some have not.
            if there[name] is None and there["status"] >= 400 and here[name] is not None:
                del here[name]
        return {name: (here[name], there[name]) for name in here if here[name] != there[name]}


class FirstVersionsTest(_LikeUpstream, base.TestCase):

    scenarios = _scenarios(protocol_cases, resource_cases, amount_cases)


class TreesTest(_LikeUpstream, base.TestCase):

    afterwards = _AFTERWARDS_OF_TREES
    scenarios = _scenarios(provider_cases)


class ClaimsTest(_LikeUpstream, base.TestCase):

    afterwards = _AFTERWARDS_OF_CLAIMS
    scenarios = _scenarios(inventory_cases, claim_cases)
    leaves_orphans = True


class CandidatesTest(_LikeUpstream, base.TestCase):

    worlds = _Worlds(candidate_cases.Cloud)
    scenarios = _scenarios(candidate_cases)


class LimitedCandidatesTest(base.TestCase):
    """Which candidates a limit keeps is open; how many, and what they are, is not."""

    def test_answers(self):
        world = CandidatesTest.worlds.current()
        for query in candidate_cases.LIMITED:
            every = self.answer(web.facade, world, query)
            requests = every["allocation_requests"]
            for limit in (1, 2, len(requests) - 1, len(requests) + 1):
                limited = f"{query}&limit={limit}"
                found = self.answer(web.facade, world, limited)
                its = self.answer(web.upstream, world, limited)["allocation_requests"]
                chosen = found["allocation_requests"]
                self.assertEqual(len(its), len(chosen), limited)
                for each in (*chosen, *its):
                    self.assertIn(each, requests, limited)
                self.assertLessEqual(found["provider_summaries"].items(),
                                     every["provider_summaries"].items())
                self.assertLessEqual({uuid for each in chosen for uuid in each["allocations"]},
                                     found["provider_summaries"].keys())

    def answer(self, address, world, query):
        answer = Case("limited", f"GET /allocation_candidates?{query}", version="1.39").send(
            address(), world)
        return wire.ordered(json.loads(answer.body))
