# SPDX-License-Identifier: Apache-2.0
"""A run of the soak: a service, clients, a listener, and one fault after the other."""

import collections
import pathlib
import random
import time

import fixtures
import psutil
import testtools

from placement_rpc import api
from placement_rpc.db.queries import events
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.integration import ledger, processes
from tests.soak import conductors, databases, verdict
from tests.soak.books import Listener
from tests.soak.brokers import BrokerCluster, OneBroker
from tests.soak.history import Provider, Recorder
from tests.soak.poison import Poison
from tests.soak.progress import Progress

_PROVIDERS = 48
_CAPACITY = {"VCPU": 200, "MEMORY_MB": 150_000}
_PROCESSES = 3
# Seconds within which the service has to accept claims again after a fault was repaired.
_RECOVERS = 120
# The share of a run after which memory is measured first: imports and connections are no leak.
_EARLY = 0.1

#: Name of a form to callables of ``pause`` that make its brokers and its databases.
FORMS = {
    "none": (OneBroker, lambda pause: databases.OneDatabase(pause, "postgresql")),
    "mariadb": (OneBroker, lambda pause: databases.OneDatabase(pause, "mariadb")),
    "galera": (BrokerCluster, databases.Galera),
    "postgresql": (BrokerCluster, databases.Standbys)}


class Soak(fixtures.Fixture):
    """Servers of one form, a service on them, clients, and faults.

    :param form: one of :data:`FORMS`
    :param seed: int, of the clients, of the order of the faults and of their times
    :param tell: callable of a text that reports progress
    :param directory: for the histories; None for a temporary one
    :param threads: of each of the three processes of clients
    :param snapshot_period: seconds between two snapshots, of which a short run needs a whole one
    """

    def __init__(self, form, seed=0, tell=lambda text: None, directory=None, threads=8,
                 snapshot_period=30):
        super().__init__()
        self.form, self.seed = form, seed
        self._chance, self._tell = random.Random(seed), tell
        self._directory, self._threads = directory, threads
        self._snapshot_period = snapshot_period
        #: List of tuples of the name of a fault, when it began, and when the next one began.
        self.windows = []
        self.counts = collections.Counter()
        #: Name of a process to resident MiB, early and late.
        self.memory = {}
        #: What was wrong with the run itself, a list of str.
        self.faults = []

    def _setUp(self):
        brokers, store = FORMS[self.form]
        self._brokers = self.useFixture(brokers(self._pause))
        self._databases = self.useFixture(store(self._pause))
        self.store = self.useFixture(placement_fixtures.Store(
            self._databases.url, transport_url=self._brokers.url))
        self._conductors = self.useFixture(conductors.Conductors(
            self._brokers, self._databases, self.store, self._pause, self._snapshot_period))
        self._client = api.PlacementAPI(conf=self.store.conf)
        self.addCleanup(self._client.close)
        self._client.ping(None, timeout=90)
        self._directory = pathlib.Path(
            self._directory or self.useFixture(fixtures.TempDir()).path)
        self.histories = [self._directory / f"history-{self.form}-{self.seed}-{number}.jsonl"
                          for number in range(_PROCESSES)]
        self._until = self._directory / f"until-{self.form}-{self.seed}"
        self._progress = Progress(self.histories)
        self._make_providers()
        self._listener = Listener(self._brokers.url, self.store.conf.notifications.stream)
        self._listener.start()
        self.addCleanup(self._listener.stop)

    def _make_providers(self):
        self.providers = []
        recorder = Recorder(self.histories[0])
        for number in range(_PROVIDERS):
            uuid = self._client.create_provider(None, f"provider {number}").uuid
            self._client.set_inventory(None, uuid, [
                base.inventory(*each) for each in _CAPACITY.items()])
            recorder.provider(Provider(uuid, 1, _CAPACITY))
            self.providers.append(uuid)
        recorder.close()

    def _pause(self, least, most):
        time.sleep(self._chance.uniform(least, most))

    @property
    def all_faults(self):
        """The faults of this form, those with the most precise target first."""
        return [*self._brokers.faults, *self._databases.faults, *self._conductors.faults]

    # -- the run -----------------------------------------------------------------------------

    def run(self, seconds, every=20, only=None, least=0):
        """Let parts fail while clients work, for some seconds, and each part at least once.

        :param every: seconds between two faults
        :param only: names of faults; None for all
        :param least: how many claims are accepted before the clients end, however slow the machine
        """
        known = [each.name for each in self.all_faults]
        unknown = set(only or ()) - set(known)
        if unknown:
            raise ValueError(f"{self.form} has no faults {unknown}, but {known}")
        faults = [each for each in self.all_faults if only is None or each.name in only]
        clients = processes.Claimers([{
            "transport_url": self._brokers.url, "providers": self.providers,
            "threads": self._threads, "until": str(self._until), "deadline": 60,
            "attempt_timeout": 4, "casts": 0.3, "history": str(path),
            "seed": f"{self.seed}-{number}"}
            for number, path in enumerate(self.histories)], program=("-m", "tests.soak.client"))
        self.addCleanup(clients.kill)
        poison = Poison(self._brokers.url, self.store.conf, self.seed)
        poison.start()
        try:
            self._fail(faults, seconds, every)
            self._reach(least)
        except KeyboardInterrupt:
            self._tell("interrupted; what was done so far is checked")
        finally:
            poison.stop()
            self._until.touch()
        self._finish(clients, poison)

    def _fail(self, faults, seconds, every):
        began, pending = time.monotonic(), []
        missing = {each.name for each in faults}
        self._recover("the start")
        while missing or time.monotonic() < began + seconds:
            if not pending:
                # In the order of their importance first.
                pending = faults[::-1]
                if not missing:
                    self._chance.shuffle(pending)
            fault = pending.pop()
            missing.discard(fault.name)
            start = time.monotonic()
            self._tell(f"{self._progress.accepted} accepted; {fault.name}")
            if not self._happens(fault):
                break
            repaired = time.monotonic()
            if not self._recover(fault.name):
                break
            time.sleep(max(0, start + every - time.monotonic()))
            self.windows.append((fault.name, start, time.monotonic()))
            self._tell(f"  repaired after {repaired - start:.1f} s, longest gap "
                       f"{self._progress.gap(start, time.monotonic()):.1f} s")
            if not self.memory and time.monotonic() > began + _EARLY * seconds:
                self._measure()

    def _happens(self, fault):
        """Let a part fail and repair it; return whether it could be repaired."""
        try:
            fault.act()
        except Exception as error:
            # Such as a server that does not start: what was done so far is checked all the same.
            self.faults.append(f"{fault.name}: {type(error).__name__}: {str(error)[:500]}")
            self._tell(self.faults[-1])
            return False
        self.counts[fault.name] += 1
        return True

    def _recover(self, after):
        """Wait until claims are accepted; return whether they are."""
        seen, ends = self._progress.accepted, time.monotonic() + _RECOVERS
        while self._progress.accepted <= seen:
            if time.monotonic() > ends:
                self.faults.append(f"no claim was accepted within {_RECOVERS} s after {after}")
                self._tell(self.faults[-1])
                return False
            time.sleep(0.1)
        return True

    def _reach(self, least):
        """Wait until a number of claims are accepted, for as long as any are."""
        while self._progress.accepted < least and self._recover("the last fault"):
            pass

    def _measure(self):
        pids = self._conductors.pids()
        for kind, nodes in ("broker", self._brokers.nodes), ("database", self._databases.nodes):
            pids |= {f"{kind} {number}": node.process.pid for number, node in enumerate(nodes)}
        for name, pid in pids.items():
            self.memory.setdefault(name, []).append(_resident(pid))

    def _finish(self, clients, poison):
        """Wait for the clients and the relay, and compare."""
        self._tell("the clients resolve what they do not know")
        self.reports = clients.results()
        self._measure()
        self._conductors.stop_snapshots()
        self._tell("comparing the answers with the store and with the events")
        for report in self.reports:
            self.counts.update(report["counts"])
        try:
            last = base.wait_published(self.store.database, 90)
        except TimeoutError as error:
            self.faults.append(f"not all events are published: {error}")
            with self.store.database.reader() as tx:
                last = events.last_position(tx)
        self._listener.wait_for(last)
        self._listener.stop()
        self.books = self._listener.books
        self.counts["events"] = self.books.position
        self.faults += poison.faults(self.store.conf)
        self.counts["poison"] = poison.published
        self.verdict = verdict.of(
            self.store.database, self.reports, self.histories, self.books, last)
        self.faults += self.verdict.faults
        if len(self._listener.events) == self.books.position:
            self._check_late_listener()
        else:
            self._tell("too many events: no listener that starts from a snapshot is compared")

    def _check_late_listener(self):
        """Compare an account from the last snapshot on with one from the first event on."""
        try:
            ledger.check_late_listener(
                testtools.TestCase("run"), self.store.database, self._listener.events)
        except AssertionError as error:
            self.faults.append(f"a listener that starts from a snapshot: {error}"[:1000])

    def figures(self):
        """Return the result as JSON values; see :mod:`tests.soak.report`."""
        goals = {each.name: each.goal for each in self.all_faults}
        kinds = {}
        for name, start, end in self.windows:
            found = kinds.setdefault(name, {"times": 0, "goal": goals[name], "gaps": [],
                                            "latencies": []})
            found["times"] += 1
            found["gaps"].append(self._progress.gap(start, end))
            found["latencies"] += self._progress.latencies(start, end)
        return {
            "form": self.form, "seed": self.seed, "counts": dict(self.counts),
            "lost": self.verdict.lost, "doubled": self.verdict.doubled,
            "over_committed": self.verdict.over_committed,
            "unknown_that_happened": self.verdict.happened,
            "young_queues_kept_percent": self._brokers.young.kept,
            "stopped_brokers": dict(self._brokers.rejoined),
            "memory_mib": {name: [sizes[0], sizes[-1]] for name, sizes in self.memory.items()},
            "faults": {name: {
                "times": found["times"], "goal": found["goal"],
                "gap": round(max(found["gaps"]), 2), "p99": _p99(found["latencies"])}
                for name, found in kinds.items()},
            "wrong": self.faults}


def _p99(values):
    return round(sorted(values)[int(0.99 * len(values))], 3) if values else None


def _resident(pid):
    """Return the MiB of a process and all below it; what they share counts once."""
    try:
        process = psutil.Process(pid)
        return sum(each.memory_full_info().pss for each in (
            process, *process.children(recursive=True))) // 2 ** 20
    except psutil.NoSuchProcess:
        return 0
