# SPDX-License-Identifier: Apache-2.0
"""Random histories of a Placement database, moved over and back."""

import contextlib
import itertools

import hypothesis
import testscenarios
from hypothesis import strategies as st

from tests import (
    base,
    moving_stores,
    placement_cloud,
    placement_contents,
    placement_oddities,
    servers,
)
from tests.placement_contents import Writer, inventory, uuid_of

_HOSTS, _CONSUMERS = 6, 5
_CLASSES = ("VCPU", "CUSTOM_GOLD", "CUSTOM_IRON")
_TRAITS = ("HW_CPU_X86_AVX2", "CUSTOM_FAST", "CUSTOM_NEAR", "MISC_SHARES_VIA_AGGREGATE")
_NUMBER = st.integers(0, 2 ** 16)


class _History:
    """Changes of a Placement database; a change that Placement refuses is left out.

    The arguments of the changes are any numbers.

    :param cloud: :class:`tests.placement_cloud.PlacementCloud`
    """

    def __init__(self, cloud):
        self._cloud, self._writer = cloud, Writer(cloud)
        for name in _CLASSES[1:]:
            cloud.send("PUT", f"/resource_classes/{name}")

    def apply(self, change, *numbers):
        """Apply a change, one of :data:`CHANGES`."""
        with contextlib.suppress(placement_cloud.Refused):
            getattr(self, change)(*numbers)

    @staticmethod
    def host(number):
        return f"host{number % _HOSTS}"

    def create(self, number, parent, has_parent):
        self._writer.provider(self.host(number), self.host(parent) if has_parent % 2 else None)

    def rename(self, number, name, parent):
        """Give a provider a name that another may have had, and a parent or none."""
        self._writer.change_provider(
            self.host(number), f"{'Name' if parent % 3 else 'name'} {name % 4}",
            self.host(parent) if parent % 2 else None)

    def delete(self, number, _a, _b):
        self._cloud.send("DELETE", f"/resource_providers/{uuid_of(self.host(number))}")

    def stock(self, number, classes, total):
        self._writer.inventories(self.host(number), **{
            name: inventory(1 + total % 50, allocation_ratio=1 + total % 7 / 3,
                            reserved=total % 2)
            for position, name in enumerate(_CLASSES) if classes >> position & 1})

    def mark(self, number, traits, aggregates):
        host = self.host(number)
        self._writer.traits(host, *(
            name for position, name in enumerate(_TRAITS) if traits >> position & 1))
        self._writer.aggregates(host, *(
            f"aggregate {position}" for position in range(3) if aggregates >> position & 1))

    def claim(self, consumer, hosts, amount):
        name = f"consumer{consumer % _CONSUMERS}"
        held = self._cloud.send("GET", f"/allocations/{uuid_of(name)}")
        self._writer.claim(
            name, {self.host(hosts + step): {_CLASSES[(amount + step) % 3]: 1 + amount % 4}
                   for step in range(1 + amount % 2)},
            project=f"project{amount % 3}", user=f"user{amount % 2}",
            generation=held.get("consumer_generation"),
            consumer_type=("INSTANCE", "MIGRATION", "OTHER")[amount % 3])

    def release(self, consumer, _a, _b):
        self._cloud.send("DELETE", f"/allocations/{uuid_of(f'consumer{consumer % _CONSUMERS}')}")

    def forget(self, number, _a, _b):
        """Delete a custom trait or class that may be in use."""
        self._cloud.send("DELETE", (
            f"/traits/{_TRAITS[1 + number % 2]}" if number % 4 < 2 else
            f"/resource_classes/{_CLASSES[1 + number % 2]}"))


CHANGES = ("create", "rename", "delete", "stock", "mark", "claim", "claim", "release", "forget")
# What is done between two parts of a history.
_STEPS = ("import", "export", "nothing")
_CHANGE = st.tuples(st.sampled_from(CHANGES), _NUMBER, _NUMBER, _NUMBER)
_PARTS = st.lists(st.tuples(st.lists(_CHANGE, max_size=25), st.sampled_from(_STEPS)), max_size=4)
# Enough that most of the later changes are not refused.
_FIRST = [*(("create", number, number // 2, number) for number in range(_HOSTS)),
          *(("stock", number, 7, 40) for number in range(_HOSTS)),
          *(("claim", number, number, number) for number in range(_CONSUMERS))]


class RandomHistoryTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 1200
    scenarios = [(f"{source} to {target}", {"source": source, "target": target})
                 for source, target in itertools.product(servers.DATABASES, repeat=2)
                 if base.FULL or (source, target) in (
                     ("sqlite", "sqlite"), ("mariadb", "postgresql"))]

    def setUp(self):
        super().setUp()
        # Little of it is done on real servers, since all three are the same to the rules.
        self.examples = base.examples(3 if self.source == "sqlite" else 2)

    def given(self, strategy, check):
        """Run a function with many values of a strategy."""
        hypothesis.settings(
            max_examples=self.examples, deadline=None, database=None, derandomize=not base.FULL,
            suppress_health_check=list(hypothesis.HealthCheck))(
                hypothesis.given(strategy)(check))()

    @contextlib.contextmanager
    def world(self):
        """Return a cloud, a store, and another database of Placement for the way back."""
        with placement_cloud.PlacementCloud(self.source) as cloud, \
                moving_stores.MovedTo(self.target) as store, \
                placement_cloud.PlacementCloud(self.source) as back:
            yield cloud, store, back

    def apply(self, parts, cloud, store, back):
        """Apply a history, with imports and exports between its parts."""
        history = _History(cloud)
        for change in _FIRST:
            history.apply(*change)
        for changes, step in parts:
            for change in changes:
                history.apply(*change)
            if step != "nothing":
                store.done("import", "--from", cloud.url)
            if step == "export":
                store.done("export", "--to", back.url)

    def dump(self, store):
        with moving_stores.Serving(store.url) as serving:
            return placement_contents.dump(serving.send)

    def test_the_same_cloud(self):
        def check(parts):
            with self.world() as (cloud, store, back):
                self.apply(parts, cloud, store, back)
                store.done("import", "--from", cloud.url, "--finish")
                store.done("verify", "--from", cloud.url)
                there = placement_contents.dump(cloud.send)
                self.assertEqual(there, self.dump(store))
                store.done("export", "--to", back.url)
                store.done("verify", "--from", back.url)
                self.assertEqual(there, placement_contents.dump(back.send))

        self.given(_PARTS, check)

    def test_with_oddities(self):
        """What is repaired stays as it is on the way back, and on the way there again."""
        names = sorted(placement_oddities.ODDITIES)

        def check(drawn):
            parts, odd = drawn
            with self.world() as (cloud, store, back), \
                    moving_stores.MovedTo(self.target) as again:
                placement_contents.fill(cloud)
                placement_oddities.spoil(cloud, *odd)
                self.apply(parts, cloud, store, back)
                store.done("import", "--from", cloud.url, "--finish")
                store.done("verify", "--from", cloud.url)
                store.done("export", "--to", back.url)
                store.done("verify", "--from", back.url)
                again.done("import", "--from", back.url, "--finish")
                self.assertEqual(self.dump(store), self.dump(again))
                self.assertEqual(self.dump(store), placement_contents.dump(back.send))

        self.given(st.tuples(_PARTS, st.lists(
            st.sampled_from(names), unique=True, min_size=1, max_size=5)), check)
