# SPDX-License-Identifier: Apache-2.0
"""``make bench``: the service beside a bare echo server, in one run, on private servers.

Numbers out, never a limit: machines are shared and noisy. What counts is the ratio of two
things that were measured in turns in the same run.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading
import time
import uuid

import psutil
import rich.console
import rich.table

from placement_rpc.db.queries import candidates, events
from placement_rpc.notifications import listener
from placement_rpc.objects import class_names
from placement_rpc.objects.node_migration import Settings
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers
from placement_rpc.upgrade import online
from tests.benchmarks import fleet, http_bench
from tests.integration import processes

_CLIENTS = 2
_THREADS = 8
_ROOT = pathlib.Path(__file__).parents[2]


class Report:
    """What was measured."""

    def __init__(self):
        self.console = rich.console.Console()
        self.results = []

    def say(self, text):
        """Tell whoever waits what is going on."""
        self.console.print(text, style="dim")

    def keep(self, name, value, unit, note=""):
        """Remember a figure."""
        self.results.append({"name": name, "value": value, "unit": unit, "note": note})


class Bench:
    """The servers and the clients; :param kept: Report"""

    def __init__(self, stack, quick, kept):
        self.seconds, self.rounds = (2, 2) if quick else (5, 4)
        self.stack = stack
        self.keep, self._say = kept.keep, kept.say
        self._say("Starting RabbitMQ and PostgreSQL ...")
        self.broker = stack.enter_context(servers.RabbitMQ())
        self.postgresql = stack.enter_context(servers.PostgreSQL(durable=True))
        self.store = stack.enter_context(placement_fixtures.Store(
            self.postgresql.create_database(), transport_url=self.broker.url))
        self.conductor = stack.enter_context(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "conductor": {"workers": os.environ.get("BENCH_WORKERS", 2)}}))
        self.echoes = [self._spawn("echo_server", self.broker.url, f"echo{number}")
                       for number in range(2)]
        self.bare = [self._spawn(
            "bare_conductor", self.broker.url, self.store.conf.database.connection, f"{number}")
            for number in range(2)]
        self.clients = []

    def _spawn(self, module, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{module}", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=_ROOT,
            text=True)
        self.stack.callback(process.wait)
        self.stack.callback(process.terminate)
        return process

    def connect(self, providers):
        """Start client processes that work on these providers, in place of earlier ones."""
        for client in self.clients:
            client.stdin.close()
            client.wait()
        self.clients = [self._spawn("client") for _ in range(_CLIENTS)]
        for client in self.clients:
            self._tell(client, {"transport_url": self.broker.url, "providers": providers,
                                "threads": _THREADS})
        self.measure("ping", 1)
        self.measure("echo", 1)
        self.measure("claim_without_outbox", 1)

    @staticmethod
    def _tell(client, order):
        client.stdin.write(json.dumps(order) + "\n")
        client.stdin.flush()

    def measure(self, work, seconds=None, clients=_CLIENTS, threads=_THREADS):
        """Let clients do one kind of work; returns done per second and the calls' times."""
        before = self._processor_times()
        for client in self.clients[:clients]:
            self._tell(client, {"work": work, "seconds": seconds or self.seconds,
                                "threads": threads})
        answers = [json.loads(client.stdout.readline()) for client in self.clients[:clients]]
        spent = {name: value - before[name] for name, value in self._processor_times().items()}
        done = sum(each["done"] for each in answers)
        return {"rate": done / max(each["seconds"] for each in answers),
                "took": sorted(took for each in answers for took in each["took"]),
                "ms": {name: 1000 * value / done for name, value in spent.items()}}

    def in_turns(self, *works, **how):
        """Measure several kinds of work in turns; returns a list of rounds for each."""
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
            "broker": _tree(self.broker._process.pid),
            "database": _tree(self.postgresql._process.pid)}
        return {name: sum(_spent(each) for each in group) for name, group in parts.items()}

    def settle(self):
        """Wait until casts are settled and events published; returns the seconds it took."""
        began = time.monotonic()
        seen = None
        while True:
            with self.store.database.reader() as tx:
                status = events.status(tx)
            if status["published_position"] == status["events"] == seen:
                return time.monotonic() - began
            seen = status["events"]
            time.sleep(0.5)


def _tree(pid):
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _spent(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return times.user + times.system
    return 0


def _median(rounds, key="rate"):
    return statistics.median(each[key] for each in rounds)


def _percentile(took, share):
    return 1000 * took[min(len(took) - 1, int(share * len(took)))]


def _spread(rounds):
    rates = [each["rate"] for each in rounds]
    return f"{min(rates):.0f} to {max(rates):.0f}"


def bench_claims(bench):
    """Claims per second, beside the echo of the same payload, 16 clients at once."""
    bench._say("Claims beside a bare echo, in turns ...")
    rounds = bench.in_turns("echo", "claim", "claim_without_outbox", "claim_batch")
    echo, single, bare, batch = rounds.values()
    bench.keep("bare echo, 16 clients", _median(echo), "calls/s", _spread(echo))
    bench.keep("claim_allocations, 16 clients", _median(single), "claims/s", _spread(single))
    ratios = [ours["rate"] / theirs["rate"] for ours, theirs in zip(single, echo, strict=True)]
    bench.keep("claim_allocations to echo", statistics.median(ratios), "ratio",
               f"{min(ratios):.2f} to {max(ratios):.2f}")
    bench.keep("claim_allocations without the outbox", _median(bare), "claims/s", _spread(bare))
    ratios = [ours["rate"] / theirs["rate"] for ours, theirs in zip(single, bare, strict=True)]
    bench.keep("claim_allocations to the same without the outbox", statistics.median(ratios),
               "ratio", f"{min(ratios):.2f} to {max(ratios):.2f}")
    bench.keep("claim_batch of 100, 16 clients", _median(batch), "claims/s", _spread(batch))
    bench.keep("claim_batch of 100 to single calls", _median(batch) / _median(single), "ratio")
    for name, each in (("echo", echo), ("claim", single), ("claim in a batch", batch)):
        for part in ("clients", "servers", "broker", "database"):
            bench.keep(f"processor time of a {name}: {part}",
                       statistics.median(one["ms"][part] for one in each), "ms")
    for share in (0.5, 0.99):
        bench.keep(f"claim_allocations, 16 clients, p{share * 100:.0f}", _percentile(
            sorted(took for each in single for took in each["took"]), share), "ms")
    rounds = bench.in_turns("echo", "claim", clients=1, threads=1)
    for name in ("echo", "claim"):
        took = sorted(took for each in rounds[name] for took in each["took"])
        for share in (0.5, 0.99):
            bench.keep(f"a lone {name}, p{share * 100:.0f}", _percentile(took, share), "ms")


def bench_casts(bench):
    """Casts that the broker confirmed, and how fast they are settled."""
    bench._say("Casts ...")
    cast = bench.measure("cast")
    later = bench.settle()
    bench.keep("claims cast and confirmed, 16 clients", cast["rate"], "casts/s",
               f"settled and published {later:.1f} s after the last")


def bench_events(bench):
    """From commit to delivery by the stream, under the load of 16 clients that claim."""
    bench._say("Events under the load of claims ...")
    bench.settle()
    took = []
    reader = listener.StreamReader(
        bench.broker.url, bench.store.conf.notifications.stream, "next")

    def read():
        for event in reader.events(3):
            happened = datetime.datetime.fromisoformat(event.occurred_at)
            took.append((datetime.datetime.now(datetime.UTC) - happened).total_seconds())

    reading = threading.Thread(target=read)
    reading.start()
    time.sleep(1)
    claims = bench.measure("claim")
    with bench.store.database.reader() as tx:
        status = events.status(tx)
    unsent = status["unpositioned"] + status["last_position"] - status["published_position"]
    reading.join()
    bench.keep("events delivered under that load", len(took) / bench.seconds, "events/s",
               f"claims at {claims['rate']:.0f}/s, unsent at their end: {unsent}")
    for share in (0.5, 0.99):
        bench.keep(f"from commit to delivery, p{share * 100:.0f}",
                   _percentile(sorted(took), share), "ms")


def bench_relay(bench):
    """Events that wait in the outbox, through the relay to a confirmed publish."""
    number = 5000 * bench.seconds
    bench._say(f"Relaying {number} events that wait ...")
    with bench.store.database.reader() as tx:
        row = events.after(tx, events.status(tx)["published_position"] - 1, 1)[0]
    bench.store.database.write(lambda tx: events.insert(tx, [
        (str(uuid.uuid4()), row.event_type, row.occurred_at, row.payload, "")
        for _ in range(number)]))
    began = time.monotonic()
    while True:
        with bench.store.database.reader() as tx:
            status = events.status(tx)
        if status["published_position"] == status["events"]:
            break
        time.sleep(0.05)
    bench.keep("events from the outbox to a confirmed publish", number / (
        time.monotonic() - began), "events/s", f"{number} that waited")


def bench_nodes(bench):
    """Compute nodes: migrated in batches, and synchronised by their trackers."""
    size = 2000 * bench.seconds
    bench._say(f"Migrating {size} compute nodes ...")
    with placement_fixtures.Store(bench.postgresql.create_database()) as store:
        fleet.bring_in(store.database, size)
        began = time.monotonic()
        done = online.compute_node_inventories(
            store.database, Settings(store.conf.compute_nodes, migrates=True))
        took = time.monotonic() - began
    bench.keep("compute nodes migrated", done.done / took, "rows/s",
               f"{done.done} of {size} in {took:.1f} s, {online.BATCH} in a transaction")
    bench._say("Unchanged cycles of resource trackers ...")
    bench.measure("sync", 2)
    rounds = [bench.measure("sync") for _ in range(bench.rounds)]
    bench.keep("sync_compute_node, unchanged, 16 trackers", _median(rounds), "calls/s",
               _spread(rounds))
    for share in (0.5, 0.99):
        bench.keep(f"sync_compute_node, unchanged, p{share * 100:.0f}", _percentile(
            sorted(took for each in rounds for took in each["took"]), share), "ms")


def bench_find(bench, size):
    """get_by_request with a limit of 100, and what of it is SQL."""
    bench._say(f"Finding among {size} providers ...")
    bench.connect(fleet.grow(bench.store.database, size)[:1000])
    took = bench.measure("find", clients=1, threads=1)["took"]
    amounts = {class_names.STANDARD_IDS[name]: amount for name, amount in (
        ("VCPU", 2), ("MEMORY_MB", 1024), ("DISK_GB", 10))}
    sql, ends = [], time.monotonic() + bench.seconds
    while time.monotonic() < ends:
        began = time.perf_counter()
        with bench.store.database.reader() as tx:
            candidates.with_room(tx, amounts, limit=100)
        sql.append(time.perf_counter() - began)
    for share in (0.5, 0.99):
        name = f"get_by_request, limit 100, {size} providers, p{share * 100:.0f}"
        bench.keep(name, _percentile(took, share), "ms",
                   f"of it SQL {_percentile(sorted(sql), share):.1f} ms")


def bench_bus(quick, only, kept):
    """What is measured over the message bus; :param only: str, a part of it, or None"""
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, quick, kept)
        bench.connect(fleet.grow(bench.store.database, 1000))
        if only in (None, "claims"):
            bench_claims(bench)
            bench_casts(bench)
            bench_events(bench)
            bench_relay(bench)
        if only in (None, "nodes"):
            bench_nodes(bench)
        if only in (None, "find"):
            for size in (1000, 10_000):
                bench_find(bench, size)


def report(bench, directory):
    """Print the table and write the JSON."""
    table = rich.table.Table("what", "figure", "unit", "spread or note")
    for row in bench.results:
        table.add_row(row["name"], f"{row['value']:.2f}" if row["value"] < 100 else (
            f"{row['value']:.0f}"), row["unit"], row["note"])
    bench.console.print(table)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "bench.json"
    path.write_text(json.dumps({
        "machine": {"processors": os.cpu_count(), "python": platform.python_version(),
                    "memory_gib": round(psutil.virtual_memory().total / 2 ** 30)},
        "results": bench.results}, indent=2))
    bench.console.print(f"Written to {path}", style="dim")


def main():
    parser = argparse.ArgumentParser(description="Measure the service beside a bare echo.")
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument("--only", choices=("claims", "nodes", "find", "http"), help="a part of it")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("bench-results"))
    options = parser.parse_args()
    kept = Report()
    if options.only != "http":
        bench_bus(options.quick, options.only, kept)
    # After the others: their servers would get in its way.
    if options.only in (None, "http"):
        http_bench.bench_http(kept, options.quick)
    report(kept, options.output)


if __name__ == "__main__":
    main()
