# SPDX-License-Identifier: Apache-2.0
"""Compares OpenStack Placement with the model of candidates on random worlds and queries.

``python -W ignore -m tests.conformance.candidates_comparison FIRST LAST`` does so for a range of
seeds, each of which gives a world and eight queries, prints every difference, and counts.
"""

import collections
import logging
import random
import sys

from tests import candidates_http, candidates_random
from tests import candidates_model as model

_QUERIES = 8


def _may_fail(world, query):
    """Whether the peer may answer 500.

    It does where a sharing provider is not the root of its tree, if that tree cannot serve the
    whole unsuffixed group.
    """
    return any(each.parent and model.SHARES in each.traits for each in world.providers) and any(
        not group.suffix for group in query.groups)


def _may_be_missing(world, query, candidate):
    """Whether the peer may lose a candidate.

    It does if sharing providers alone serve the unsuffixed group: of all roots that it can belong
    to, the peer keeps one before it combines the groups.
    """
    return len(query.groups) > 1 and any(
        not suffix and all(model.SHARES in world.by_uuid[uuid].traits for uuid in uuids)
        for suffix, uuids in candidate.mappings)


def compare(peer, seed, counts):
    """Compare the answers to the queries of a seed; return a list of texts about differences.

    :param peer: :class:`tests.conformance.candidates_peer.Peer`
    :param counts: :class:`collections.Counter`, which is updated
    """
    rng = random.Random(seed)
    world = candidates_random.world(rng)
    peer.load(world)
    wrong = []
    for number in range(_QUERIES):
        query = candidates_random.query(rng, world, candidates_random.minor(rng))
        text = candidates_http.query_string(query)
        # Answers without mappings may rightly have equal candidates.
        by_anchor = query.limit is None and query.minor >= 34
        status, document = peer.ask(text, query.minor, by_anchor)
        counts["queries"] += 1
        wrong += [f"seed {seed}, query {number}, 1.{query.minor} {text}: {each}"
                  for each in _differences(
                      world, query, status, document, by_anchor, counts)]
    return wrong


def _differences(world, query, status, document, by_anchor, counts):
    try:
        found = model.candidates(world, query)
    except model.Unknown as error:
        counts["refused"] += 1
        return [] if status == 400 else [f"{status} although there is no {error}"]
    counts["not empty"] += bool(found)
    counts["candidates"] += len(found)
    if status == 500 and _may_fail(world, query):
        counts["failed as known"] += 1
        return []
    if status != 200:
        return [f"{status} {document}"]
    answer, optional = candidates_http.read(document, query.minor), ()
    if by_anchor:
        answer = answer._replace(requests=collections.Counter(set(answer.requests)))
    else:
        optional = {each for each in found if _may_be_missing(world, query, each)}
    counts["lost as known"] += not query.limit and answer.requests.total() < len(found)
    # Below 1.29 the peer removes summaries before it applies the limit, not after.
    return candidates_http.differences(
        world, query, found, answer, optional, may_show_more=query.minor < 29)


def _main(first, last):
    from tests.conformance.candidates_peer import Peer
    logging.disable(logging.CRITICAL)
    counts = collections.Counter()
    with Peer() as peer:
        for seed in range(first, last):
            for text in compare(peer, seed, counts):
                counts["differences"] += 1
                print(text, flush=True)
    print(f"seeds {first} to {last - 1}: {dict(counts)}")


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
