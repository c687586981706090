# SPDX-License-Identifier: Apache-2.0
"""The same requests to the facade and to openstack-placement, and their answers compared."""

import re

import testscenarios

from tests import base
from tests.conformance import (
    amount_cases,
    claim_cases,
    intended,
    protocol_cases,
    resource_cases,
    tree_cases,
    web,
    wire,
)
from tests.conformance.case import Case

_OLDER = [case for module in (protocol_cases, resource_cases, amount_cases)
          for group in module.GROUPS for case in group()]
_NEWER = [case for module in (tree_cases, claim_cases)
          for group in module.GROUPS for case in group()]
# After a request that may have changed something both servers are asked for these.
_AFTERWARDS = [Case(path, f"GET {path}") for path in (
    "/resource_providers/<full>", "/resource_providers/<full>/inventories",
    "/resource_providers/<full>/allocations", "/resource_providers/<empty>/inventories",
    "/resource_providers/<missing>", "/allocations/<missing>")]
_AFTERWARDS_OF_NEWER = [Case(path, f"GET {path}", version="1.39") for path in (
    "/resource_providers?in_tree=<root>", "/resource_providers/<child>/traits",
    "/resource_providers/<child>/aggregates", "/resource_providers/<root>/inventories",
    "/resource_providers/<child>/inventories", "/resource_providers/<child>/allocations",
    "/resource_providers/<missing>", "/allocations/<missing>", "/allocations/<owned>",
    "/usages?project_id=<project>")]


class _Worlds:
    """The world that the tests of this process share until one of them has changed it."""

    def __init__(self):
        self._world = None

    def current(self):
        if self._world is None:
            self._world = wire.World()
            for address in web.SERVERS.values():
                self._world.make(address())
        return self._world

    def discard(self):
        self._world = None


_WORLDS = _Worlds()


def _scenario(number, case):
    # A dot would have the test runner take the scenarios for several classes.
    return (f"{number} " + re.sub(r"[^\w<>]+", " ", case.name).strip(), {"case": case})


class LikeUpstream(testscenarios.WithScenarios, base.TestCase):
    """Status, headers and body are the same, and so is what the stores hold afterwards."""

    scenarios = [_scenario(number, case) for number, case in enumerate([*_OLDER, *_NEWER])]

    def test_answers(self):
        world = _WORLDS.current()
        found = self._differences(self.case, world)
        if self.case.changes and (min(self.statuses) < 400 or self._leaves_orphans()):
            _WORLDS.discard()
        difference = intended.DIFFERENCES.get(self.case.name)
        if difference is not None:
            self.assertEqual(difference.statuses, self.statuses, difference.reason)
            found = {name: values for name, values in found.items()
                     if name not in difference.excused}
        elif self.case.changes:
            for case in _AFTERWARDS if self.case in _OLDER else _AFTERWARDS_OF_NEWER:
                found.update({f"{case.name} afterwards: {name}": values for name, values
                              in self._differences(case, world).items()})
        if found:
            _WORLDS.discard()
        self.assertEqual({}, found, self.words)

    def _leaves_orphans(self):
        """Return whether upstream may have kept a consumer of a refused claim."""
        return self.case in _NEWER and "/allocations" in self.case.request and (
            self.statuses[1] == 400)

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
