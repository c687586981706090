# SPDX-License-Identifier: Apache-2.0
"""Find the candidates of a request in groups: trees whose providers can serve all of its parts.

The search looks at one window of trees after the other, from a random tree on, until it has what
is asked for. In each window arrays are narrowed down to the trees that have a provider for each
part (:mod:`~placement_rpc.candidates.choices`), then to those that have enough for all parts
together (:mod:`~placement_rpc.candidates.contention`), and only the candidates of these are
enumerated (:mod:`~placement_rpc.candidates.enumeration`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from placement_rpc import exception
from placement_rpc.candidates import arrangements, contention
from placement_rpc.candidates import parts as requests
from placement_rpc.candidates.choices import Batch, Finder
from placement_rpc.candidates.enumeration import Budget, Enumeration, ranks_in_runs
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.parts import Part
from placement_rpc.candidates.problem import Problem, Rules, in_order
from placement_rpc.candidates.query import Column, Found, Group, GroupsQuery
from placement_rpc.candidates.windows import Windows
from placement_rpc.conf.placement import BREADTH_FIRST, DEPTH_FIRST

#: The most candidates of an answer, whatever maximum the service has.
MAX_CANDIDATES = 1_000_000
#: The most parts of a request: classes of the unsuffixed group, and other groups.
MAX_PARTS = 256
# What a search may spend on enumerating, in units of about 4 ns: some 1.5 seconds.
_BUDGET = 400_000_000
# The bounds of a window, in slots.
_MIN_SLOTS = 1024
_MAX_SLOTS = 1 << 20
# The most pairs of a tree and a sharing provider that a window may have, about.
_MAX_PAIRS = 1 << 21
# How many trees are enumerated together.
_MAX_BATCH = 8192


def find(index: CandidateIndex, query: GroupsQuery, random: np.random.Generator,
         limit: int | None = None, strategy: str = BREADTH_FIRST) -> Found:
    """Return the candidates of a request.

    Groups are evaluated in their order of appearance. A class or a trait that does not exist is
    an error only if each group before can be served, as OpenStack Placement has it.

    :param random: for the tree to begin with
    :param limit: the maximum of the service, in addition to the query's limit; None for
        :data:`MAX_CANDIDATES`
    :param strategy: "breadth-first" returns the first candidate of each tree, then the second of
        each, and so on, and "depth-first" all of one tree before those of the next
    :raises ResourceClassNotFound: if there is no such class
    :raises TraitNotFound: if there is no such trait
    :raises RequestTooComplex: if the request has too many parts, or no candidate was found in the
        work that one search may do, and there may be one
    """
    search = _prepared(index, query, random)
    if search is None:
        return Found((), np.empty((0, 0), np.int32))
    maximum = MAX_CANDIDATES if limit is None else min(limit, MAX_CANDIDATES)
    # One more than the maximum shows whether there are more.
    count = maximum + 1 if query.limit is None else min(query.limit, maximum + 1)
    rows = (search.depth_first if strategy == DEPTH_FIRST else search.breadth_first)(count)
    is_incomplete = search.is_incomplete and len(rows) < count
    if is_incomplete and not len(rows):
        raise exception.RequestTooComplex(
            reason="no candidate was found among the first combinations of providers")
    return Found(search.columns, search.in_order_of_columns(rows[:maximum]),
                 is_incomplete or len(rows) > maximum)


def _prepared(index, query, random):
    """Return a search; None if it is clear that nothing can be found."""
    roots = requests.root_mask(index, query.root_required, query.root_forbidden)
    for number, group in enumerate(query.groups):
        try:
            is_possible = requests.is_possible(index, group)
        except (exception.ResourceClassNotFound, exception.TraitNotFound):
            if _has_root(index, roots) and _all_served(
                    index, query, query.groups[:number], random):
                raise
            return None
        if not is_possible:
            return None
    return _Search(index, query, roots, random)


def _has_root(index, roots):
    return roots is None or bool(roots[index.trait_set[index.root[index.root >= 0]]].any())


def _all_served(index, query, groups, random):
    """Return whether each of some groups has candidates by itself."""
    return all(len(find(index, GroupsQuery(
        [group], root_required=query.root_required, root_forbidden=query.root_forbidden, limit=1),
        random).rows) for group in groups)


class _Search:
    """One search, of a request whose classes and traits exist."""

    def __init__(self, index: CandidateIndex, query: GroupsQuery, roots: np.ndarray | None,
                 random: np.random.Generator):
        self._index, self._random = index, random
        parts, self.columns = _parts(index, query.groups)
        collective = [requests.collective_of(index, group) for group in query.groups]
        rules = Rules(query.group_policy == "isolate", query.nested,
                      frozenset(frozenset(each) for each in query.same_subtree
                                if len(set(each)) > 1),
                      next((each for each in collective if each is not None), None))
        self._order = in_order(parts, rules, [_size(index, part) for part in parts])
        self._problem = Problem([parts[number] for number in self._order], rules)
        self._finder = Finder(index, self._problem.parts, roots, rules.collective,
                              self._problem.contended)
        self._scope = _scope(index, parts, self._finder)
        self._budget = Budget(_BUDGET)

    @property
    def is_incomplete(self) -> bool:
        """Whether there may be candidates that were not found in the work of one search."""
        return self._budget.is_exceeded

    def in_order_of_columns(self, rows: np.ndarray) -> np.ndarray:
        """Return candidates with their parts in the order of :attr:`columns`."""
        return rows[:, np.argsort(self._order)]

    def depth_first(self, count: int) -> np.ndarray:
        """Return candidates, all of one tree before those of the next.

        :param count: how many at the most
        :returns: array of int32, candidates x parts in the order of the problem
        """
        found = _Candidates(self._problem, count, bool(self._finder.sharing))
        for batch in self._batches(found, 1):
            enumeration = self._enumeration(batch)
            quota = 0
            # Several times if the same candidates were found for other trees.
            while found.missing and not enumeration.is_done and not self._budget.is_spent:
                quota += found.missing
                trees, rows = enumeration.run(quota)
                for each in _by_tree(trees, rows) if self._problem.equal else [
                        rows[np.argsort(trees, kind="stable")]]:
                    found.arrange(found.add(each))
        return found.rows

    def breadth_first(self, count: int) -> np.ndarray:
        """Return candidates, the first of each tree before the second of any.

        Those that differ only in which of several equal groups has which provider come last.

        :param count: how many at the most
        :returns: array of int32, candidates x parts in the order of the problem
        """
        found = _Candidates(self._problem, count, bool(self._finder.sharing))
        started = []
        for batch in self._batches(found, None):
            enumeration = self._enumeration(batch)
            found.add(enumeration.run(1)[1])
            if not enumeration.is_done:
                started.append(enumeration)
        quota = 1
        while started and found.missing and not self._budget.is_spent:
            trees = sum(each.unfinished for each in started)
            quota += max(-(-found.missing // trees), quota) if trees else 1
            # The first of each tree that is new, then the second, and so on.
            ranked = [_by_rank(*each.run(quota)) for each in started]
            for rank in range(max(map(len, ranked))):
                for each in ranked:
                    if rank < len(each):
                        found.add(each[rank])
            started = [each for each in started if not each.is_done]
        found.arrange(found.rows)
        return found.rows

    def _enumeration(self, batch):
        return Enumeration(self._index, self._problem, batch, self._budget)

    def _batches(self, found: "_Candidates", size: int | None) -> Iterator[Batch]:
        """Yield trees that may have candidates, while candidates are missing.

        :param size: how many trees to begin with; None for as many as there are candidates to find
        """
        windows = _windows(self._index, self._scope, self._random)
        # A window has about as many trees as candidates are wanted, or as many more as the last
        # one was short of them.
        slots, largest = self._window_size(found.missing if size is None else size)
        while not self._budget.is_spent and found.missing:
            window = windows.take(min(slots, largest))
            if window is None:
                return
            before = len(found)
            for batch in self._split(self._finder.find(window), found, size):
                batch = self._possible(contention.enough(batch, self._problem.contentions))
                if len(batch):
                    yield batch
                if not found.missing or self._budget.is_spent:
                    return
            seen = window.end - window.first
            slots = 4 * seen if len(found) == before else max(_MIN_SLOTS, min(
                4 * seen, seen * found.missing // (len(found) - before) * 5 // 4))

    def _split(self, batch, found, size):
        """Yield the trees of a window in batches: ever larger ones if a size is given."""
        first = 0
        while first < len(batch):
            wanted = found.missing * 5 // 4 + 8 if size is None else size
            wanted = min(wanted, _MAX_BATCH)
            yield batch.part(first, first + wanted)
            first += wanted
            size = size and 2 * size

    def _window_size(self, trees):
        """Return how many slots have about so many trees, and how many a window may have."""
        index = self._index
        slots = len(index.id) // max(len(index.root), 1) + 1
        trees_of_pairs = _MAX_PAIRS // (1 + self._finder.sharing)
        return (max(_MIN_SLOTS, trees * slots * 3 // 2),
                max(_MIN_SLOTS, min(_MAX_SLOTS, trees_of_pairs * slots)))

    def _possible(self, batch):
        """Return the trees of a batch that have candidates for what restricts each other.

        With several sets of parts that restrict each other, each is tried by itself first: else
        one that is impossible would be tried with each candidate of the others.
        """
        components = self._problem.components
        for levels in components if len(components) > 1 else []:
            if not len(batch):
                return batch
            some = Problem([self._problem.parts[level] for level in levels], self._problem.rules)
            trees, _ = Enumeration(self._index, some, batch.of_parts(levels), self._budget).run(1)
            is_possible = np.zeros(len(batch), bool)
            is_possible[trees] = True
            batch = batch.where(is_possible)
        return batch


class _Candidates:
    """The candidates that were found so far, none of them twice.

    :param count: how many are wanted
    :param can_repeat: whether the same candidate can be found for several trees
    """

    def __init__(self, problem: Problem, count: int, can_repeat: bool):
        self._equal = problem.equal
        self._count = count
        self._rows = [np.empty((0, len(problem.parts)), np.int32)]
        self._size = 0
        self._seen: set[bytes] | None = set() if can_repeat else None

    def __len__(self) -> int:
        return self._size

    @property
    def missing(self) -> int:
        """How many candidates are still wanted."""
        return max(self._count - self._size, 0)

    @property
    def rows(self) -> np.ndarray:
        """All candidates, candidates x parts."""
        return np.concatenate(self._rows)[:self._count]

    def add(self, rows: np.ndarray) -> np.ndarray:
        """Add candidates, in which equal parts have their providers in any order.

        :returns: those that are new
        """
        if self._seen is not None:
            for equal in self._equal:
                rows[:, equal] = np.sort(rows[:, equal], axis=1)
            rows = self._new(np.ascontiguousarray(rows))
        self._rows.append(rows)
        self._size += len(rows)
        return rows

    def arrange(self, rows: np.ndarray) -> None:
        """Add what some candidates become when equal parts swap their providers."""
        found = arrangements.more(rows, self._equal, self.missing)
        self._rows.append(found)
        self._size += len(found)

    def _new(self, rows):
        data, size = rows.tobytes(), rows.shape[1] * rows.itemsize
        keys = [data[start:start + size] for start in range(0, len(data), size)]
        is_new = np.zeros(len(rows), bool)
        for number, key in enumerate(keys):
            is_new[number] = key not in self._seen
            self._seen.add(key)
        return rows[is_new]


def _by_tree(trees, rows):
    """Return the candidates of each tree: list of arrays."""
    order = np.argsort(trees, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(trees[order])) + 1)


def _by_rank(trees, rows):
    """Return the first candidates of each tree, then the second ones, and so on.

    :returns: list of arrays
    """
    order = np.argsort(trees, kind="stable")
    ranks = ranks_in_runs(trees[order])
    by_rank = np.argsort(ranks, kind="stable")
    return np.split(rows[order[by_rank]], np.flatnonzero(np.diff(ranks[by_rank])) + 1)


def _parts(index, groups: Sequence[Group]) -> tuple[list[Part], list[Column]]:
    """Return the parts of groups, those of the unsuffixed group first, and their columns.

    :returns: no parts if a group cannot be served
    """
    parts: list[Part] = []
    for group in sorted(groups, key=lambda each: each.suffix != ""):
        found = list(requests.parts_of(index, group))
        if not found:
            return [], []
        parts += found
        if len(parts) > MAX_PARTS:
            raise exception.RequestTooComplex(
                reason=f"it has more than {MAX_PARTS} groups and classes of the unsuffixed group")
    return parts, [Column(part.suffix, part.amounts) for part in parts]


def _size(index, part):
    """Return about how many providers can serve a part."""
    return min((len(index.inventories[class_id].slots) if class_id in index.inventories else 0
                for class_id in part.amounts), default=len(index.id))


def _scope(index, parts, finder):
    """Return the first slot of the trees that can have candidates, and the slot after them."""
    first, end = 0, len(index.id) if parts else 0
    for part in parts:
        if part.tree is not None and not finder.shares(part):
            first, end = max(first, part.tree[0]), min(end, part.tree[1])
    return first, max(first, end)


def _windows(index, scope, random):
    first, end = scope
    return Windows(index, first, end, int(random.integers(first, end)) if first < end else first)
