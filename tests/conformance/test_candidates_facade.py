# SPDX-License-Identifier: Apache-2.0
"""This service and OpenStack Placement answer the same queries for candidates in the same way."""

import random
import re
import urllib.parse

from tests import base, candidates_http, candidates_random, candidates_store, http
from tests import candidates_model as model
from tests.conformance import candidates_peer

_WORLDS = base.examples(20)
_QUERIES = 8
_VALUES = (
    "", "0", "-1", "1", "+1", "1_0", "01", "x", "VCPU", "VCPU:0", "VCPU:-1", "VCPU:1:1", "VCPU:x",
    "VCPU: 1", "VCPU:+2", "VCPU:1,", ",VCPU:1", "VCPU:1,VCPU:2", "vcpu:1", "CUSTOM_UNKNOWN:1",
    "!", "!!CUSTOM_FAST", "!CUSTOM_FAST", "CUSTOM_FAST", "CUSTOM_FAST,",
    "CUSTOM_FAST,!CUSTOM_FAST", "in:CUSTOM_FAST", "in:CUSTOM_FAST,CUSTOM_NEAR", "in:",
    "in:!CUSTOM_FAST", "!in:CUSTOM_FAST",
    "CUSTOM_UNKNOWN", "in:CUSTOM_UNKNOWN", "_A", "_A,", "_A,_A", "_A,b", "none", "isolate", "any",
    *(f"{prefix}{value}" for prefix in ("", "!", "in:", "!in:", "in:!")
      for value in ("7b4fa5d2-4aa8-4b0e-9e0a-8a5d3a4a0001", "7b4fa5d24aa84b0e9e0a8a5d3a4a0001",
                    "7b4fa5d2-4aa8-4b0e-9e0a-8a5d3a4a0001,7b4fa5d2-4aa8-4b0e-9e0a-8a5d3a4a0002",
                    "7b4fa5d2")))
_NAMES = ("resources", "required", "member_of", "in_tree")
_OTHERS = ("limit", "group_policy", "root_required", "same_subtree", "pony", "resource",
           "resources01", "resources-", "resources_", f"resources{'x' * 64}",
           f"resources{'x' * 65}", "resources.", "required5", "resources5", "resourcesé")


def _differs_on_purpose(pairs):
    """Whether this service may refuse what the peer accepts, or the other way round.

    * A name that no trait can have is refused even after a group that finds nothing.
    * Of a parameter that is given twice and counts once, the peer checks the other value partly.
    """
    names = [name for name, _value in pairs]
    return any(names.count(name) > 1 for name in names if re.match(
        "group_policy|resources|in_tree|limit", name)) or any(
            re.match("required", name) and not re.fullmatch(r"(in:)?[A-Z0-9_!,]*", value)
            for name, value in pairs)


def _broken(rng, pairs):
    """Return the parameters of a query with one or two of them changed."""
    pairs = list(pairs)
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(pairs))
        name, value = pairs[place]
        action = rng.choice(("value", "value", "remove", "repeat", "name", "add"))
        if action == "value":
            pairs[place] = name, rng.choice(_VALUES)
        elif action == "remove" and len(pairs) > 1:
            del pairs[place]
        elif action == "repeat":
            pairs.insert(rng.randint(0, len(pairs)), (name, rng.choice((value, *_VALUES))))
        elif action == "name":
            suffix = rng.choice(("", "1", "_A", "b"))
            pairs[place] = rng.choice((*(f"{each}{suffix}" for each in _NAMES), *_OTHERS)), value
        else:
            pairs.append((rng.choice((*_NAMES, *_OTHERS)), rng.choice(_VALUES)))
    return pairs


class FacadeTest(http.HTTPTest):

    time_limit = 1200

    def setUp(self):
        super().setUp()
        candidates_store.prepare(self.api)
        self.peer = self.useFixture(candidates_peer.Peer())

    def world(self, rng):
        """Put a random world into both stores; return it.

        Nothing is shared in it: the peer loses candidates of sharing providers, or fails.
        """
        world = candidates_random.world(rng)
        for provider in world.providers:
            provider.traits.discard(model.SHARES)
        self.peer.load(world)
        candidates_store.load(self.database, world)
        self.running.manager.candidates.index.drop("another world")
        self.running.manager.candidates.index.wait_until_ready()
        return world

    def difference(self, pairs, minor):
        """Return how the answers to a query differ; None if they do not."""
        text = urllib.parse.urlencode(pairs)
        status, expected = self.peer.ask(text, minor)
        self.statuses.append(status)
        answer = self.send("GET", f"/allocation_candidates?{text}", version=f"1.{minor}")
        given = answer.status_code, answer.json
        if status != 200 or answer.status_code != 200:
            if status == answer.status_code and (
                    minor < 23 or _code(expected) == _code(answer.json)):
                return None
        elif any(name == "limit" for name, _value in pairs):
            if len(expected["allocation_requests"]) == len(answer.json["allocation_requests"]):
                return None
        elif candidates_http.read(expected, minor) == candidates_http.read(answer.json, minor):
            return None
        if _differs_on_purpose(pairs):
            return None
        return f"1.{minor} {text}: {given} instead of {(status, expected)}"

    def compare(self, change):
        """Compare the answers to random queries in random worlds.

        :param change: function of a source of randomness and parameters that returns parameters
        """
        self.statuses, wrong = [], []
        for seed in range(_WORLDS):
            rng = random.Random(seed)
            world = self.world(rng)
            for _ in range(_QUERIES):
                minor = candidates_random.minor(rng)
                pairs = candidates_http.parameters(candidates_random.query(rng, world, minor))
                wrong.append(self.difference(change(rng, pairs), minor))
        self.assertEqual([], [each for each in wrong if each])

    def test_queries(self):
        self.compare(lambda rng, pairs: pairs)
        self.assertLess(_WORLDS * _QUERIES, 1.1 * self.statuses.count(200))

    def test_broken_queries(self):
        self.compare(_broken)
        self.assertLess(_WORLDS * _QUERIES, 3 * self.statuses.count(400))


def _code(document):
    return document["errors"][0].get("code")
