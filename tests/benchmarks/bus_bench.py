# SPDX-License-Identifier: Apache-2.0
"""Claims, casts, events and compute nodes over the bus, compared with a bare echo.

The goals and the earlier figures that are printed beside the figures are for two idle processors.
"""

import datetime
import statistics
import threading
import time
import uuid

from placement_rpc.db.queries import events
from placement_rpc.notifications import envelope, listener
from placement_rpc.nova.migration import Settings
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.upgrade import online
from tests.benchmarks import bare_publisher, fleet
from tests.benchmarks.bench import median, percentile, spread


def bench_claims(bench):
    """Measure claims per second and echoes of the same payload, with 16 concurrent clients."""
    bench.say("Claims and a bare echo, in turns ...")
    rounds = bench.in_turns("echo", "claim", "claim_batch")
    echo, single, batch = rounds.values()
    bench.keep("bare echo, 16 clients", median(echo), "calls/s", spread(echo))
    bench.keep("claim_allocations, 16 clients", median(single), "claims/s", spread(single))
    ratios = [ours["rate"] / theirs["rate"] for ours, theirs in zip(single, echo, strict=True)]
    bench.keep("claim_allocations to echo", statistics.median(ratios), "ratio",
               f"goal 1.6, was 1.14; {min(ratios):.2f} to {max(ratios):.2f}")
    bench.keep("claim_batch of 100, 16 clients", median(batch), "claims/s", spread(batch))
    bench.keep("claim_batch of 100 to single calls", median(batch) / median(single), "ratio")
    for name, each, goal in (("echo", echo, ""), ("claim", single, "goal 1.9, was 3.1"),
                             ("claim in a batch", batch, "goal 0.4, was 0.69")):
        for part in ("clients", "servers", "broker", "database"):
            bench.keep(f"processor time of a {name}: {part}",
                       statistics.median(one["ms"][part] for one in each), "ms")
        bench.keep(f"processor time of a {name}: all",
                   statistics.median(sum(one["ms"].values()) for one in each), "ms", goal)
    for share in (0.5, 0.99):
        bench.keep(f"claim_allocations, 16 clients, p{share * 100:.0f}", percentile(
            sorted(took for each in single for took in each["took"]), share), "ms")


def bench_lone_claims(bench):
    """Measure the latency of a claim, and of the echo, with a single client."""
    bench.say("A single claim and a single echo, in turns ...")
    rounds = bench.in_turns("echo", "claim", clients=1, threads=1)
    medians = {}
    for name in ("echo", "claim"):
        took = sorted(took for each in rounds[name] for took in each["took"])
        medians[name] = percentile(took, 0.5)
        for share in (0.5, 0.99):
            bench.keep(f"a single {name}, p{share * 100:.0f}", percentile(took, share), "ms")
    bench.keep("a single claim to a single echo, p50", medians["claim"] / medians["echo"],
               "ratio", "goal 1.4, was 2.0")


def bench_outbox(bench, providers):
    """Measure the cost of the events of claims, by comparison with claims without events."""
    bench.say("Claims without the outbox, in turns ...")
    with bench.without_outbox(providers):
        single, bare = bench.in_turns("claim", "claim_without_outbox").values()
    bench.keep("claim_allocations without the outbox", median(bare), "claims/s", spread(bare))
    ratios = [ours["rate"] / theirs["rate"] for ours, theirs in zip(single, bare, strict=True)]
    bench.keep("claim_allocations to the same without the outbox", statistics.median(ratios),
               "ratio", f"{min(ratios):.2f} to {max(ratios):.2f}")


def bench_casts(bench):
    """Measure the rate of confirmed casts, and the time until they are settled."""
    bench.say("Casts ...")
    cast = bench.measure("cast")
    later = bench.settle()
    bench.keep("claims cast and confirmed, 16 clients", cast["rate"], "casts/s",
               f"all settled and published {later:.1f} s after the last cast")


def bench_events(bench):
    """Measure from commit to delivery by the stream, under the load of 16 claiming clients."""
    bench.say("Events under the load of claims ...")
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
    for share, goal in ((0.5, "goal 15, was 53"), (0.99, "goal 50, was 130")):
        bench.keep(f"from commit to delivery, p{share * 100:.0f}",
                   percentile(sorted(took), share), "ms", goal)


def bench_relay(bench):
    """Measure the relay: events from the outbox to a confirmed publish, and publishing alone."""
    number = int(5000 * bench.seconds)
    bench.say(f"Relaying {number} events from the outbox, and publishing as many ...")
    with bench.store.database.reader() as tx:
        row = events.after(tx, events.status(tx)["published_position"] - 1, 1)[0]
    rounds = [(_relayed(bench, row, number), _published(bench, row, number))
              for _ in range(bench.rounds)]
    relayed, bare = zip(*rounds, strict=True)
    for name, rates, earlier in (
            ("from the outbox to a confirmed publish", relayed, "was 4386; "),
            ("published by the AMQP library alone", bare, "")):
        bench.keep(f"events {name}", statistics.median(rates), "events/s",
                   f"{earlier}{min(rates):.0f} to {max(rates):.0f}")
    ratios = [ours / theirs for ours, theirs in rounds]
    bench.keep("events from the outbox to bare publishing", statistics.median(ratios), "ratio",
               f"goal 0.85; {min(ratios):.2f} to {max(ratios):.2f}")


def _published(bench, row, number):
    """Return how many events a second the AMQP library publishes."""
    bodies = [envelope.sealed(row)] * number
    began = time.monotonic()
    bare_publisher.publish(bench.address, bodies, bench.store.conf.notifications.batch)
    return number / (time.monotonic() - began)


def _relayed(bench, row, number):
    """Return how many events a second the relay publishes."""
    with bench.store.database.reader() as tx:
        position = events.state(tx).published_position
    bench.store.database.write(lambda tx: events.insert(tx, [
        events.NewEvent(str(uuid.uuid4()), row.event_type, row.occurred_at, row.payload, "")
        for _ in range(number)]))
    began = time.monotonic()
    while True:
        # Not the whole status, which counts all events.
        with bench.store.database.reader() as tx:
            if events.state(tx).published_position >= position + number:
                break
        time.sleep(0.05)
    return number / (time.monotonic() - began)


def bench_nodes(bench):
    """Measure the migration of compute nodes and the cycles of their trackers."""
    size = int(2000 * bench.seconds)
    bench.say(f"Migrating {size} compute nodes ...")
    with placement_fixtures.Store(bench.postgresql.create_database()) as store:
        fleet.bring_in(store.database, store.conf.compute_nodes, size)
        began = time.monotonic()
        done = online.compute_node_inventories(
            store.database, Settings(store.conf.compute_nodes, migrates=True))
        took = time.monotonic() - began
    bench.keep("compute nodes migrated", done.done / took, "rows/s",
               f"goal 4000, was 839; {done.done} of {size} in {took:.1f} s, "
               f"{online.BATCH} in a transaction")
    bench.say("Unchanged cycles of resource trackers ...")
    bench.measure("sync", 2)
    rounds = [bench.measure("sync") for _ in range(bench.rounds)]
    bench.keep("sync_compute_node, unchanged, 16 trackers", median(rounds), "calls/s",
               f"goal 800, was 236; {spread(rounds)}")
    for share in (0.5, 0.99):
        bench.keep(f"sync_compute_node, unchanged, p{share * 100:.0f}", percentile(
            sorted(took for each in rounds for took in each["took"]), share), "ms")
