# SPDX-License-Identifier: Apache-2.0
"""Check a history against a sequential model of a provider.

The model of a provider is its capacity, its generation, and what each consumer holds of it. An
accepted request replaces what its consumers hold, if that is within the capacity, and raises the
generation. A read returns generation and usage. A refused claim does not fit. A history is right
if its operations can be put into one order, in which the model gives the answers that the clients
received and no operation comes before another one that had ended when it started.

Since accepted requests and reads return the generation, their order is known. What is searched is
the order of requests with an unknown outcome: each may have made one of the generations that no
answer names, or have changed nothing.
"""

import bisect
import collections
import heapq
import itertools
from typing import NamedTuple

from tests.soak import one_order
from tests.soak.history import ACCEPTED, REFUSED, UNKNOWN, without_garbage_collection

# How many places for requests with an unknown outcome are tried on one provider.
_MOST_TRIED = 20_000
_MOST_FAULTS = 20
_NEVER = float("inf")


class Result(NamedTuple):
    """What was found.

    ``faults`` is a list of str; ``happened`` is how many of the requests with an unknown outcome
    changed a provider; ``held`` is what is held at the end: a dict of provider to dict of consumer
    to dict of class name to amount.
    """

    faults: list
    happened: int
    held: dict


class _Write(NamedTuple):
    """A request that was accepted, or whose outcome is unknown, on one provider.

    It makes the generations ``first`` to ``last``; both are 0 if they are not known.
    """

    first: int
    last: int
    start: float
    end: float
    consumers: dict
    operation: object


def check(providers, operations):
    """Check a history; return :class:`Result`.

    :param providers: list of :class:`tests.soak.history.Provider`
    :param operations: list of :class:`tests.soak.history.Operation`, in any order
    """
    with without_garbage_collection():
        return _check(providers, operations)


def _check(providers, operations):
    checks = {each.provider: _Check(each) for each in providers}
    for operation in operations:
        for provider in operation.writes:
            checks[provider].add(operation)
        for provider in operation.reads or ():
            checks[provider].add_read(operation)
    faults, unjustified, happened = [], collections.Counter(), set()
    for each in checks.values():
        faults += [f"provider {each.name}: {fault}" for fault in each.run()]
        unjustified.update(id(operation) for operation in each.unjustified)
        happened.update(each.happened)
    # A refusal is right if one of the providers had no room.
    faults += [f"refused although all of it had room: {operation}"
               for operation in operations if operation.outcome == REFUSED
               and 1 < len(operation.writes) == unjustified[id(operation)]]
    if not faults:
        faults = one_order.faults(
            [each for each in operations if each.outcome == ACCEPTED and each.generations])
    return Result(faults, len(happened), {name: each.held for name, each in checks.items()})


class _Check:
    """The check of one provider.

    :param provider: :class:`tests.soak.history.Provider`
    """

    def __init__(self, provider):
        self.name = provider.provider
        self._capacity = provider.capacity
        self._classes = sorted(provider.capacity)
        self._initial = self._generation = provider.generation
        self._known, self._unknown, self._refused, self._reads = [], [], [], []
        #: Consumer to dict of class name to amount.
        self.held = {}
        self._used = dict.fromkeys(provider.capacity, 0)
        # Of each generation from the first on; None within a request of several steps.
        self._used_at = [self._usage()]
        # Generation, consumer, what it held before and after.
        self._log = []
        # Unknown requests that have a place, with the generation before it.
        self._placed = []
        #: Operations that were refused although this provider had room for them.
        self.unjustified = []

    @property
    def happened(self):
        """The ids of the operations with an unknown outcome that have a place, as a set."""
        return {id(operation) for _, operation in self._placed}

    def add_read(self, operation):
        """Add an operation that read this provider."""
        self._reads.append((operation.reads[self.name], operation.start, operation.end))

    def add(self, operation):
        """Add an operation that writes, or was to write, this provider."""
        consumers = operation.writes[self.name]
        if operation.outcome == REFUSED:
            self._refused.append(operation)
        elif operation.outcome == UNKNOWN:
            self._unknown.append(_Write(0, 0, operation.start, _NEVER, consumers, operation))
        else:
            last = operation.generations[self.name]
            self._known.append(_Write(last - operation.steps + 1, last, operation.start,
                                      operation.end, consumers, operation))

    def run(self):
        """Return the faults, a list of str."""
        self._known.sort(key=lambda write: write.last)
        self._unknown.sort(key=lambda write: write.start)
        self._refused.sort(key=lambda operation: operation.start)
        self._index()
        faults = [*self._doubled(), *self._impossible_reads(), *self._out_of_order()]
        return (faults or self._search())[:_MOST_FAULTS]

    def _index(self):
        """Prepare :meth:`_window` and :meth:`_candidates`."""
        # Generations after which, and before which, something had ended or started.
        ended = sorted([(write.end, write.last) for write in self._known]
                       + [(end, read.generation) for read, _, end in self._reads])
        self._ends = [end for end, _ in ended]
        self._floors = list(itertools.accumulate((last for _, last in ended), max))
        begun = sorted([(-write.start, write.first - 1) for write in self._known]
                       + [(-start, read.generation) for read, start, _ in self._reads])
        self._starts = [start for start, _ in begun]
        self._ceilings = list(itertools.accumulate((first for _, first in begun), min))
        self._reads_at = collections.defaultdict(list)
        for read, _, _ in self._reads:
            self._reads_at[read.generation].append(read)
        # The earliest end of what made or saw a generation or a later one.
        points = sorted([(write.last, write.end) for write in self._known]
                        + [(read.generation, end) for read, _, end in self._reads])
        self._points = [generation for generation, _ in points]
        self._seen_by = [*reversed(list(itertools.accumulate(
            (end for _, end in reversed(points)), min))), _NEVER]
        self._top = max([self._initial, *self._points[-1:]])

    def _window(self, start, end):
        """Return the first and the last generation at which an operation can have happened."""
        ended = bisect.bisect_left(self._ends, start)
        begun = bisect.bisect_left(self._starts, -end)
        return (self._floors[ended - 1] if ended else self._initial,
                self._ceilings[begun - 1] if begun else _NEVER)

    def _doubled(self):
        last = self._initial
        for write in self._known:
            if write.first <= last:
                yield f"two requests made generation {write.first}, one is {write.operation}"
            last = write.last

    def _out_of_order(self):
        for write in self._known:
            first, last = self._window(write.start, write.end)
            if not first < write.first <= write.last <= last:
                yield (f"generation {write.last} was made by {write.operation} while it was "
                       f"between {first} and {last}")

    def _impossible_reads(self):
        for read, start, end in self._reads:
            first, last = self._window(start, end)
            if not first <= read.generation <= last:
                kind = "stale" if read.generation < first else "early"
                yield f"a {kind} read: {read}, between generations {first} and {last}"
        for read in self._reads_at[self._initial]:
            if self._differs(read):
                yield f"a wrong read: {read}, of what is not used"

    # -- the search --------------------------------------------------------------------------

    def _search(self):
        """Put the unknown requests into the gaps; return the faults of the best attempt."""
        best, tried = (-1, []), 0
        stack = [(0, self._mark(), iter([None]))]
        while stack:
            index, mark, choices = stack[-1]
            self._undo(mark)
            choice = next(choices, self)
            if choice is self:
                stack.pop()
                continue
            tried += 1
            if tried > _MOST_TRIED:
                return ["undecided, too many requests have an unknown outcome", *best[1]]
            index, faults = self._attempt(index, choice)
            if not faults:
                if self._generation >= self._top:
                    faults = self._wrong_refusals()
                    if not faults:
                        return []
                else:
                    faults = [f"no request made generation {self._generation + 1}"]
                stack.append((index, self._mark(), self._candidates(index)))
            best = max(best, (self._generation, faults), key=lambda each: each[0])
        return best[1]

    def _mark(self):
        return len(self._log), len(self._used_at)

    def _undo(self, mark):
        """Go back to what :meth:`_mark` returned."""
        written, generations = mark
        for _, consumer, before, after in reversed(self._log[written:]):
            self._hold(consumer, before, after)
        del self._log[written:], self._used_at[generations:]
        self._generation = self._initial + generations - 1
        while self._placed and self._placed[-1][0] >= self._generation:
            self._placed.pop()

    def _candidates(self, index):
        """Return the unknown requests that can have made the next generation, as an iterator."""
        room = self._known[index].first - 1 if index < len(self._known) else _NEVER
        generation, placed = self._generation, self.happened
        # What saw this generation cannot have ended before the request started.
        seen_by = self._seen_by[bisect.bisect_left(self._points, generation + 1)]
        return iter([write for write in self._unknown
                     if write.start <= seen_by and id(write.operation) not in placed
                     and generation + write.operation.steps <= room])

    def _attempt(self, index, choice):
        """Apply an unknown request, if any, and the known ones up to the next gap.

        :returns: tuple of the index of the next known request, and the faults
        """
        if choice is not None:
            first = self._generation + 1
            self._placed.append((self._generation, choice.operation))
            faults = self._apply(choice._replace(
                first=first, last=self._generation + choice.operation.steps))
            if faults:
                return index, faults
        known = self._known
        while index < len(known) and known[index].first == self._generation + 1:
            faults = self._apply(known[index])
            if faults:
                return index, faults
            index += 1
        return index, []

    def _apply(self, write):
        """Apply a request and return the faults."""
        if write.last > write.first:
            self._used_at += [None] * (write.last - write.first)
        self._generation = write.last
        before = self._used_at[write.first - 1 - self._initial]
        for consumer, amounts in write.consumers.items():
            old = self.held.get(consumer, {})
            self._log.append((write.last, consumer, old, amounts))
            self._hold(consumer, amounts, old)
        after = self._usage()
        self._used_at.append(after)
        for name, used, earlier in zip(self._classes, after, before, strict=True):
            if used > self._capacity[name] and used > earlier:
                return [f"over-committed: {used} {name} of {self._capacity[name]} at generation "
                        f"{write.last} by {write.operation}"]
        return [f"a wrong read: {read}, but it was {self._used} and {self.held}"[:1000]
                for read in self._reads_at.get(write.last, ()) if self._differs(read)]

    def _usage(self):
        return tuple([self._used[name] for name in self._classes])

    def _differs(self, read):
        return any(read.used.get(name, 0) != used for name, used in self._used.items()) or (
            read.held is not None and read.held != self.held)

    def _hold(self, consumer, amounts, old):
        for name, amount in old.items():
            self._used[name] -= amount
        for name, amount in amounts.items():
            self._used[name] += amount
        if amounts:
            self.held[consumer] = amounts
        else:
            self.held.pop(consumer, None)

    # -- refusals, of which no generation is known --------------------------------------------

    def _wrong_refusals(self):
        """Return faults; refusals by several providers are left to the check of all of them."""
        self.unjustified, faults = [], []
        histories = self._histories()
        # Each is put at the first generation that refuses it, in the order of their starts; those
        # that start after it has ended come at no earlier generation.
        floor, ended = self._initial, []
        for each in self._refused:
            while ended and ended[0][0] < each.start:
                floor = max(floor, heapq.heappop(ended)[1])
            generation = self._refused_at(each, floor, histories)
            if generation is None:
                self.unjustified.append(each)
                if len(each.writes) == 1:
                    faults.append(f"refused although it had room: {each}")
            elif len(each.writes) == 1:
                heapq.heappush(ended, (each.end, generation))
        return faults

    def _histories(self):
        """Return a dict of the consumer of a refusal to its list of generation and amounts."""
        found = {consumer: [] for each in self._refused for consumer in each.writes[self.name]}
        if found:
            for generation, consumer, _, amounts in self._log:
                if consumer in found:
                    found[consumer].append((generation, amounts))
        return found

    def _refused_at(self, operation, floor, histories):
        """Return the first generation from one on that refuses a claim; None if there is none."""
        first, last = self._window(operation.start, operation.end)
        # Unknown requests that started after it had ended come later.
        last = min([last, *(before for before, placed in self._placed
                            if placed.start > operation.end)])
        for generation in range(max(first, floor), min(last, self._generation) + 1):
            used = self._used_at[generation - self._initial]
            if used is not None and self._exceeds(
                    operation.writes[self.name], generation, used, histories):
                return generation
        return None

    def _exceeds(self, consumers, generation, used, histories):
        wanted = dict(zip(self._classes, used, strict=True))
        for consumer, amounts in consumers.items():
            history = histories[consumer]
            at = bisect.bisect_right(history, generation, key=lambda entry: entry[0])
            for name, amount in (history[at - 1][1] if at else {}).items():
                wanted[name] -= amount
            for name, amount in amounts.items():
                wanted[name] += amount
        # What does not grow is not refused.
        return any(wanted[name] > max(self._capacity[name], before)
                   for name, before in zip(self._classes, used, strict=True))
