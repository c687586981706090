# SPDX-License-Identifier: Apache-2.0
"""Workers that are stopped (SIGSTOP) at random moments: the others go on, and nothing is doubled.

A stopped worker holds the calls that it has taken, and the locks of its transaction.
"""

import os
import random
import signal
import statistics
import sys
import threading
import time
from typing import NamedTuple

import psutil
import testscenarios

from placement_rpc import api
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import ledger, processes
from tests.integration.claimer import Claimer

_PROVIDERS = 8
# The goals are 1 second on other providers and 3 on the same, at the median of many stops. Within
# them lie the time-outs, which do not depend on the machine. A busy machine may need more time for
# the rest, at a single stop, and so at the median of a few.
_OTHERS, _SAME, _BUSY = 1.0, 3.0, 2.0
_ROUNDS = 20 if base.FULL else 3


class _Call(NamedTuple):
    began: float
    ended: float
    answered: bool


class _Client(Claimer):
    """A thread that claims from some providers, and records when its calls were answered.

    :param providers: list of uuids
    :param number: int, different for each client
    :param goes_on: a threading.Event that it waits for before each call; None for no pauses
    """

    def __init__(self, client, providers, number, goes_on=None):
        super().__init__(client, {"requests": 10 ** 9, "providers": providers, "seed": "frozen"},
                         number)
        self.calls = []
        self.over = threading.Event()
        self._goes_on = goes_on
        self.thread = threading.Thread(target=self.run)

    def _is_over(self):
        if self._goes_on is not None:
            self._goes_on.wait()
        return self.over.is_set()

    def _answer_of(self, act):
        began, failures = time.monotonic(), len(self.failures)
        super()._answer_of(act)
        self.calls.append(_Call(began, time.monotonic(), len(self.failures) == failures))

    @property
    def answered(self):
        """When this client's requests were answered: accepted or refused, not failed."""
        return [call.ended for call in self.calls if call.answered]

    @property
    def longest(self):
        """The longest time in seconds from a request to its answer or its failure."""
        return max((call.ended - call.began for call in self.calls), default=0.0)


class FrozenWorkerTest(testscenarios.WithScenarios, base.TestCase):
    """Two conductors of two workers each; one worker at a time is stopped."""

    time_limit = 600
    scenarios = [(kind, {"kind": kind}) for kind in (
        ("postgresql", "mariadb") if base.FULL else ("postgresql",))]

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), transport_url=self.broker.url))
        conductors = [self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "conductor": {"host": f"host{number}", "workers": 2, "threads": 4}}))
            for number in range(2)]
        self.api = api.PlacementAPI(conf=self.store.conf)
        self.addCleanup(self.api.close)
        self.api.ping(None, timeout=90)
        base.wait_until(lambda: len(self.api.get_versions(None).objects) == 4)
        self.workers = [worker for each in conductors
                        for worker in psutil.Process(each.process.pid).children()]
        self.assertEqual(4, len(self.workers))
        # A process that is stopped cannot be ended in any other way than by SIGKILL.
        self.addCleanup(self.thaw)
        self.providers = []
        for number in range(_PROVIDERS):
            uuid = self.api.create_provider(None, f"provider {number}").uuid
            self.api.set_inventory(None, uuid, [
                base.inventory("VCPU", 400), base.inventory("MEMORY_MB", 300_000)])
            self.providers.append(uuid)

    def thaw(self):
        for worker in self.workers:
            if worker.is_running():
                worker.resume()

    def clients(self, goes_on):
        """Start threads: some with a provider of its own or a shared one, others with fresh ones.

        Those with fresh providers make calls only while a worker is stopped, so that it cannot
        have locked anything of theirs.
        """
        *own, one, two, shared = self.providers
        busy = [_Client(self.api, [uuid, shared], number) for number, uuid in enumerate(own)]
        fresh = [_Client(self.api, [uuid] * 2, uuid, goes_on) for uuid in (one, two)]
        for each in busy + fresh:
            each.thread.start()
        return busy, fresh

    def test_the_others_go_on(self):
        goes_on, chance = threading.Event(), random.Random(13)
        busy, fresh = self.clients(goes_on)
        gaps = {"other providers": [], "the same providers": []}
        try:
            base.wait_until(lambda: all(len(each.answered) > 20 for each in busy))
            for _ in range(_ROUNDS):
                time.sleep(chance.uniform(0.2, 0.5))
                worker = chance.choice(self.workers)
                began = time.monotonic()
                os.kill(worker.pid, signal.SIGSTOP)
                goes_on.set()
                time.sleep(_SAME + _BUSY)
                goes_on.clear()
                ended = time.monotonic()
                os.kill(worker.pid, signal.SIGCONT)
                for name, groups in (("other providers", [fresh]),
                                     ("the same providers", [[each] for each in busy])):
                    gaps[name].append(max(_gap(some, began, ended) for some in groups))
        finally:
            self.thaw()
            for each in busy + fresh:
                each.over.set()
            goes_on.set()
            for each in busy + fresh:
                each.thread.join(120)
        clients = busy + fresh
        longest = {name: round(max(each.longest for each in group), 2)
                   for name, group in (("fresh", fresh), ("busy", busy))}
        print(f"\n{self.kind}: {_ROUNDS} stops; gaps in seconds, median and longest: "
              + ", ".join(f"{name} {statistics.median(some):.2f}, {max(some):.2f}"
                          for name, some in gaps.items())
              + f"; the longest calls {longest}; load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        ledger.check(self, self.store.database, [
            {"held": each.held, "sent": each.sent, "failures": each.failures, **each.outcomes}
            for each in clients])
        for name, goal in (("other providers", _OTHERS), ("the same providers", _SAME)):
            self.assertLess(max(gaps[name]), goal + _BUSY, name)
            if base.FULL:
                self.assertLess(statistics.median(gaps[name]), goal, name)


def _gap(clients, began, ended):
    """Return the longest time without an answer to any of some clients, between two times."""
    times = sorted(at for each in clients for at in each.answered if began < at < ended)
    return max(after - before for before, after in zip(
        [began, *times], [*times, ended], strict=True))
