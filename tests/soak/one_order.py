# SPDX-License-Identifier: Apache-2.0
"""Whether accepted requests about several providers have one order over all of them.

On each provider the generations say the order. The orders of all providers and the times of the
requests must not contradict each other: there is an order of all requests that has them all.
"""

import collections
import heapq
import itertools


def faults(operations):
    """Return a list of str, which is empty if there is an order.

    :param operations: list of :class:`tests.soak.history.Operation`, accepted and with generations
    """
    waits, following = _chains(operations)
    ready = [(operations[number].start, number)
             for number, waiting in enumerate(waits) if not waiting]
    heapq.heapify(ready)
    ends = sorted((operation.end, number) for number, operation in enumerate(operations))
    first_end, done = 0, bytearray(len(operations))
    while ready:
        start, number = heapq.heappop(ready)
        while done[ends[first_end][1]]:
            first_end += 1
        end, ended = ends[first_end]
        if end < start:
            return [f"requests on several providers contradict each other: {operations[ended]} "
                    f"ended before {operations[number]} started, and comes after it"]
        done[number] = 1
        for later in following[number]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (operations[later].start, later))
    if not all(done):
        stuck = operations[done.index(0)]
        return [f"requests on several providers contradict each other; one is {stuck}"]
    return []


def _chains(operations):
    """Return the orders of the providers.

    :returns: tuple of, for each operation, how many come directly before it, and a list of the
        numbers of those that come directly after it
    """
    chains = collections.defaultdict(list)
    for number, operation in enumerate(operations):
        for provider, generation in operation.generations.items():
            chains[provider].append((generation, number))
    waits, following = [0] * len(operations), [[] for _ in operations]
    for chain in chains.values():
        chain.sort()
        for (_, earlier), (_, later) in itertools.pairwise(chain):
            following[earlier].append(later)
            waits[later] += 1
    return waits, following
