# SPDX-License-Identifier: Apache-2.0
"""Workers that are stopped (SIGSTOP) at random moments: the others go on, and nothing is doubled.

A stopped worker holds the calls that it has taken, and the locks of its transaction.
"""

import os
import random
import signal
import sys
import threading
import time

import psutil
import testscenarios

from placement_rpc import api
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import ledger, processes
from tests.integration.claimer import Claimer

_PROVIDERS = 8
_CLIENTS = 8
# The goals are 1 second on other providers and 3 on the same. Within them lie the time-outs, which
# do not depend on the machine; a busy machine needs more time for the rest.
_OTHERS, _SAME, _BUSY = 1.0, 3.0, 2.0
_ROUNDS = 20 if base.FULL else 4


class _Client(Claimer):
    """A thread that claims from providers of its own, and records when its calls were answered."""

    def __init__(self, client, providers, number):
        super().__init__(client, {"requests": 10 ** 9, "providers": providers, "seed": "frozen"},
                         number)
        self.answered = []
        self.longest = 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def _is_over(self):
        return self.over.is_set()

    def _make(self, method, argument):
        began = time.monotonic()
        result = super()._make(method, argument)
        self.answered.append(time.monotonic())
        self.longest = max(self.longest, self.answered[-1] - began)
        return result


class FrozenWorkerTest(testscenarios.WithScenarios, base.TestCase):
    """Two conductors of two workers each; one worker at a time is stopped."""

    time_limit = 600
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

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
        self.wait_for(lambda: len(self.api.get_versions(None).objects) == 4)
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

    def wait_for(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it did not happen in time")
            time.sleep(0.05)

    def clients(self):
        """Start threads, each with providers of its own but for the last, which share one."""
        shared = self.providers[-1]
        found = []
        for number in range(_CLIENTS):
            own = [self.providers[number]] if number < _PROVIDERS - 1 else [shared]
            client = _Client(self.api, [*own, shared], number)
            # Half of the clients use a provider that nobody else uses.
            if number < _CLIENTS // 2:
                client.order["providers"] = own * 2
            found.append(client)
            client.thread.start()
        return found

    def test_the_others_go_on(self):
        clients = self.clients()
        chance = random.Random(13)
        alone, sharing = clients[:_CLIENTS // 2], clients[_CLIENTS // 2:]
        gaps = {"other providers": 0.0, "the same providers": 0.0}
        try:
            self.wait_for(lambda: all(len(each.answered) > 20 for each in clients))
            for _ in range(_ROUNDS):
                time.sleep(chance.uniform(0.2, 0.5))
                worker = chance.choice(self.workers)
                began = time.monotonic()
                os.kill(worker.pid, signal.SIGSTOP)
                time.sleep(_SAME + _BUSY)
                ended = time.monotonic()
                for name, group in (("other providers", [alone, sharing]),
                                    ("the same providers", [[each] for each in clients])):
                    gaps[name] = max(gaps[name], *(_gap(some, began, ended) for some in group))
                os.kill(worker.pid, signal.SIGCONT)
        finally:
            self.thaw()
            for each in clients:
                each.over.set()
            for each in clients:
                each.thread.join(120)
        longest = max(each.longest for each in clients)
        print(f"\n{self.kind}: {_ROUNDS} stops; the longest gaps in seconds: "
              + ", ".join(f"{name} {gap:.2f}" for name, gap in gaps.items())
              + f"; the longest call {longest:.2f}", file=sys.stderr)
        ledger.check(self, self.store.database, [
            {"held": each.held, "sent": each.sent, "failures": each.failures, **each.outcomes}
            for each in clients])
        self.assertLess(gaps["other providers"], _OTHERS + _BUSY)
        self.assertLess(gaps["the same providers"], _SAME + _BUSY)


def _gap(clients, began, ended):
    """Return the longest time without an answer to any of some clients, between two times."""
    times = sorted(at for each in clients for at in each.answered if began < at < ended)
    return max(after - before for before, after in zip(
        [began, *times], [*times, ended], strict=True))
