# SPDX-License-Identifier: Apache-2.0
"""Servers, clients and results that the parts of the benchmark share."""

import contextlib
import os
import pathlib
import socket
import statistics
import time
import urllib.request

import psutil
import rich.console
from prometheus_client import parser

from placement_rpc import api
from placement_rpc.db.queries import events
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers
from tests.benchmarks.module_process import ModuleProcess
from tests.integration import processes

_CLIENTS = 2
_THREADS = 8
_WORKERS = int(os.environ.get("BENCH_WORKERS", "2"))
_ROOT = pathlib.Path(__file__).parents[2]


class Report:
    """Results of the measurements."""

    def __init__(self):
        self.console = rich.console.Console()
        self.results = []

    def say(self, text):
        """Print the progress."""
        self.console.print(text, style="dim")

    def keep(self, name, value, unit, note=""):
        """Store a figure for the report."""
        self.results.append({"name": name, "value": value, "unit": unit, "note": note})


class Bench:
    """The servers and the clients.

    :param kept: Report
    """

    def __init__(self, stack, quick, kept):
        self.seconds, self.rounds = (1.5, 2) if quick else (5, 4)
        self.stack = stack
        self.keep, self.say = kept.keep, kept.say
        self.say("Starting RabbitMQ and PostgreSQL ...")
        self.broker = stack.enter_context(servers.RabbitMQ())
        self.postgresql = stack.enter_context(servers.PostgreSQL(durable=True))
        self.store = stack.enter_context(placement_fixtures.Store(
            self.postgresql.create_database(), transport_url=self.broker.url))
        self.metrics_port = _free_ports(_WORKERS)
        self.conductor = stack.enter_context(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "metrics": {"port": self.metrics_port},
            "conductor": {"workers": _WORKERS}}))
        self.echoes = [self._spawn("echo_server", self.broker.url, f"echo{number}")
                       for number in range(2)]
        self.bare = []
        self.clients = []

    def _spawn(self, module, *arguments):
        return self.stack.enter_context(ModuleProcess(module, *arguments))

    @contextlib.contextmanager
    def without_outbox(self, providers):
        """Run conductors that write no events, for a block; every index misses their changes."""
        self.bare = [self._spawn(
            "bare_conductor", self.broker.url, self.store.conf.database.connection, f"{number}")
            for number in range(2)]
        self.connect(providers)
        yield
        for process in self.bare:
            process.end()
        self.bare = []
        self.follow()

    def metric(self, name):
        """Return the sum of a metric over the conductor's workers, a float."""
        total = 0.0
        for number in range(_WORKERS):
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.metrics_port + number}/metrics") as answer:
                for family in parser.text_string_to_metric_families(answer.read().decode()):
                    total += sum(each.value for each in family.samples if each.name == name)
        return total

    @property
    def address(self):
        """Where the broker is, a dict of what :class:`amqp.Connection` takes"""
        return {"host": f"127.0.0.1:{self.broker.port}", "userid": self.broker.username,
                "password": self.broker.password}

    def follow(self):
        """Wait until the conductors have rebuilt their indexes: the store was filled directly."""
        with api.PlacementAPI(conf=self.store.conf) as client:
            for each in client.get_versions(None, timeout=60).objects:
                server = f"{each.host}.{each.binary}.{each.worker}"
                if not each.alive or each.binary == "bare":
                    continue
                while not self._is_current(client, server):
                    time.sleep(0.2)

    @staticmethod
    def _is_current(client, server):
        after = 0
        while after is not None:
            found = client.verify_index(None, server, after, timeout=60)
            if found is None or found["differences"]:
                return False
            after = found["next"]
        return True

    def connect(self, providers):
        """Replace the client processes by new ones that work on these providers."""
        for client in self.clients:
            client.end()
        self.clients = [self._spawn("client") for _ in range(_CLIENTS)]
        for client in self.clients:
            client.tell({"transport_url": self.broker.url, "providers": providers,
                         "threads": _THREADS})
        self.measure("ping", 1)
        self.measure("echo", 1)
        while self.bare and not self.measure("claim_without_outbox", 1)["done"]:
            self.say("Waiting for the conductors without an outbox ...")

    def measure(self, work, seconds=None, clients=_CLIENTS, threads=_THREADS,
                until_empty=False):
        """Have clients do one kind of work; return the rate and the duration of each call."""
        before = self._processor_times()
        for client in self.clients[:clients]:
            client.tell({"work": work, "seconds": seconds or self.seconds,
                         "threads": threads, "until_empty": until_empty})
        answers = [client.hear() for client in self.clients[:clients]]
        spent = {name: value - before[name] for name, value in self._processor_times().items()}
        done = sum(each["done"] for each in answers)
        return {"done": done, "rate": done / max(each["seconds"] for each in answers),
                "took": sorted(took for each in answers for took in each["took"]),
                "ms": {name: 1000 * value / max(1, done) for name, value in spent.items()}}

    def in_turns(self, *works, **how):
        """Measure several kinds of work in turns; return a list of rounds for each."""
        rounds = {work: [] for work in works}
        for _ in range(self.rounds):
            for work in works:
                rounds[work].append(self.measure(work, **how))
        return rounds

    def _processor_times(self):
        parts = {
            "clients": [psutil.Process(each.pid) for each in self.clients],
            "servers": [
                psutil.Process(each.pid) for each in [*self.echoes, *self.bare]] + _tree(
                self.conductor.process.pid),
            "broker": _tree(self.broker.process.pid),
            "database": _tree(self.postgresql.process.pid)}
        return {name: sum(_spent(each) for each in group) for name, group in parts.items()}

    def settle(self):
        """Wait until casts are settled and events published; return the seconds it took."""
        began = time.monotonic()
        seen = None
        while True:
            with self.store.database.reader() as tx:
                status = events.status(tx)
            if status["published_position"] == status["events"] == seen:
                return time.monotonic() - began
            seen = status["events"]
            time.sleep(0.5)


def _free_ports(number):
    """Return the first of a number of consecutive free ports."""
    while True:
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for each in range(1, number):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port + each))
            except OSError:
                continue
            return port


def _tree(pid):
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _spent(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return times.user + times.system
    return 0


def median(rounds, key="rate"):
    return statistics.median(each[key] for each in rounds)


def percentile(took, share):
    return 1000 * took[min(len(took) - 1, int(share * len(took)))]


def spread(rounds):
    rates = [each["rate"] for each in rounds]
    return f"{min(rates):.0f} to {max(rates):.0f}"
