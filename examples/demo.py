# SPDX-License-Identifier: Apache-2.0
"""The main job on real input: ``make demo``, or ``make demo BUS=rabbit``.

The demo imports 120 compute nodes, as nova itself serialised them, and migrates them to
inventories; adds the NFS share of the specification's first scenario; places a few thousand
consumers from several concurrent clients; compares the usages with the allocations that the
clients made; and finally asks for GPUs: claims them in one call, explains why a request finds
none, and shows how many more servers fit.
"""

import argparse
import collections
import contextlib
import datetime
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import rich.box
import rich.console
import rich.progress
import rich.table

# First of the project's imports: it selects the threading backend of oslo.service.
from placement_rpc.cmd import arguments, local, output, standalone, state_file  # isort: skip
import demo_candidates
import demo_events
import demo_nodes

from placement_rpc import exception
from placement_rpc.api import PlacementAPI
from placement_rpc.conf import service as configuration
from placement_rpc.notifications.listener import StreamReader
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.service.conductor import Conductor, prepare_store

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
# vCPUs, MB of memory, GB of disk
FLAVORS = ((1, 2048, 50), (2, 4096, 60), (4, 8192, 80), (8, 16384, 160), (16, 65536, 320))

console = rich.console.Console()


class Fleet:
    """The providers of the demo.

    :param api: :class:`PlacementAPI`
    """

    def __init__(self, api):
        self.api = api
        self.names = {}
        self.aggregate = str(uuid.uuid4())
        self.pool = None
        self.sharing = set()

    def register(self):
        """Read the nodes, and create the NFS share that those of row 1 use."""
        found = {each.name: each.uuid for each in self.api.list_providers(None).objects}
        for name in demo_nodes.names():
            self.names[found[name]] = name
            if ".row1." in name:
                self.api.set_aggregates(None, found[name], [self.aggregate])
                self.sharing.add(found[name])
        pool = self.api.create_provider(None, "/mnt/nfs/row1racks0610/")
        self.api.set_aggregates(None, pool.uuid, [self.aggregate])
        self.api.set_inventory(None, pool.uuid, [Inventory(
            resource_class="DISK_GB", total=100000, reserved=1000, min_unit=50, max_unit=10000,
            step_size=10, allocation_ratio=1.0)])
        self.pool = pool.uuid
        self.names[pool.uuid] = pool.name


class Scheduler(threading.Thread):
    """One of several concurrent clients that place consumers."""

    def __init__(self, fleet, number, consumers, tick):
        super().__init__(daemon=True)
        self.fleet, self.consumers, self.tick = fleet, consumers, tick
        self.random = random.Random(number)
        self.held, self.error = {}, None
        self.finds, self.claims, self.refused, self.homeless = [], [], 0, 0

    def run(self):
        try:
            for _ in range(self.consumers):
                self._place()
                self.tick()
        except Exception as error:
            self.error = error

    def _place(self):
        vcpus, memory, disk = self.random.choice(FLAVORS)
        began = time.perf_counter()
        found = self.fleet.api.get_by_request(None, ResourceRequest(
            resources={"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": disk})).objects
        self.finds.append(time.perf_counter() - began)
        self.random.shuffle(found)
        for candidate in found:
            allocations = self._allocations(candidate.uuid, vcpus, memory, disk)
            try:
                self._claim(allocations)
                return
            except exception.ClaimRefused:
                # Another scheduler was faster, or the share is full: try the next candidate.
                self.refused += 1
        self.homeless += 1

    def _allocations(self, node, vcpus, memory, disk):
        """Return the allocations on a node; nodes of row 1 take the disk from the share."""
        if node in self.fleet.sharing:
            return {node: {"VCPU": vcpus, "MEMORY_MB": memory},
                    self.fleet.pool: {"DISK_GB": disk}}
        return {node: {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": disk}}

    def _claim(self, allocations):
        consumer = str(uuid.uuid4())
        began = time.perf_counter()
        self.fleet.api.claim_allocations(None, Claim(
            consumer_uuid=consumer, project_id=f"project-{self.random.randint(1, 5)}",
            user_id="demo", allocations=allocations))
        self.claims.append(time.perf_counter() - began)
        self.held[consumer] = allocations


def _progress(items, text):
    return rich.progress.track(items, text, console=console, transient=True,
                               disable=not console.is_terminal)


def place(fleet, consumers, clients):
    """Place consumers from several concurrent clients.

    :returns: tuple of a list of :class:`Scheduler` and the elapsed seconds
    """
    with rich.progress.Progress(console=console, transient=True,
                                disable=not console.is_terminal) as progress:
        task = progress.add_task(f"Placing {consumers} consumers", total=consumers)
        schedulers = [Scheduler(fleet, number, consumers // clients,
                                lambda: progress.advance(task)) for number in range(clients)]
        began = time.monotonic()
        for each in schedulers:
            each.start()
        for each in schedulers:
            each.join()
    for each in schedulers:
        if each.error:
            raise each.error
    return schedulers, time.monotonic() - began


def show_refusals(fleet):
    """Make claims that do not fit, and print the errors."""
    node = next(iter(fleet.names))
    console.print("\n[bold]Claims that do not fit are refused with a reason[/bold]")
    for allocations in ({node: {"VCPU": 100_000}}, {fleet.pool: {"DISK_GB": 10_010}},
                        {fleet.pool: {"DISK_GB": 55}}, {node: {"CUSTOM_UNICORN": 1}}):
        try:
            fleet.api.claim_allocations(None, Claim(
                consumer_uuid=str(uuid.uuid4()), project_id="demo", user_id="demo",
                allocations=allocations))
        except exception.PlacementException as error:
            console.print(f"  [red]{error.code}[/red] {error}", highlight=False)
        else:
            raise RuntimeError(f"{allocations} was granted")


def cast(fleet, schedulers):
    """Send a claim as a durable cast, without waiting for its result; return its request id."""
    consumer, allocations = str(uuid.uuid4()), {fleet.pool: {"DISK_GB": 100}}
    schedulers[0].held[consumer] = allocations
    return fleet.api.claim_allocations(None, Claim(
        consumer_uuid=consumer, project_id="project-1", user_id="demo",
        allocations=allocations), cast=True)


def release_some(schedulers, fleet):
    """Release some consumers, and move some to another consumer (a resize, a migration)."""
    released = moved = 0
    for each in schedulers:
        for consumer in list(each.held)[:len(each.held) // 10]:
            fleet.api.release_allocations(None, consumer)
            del each.held[consumer]
            released += 1
        for consumer in list(each.held)[:5]:
            target = str(uuid.uuid4())
            fleet.api.move_allocations(None, consumer, target)
            each.held[target] = each.held.pop(consumer)
            moved += 1
    return released, moved


def summarise(fleet):
    """Print usages against capacity.

    :returns: dict of tuple of provider and class to the used amount according to the service
    """
    totals, shares, actual = {}, [], {}
    for provider in fleet.names:
        for usage in fleet.api.get_usages(None, provider).objects:
            if usage.resource_class not in CLASSES:
                continue
            part, whole = totals.get(usage.resource_class, (0, 0))
            totals[usage.resource_class] = part + usage.used, whole + usage.capacity
            shares.append((usage.used / usage.capacity, provider, usage))
            if usage.used:
                actual[provider, usage.resource_class] = usage.used
    table = rich.table.Table(title="Usages against capacity", box=rich.box.SIMPLE_HEAD)
    for column, width, justify in (("provider", None, "left"), ("class", 9, "left"),
                                   ("used", 10, "right"), ("capacity", 11, "right"),
                                   ("", 11, "left")):
        table.add_column(column, no_wrap=True, min_width=width, justify=justify)
    for name, (part, whole) in totals.items():
        table.add_row("all", name, f"{part:,}", f"{whole:,}", output.bar(part, whole, 6))
    table.add_section()
    fullest = sorted(shares, key=lambda share: -share[0])[:5]
    for _, provider, usage in [*fullest, *(
            share for share in shares if share[1] == fleet.pool and share not in fullest)]:
        table.add_row(fleet.names[provider], usage.resource_class, f"{usage.used:,}",
                      f"{usage.capacity:,}", output.bar(usage.used, usage.capacity, 6))
    console.print(table)
    return actual


def _allocated(schedulers):
    """Return the allocated amounts, a dict of tuple of provider and class to int."""
    total = collections.Counter()
    for each in schedulers:
        for allocations in each.held.values():
            for provider, resources in allocations.items():
                total.update({(provider, name): amount for name, amount in resources.items()})
    return dict(total)


@contextlib.contextmanager
def running_service(options, directory):
    """Give a running service; a context manager.

    :returns: tuple of a client; the URL of its database, None for a service elsewhere; and a
        callable of a request id that returns all events up to that of the request
    """
    if options.transport_url:
        with _on_rabbit(options.transport_url, None) as found:
            yield found
    elif options.bus == "rabbit":
        with _own_process(directory) as running, _on_rabbit(
                running["transport_url"], running["database"]) as found:
            yield found
    else:
        conf = configuration.new_config(
            config_files=[], transport_url=standalone.IN_PROCESS,
            database__connection=f"sqlite:///{directory}/placement.sqlite")
        prepare_store(conf)
        conductor = Conductor(conf, binary="demo")
        conductor.start()
        try:
            # There is no stream inside a process, so the events are read from the outbox.
            with PlacementAPI("local", conf, manager=conductor.manager) as api:
                yield api, conf.database.connection, lambda mark: demo_events.up_to(
                    mark, lambda position: local.stored_events(conductor.database, position))
        finally:
            conductor.stop()


@contextlib.contextmanager
def _on_rabbit(url, database):
    conf = configuration.new_config(config_files=[], transport_url=url)
    with PlacementAPI(conf=conf) as api:
        yield api, database, lambda mark: demo_events.up_to(mark, lambda position: StreamReader(
            url, conf.notifications.stream, position + 1).events(idle=5))


@contextlib.contextmanager
def _own_process(directory):
    """Run ``placement-rpc standalone`` on a private RabbitMQ; give its addresses, a dict."""
    with console.status("Starting the service and a private RabbitMQ"):
        process = subprocess.Popen(
            [sys.executable, "-m", "placement_rpc.cmd.main", "--state-dir", directory,
             "standalone", "--bus", "rabbit", "--http-port", "0"], stdout=subprocess.DEVNULL)
        try:
            while (running := state_file.read(directory)) is None:
                if process.poll() is not None:
                    raise RuntimeError("the service did not start; see its output above")
                time.sleep(0.1)
        except BaseException:
            process.terminate()
            raise
    try:
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def demonstrate(options, api, operator, events):
    """Run the demo from the first node to the balance; return the exit code."""
    since = datetime.datetime.now(datetime.UTC)
    where = ("inside this process" if api.conf.transport_url == standalone.IN_PROCESS
             else "called over RabbitMQ")
    console.print(f"[bold]placement_rpc[/bold]: the service is {where}, "
                  f"{options.clients} concurrent clients")
    fleet = Fleet(api)
    if operator is None:
        demo_nodes.sync(console, api)
    else:
        operator.migrate()
    fleet.register()
    console.print(f"\nThere are {len(fleet.names) - 1} compute nodes, and an NFS share that "
                  f"{len(fleet.sharing)} of them use")
    schedulers, seconds = place(fleet, options.consumers, options.clients)
    placed = sum(len(each.held) for each in schedulers)
    console.print(
        f"Placed {placed:,} consumers in {seconds:.1f} s; "
        f"{sum(each.homeless for each in schedulers):,} found no room, "
        f"{sum(each.refused for each in schedulers):,} claims were refused and tried the next "
        "candidate")
    released, moved = release_some(schedulers, fleet)
    console.print(f"Released {released:,} consumers and moved {moved:,} to other consumers")
    show_refusals(fleet)
    last = list(events(cast(fleet, schedulers)))
    console.print()
    used = summarise(fleet)
    for name, took in (("get_by_request", sorted(t for s in schedulers for t in s.finds)),
                       ("claim_allocations", sorted(t for s in schedulers for t in s.claims))):
        console.print(f"{name}: {len(took):,} calls, {len(took) / seconds:,.0f} a second, "
                      f"p50 {1000 * took[len(took) // 2]:.1f} ms, "
                      f"p99 {1000 * took[int(len(took) * 0.99)]:.1f} ms")
    from_events = demo_events.show(console, last, since, fleet.names)
    code = 0
    for source, other in (("the allocations of the clients", _allocated(schedulers)),
                          ("the usage report from events", from_events)):
        if used == other:
            console.print(f"[green]The usages are equal to {source}.[/green]")
        else:
            console.print(f"[red]The usages differ from {source}.[/red]")
            code = 1
    demo_candidates.show(console, fleet)
    return code


def main():
    parser = argparse.ArgumentParser(description="The main job on real compute nodes.")
    parser.add_argument("--bus", choices=("inprocess", "rabbit"), default="inprocess")
    parser.add_argument("--transport-url", help="the bus of a running service")
    parser.add_argument("--consumers", type=arguments.positive, default=3000)
    parser.add_argument("--clients", type=arguments.positive, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        try:
            with running_service(options, os.path.join(directory, "")) as found:
                api, database, events = found
                operator = database and demo_nodes.Operator(
                    console, database, pathlib.Path(directory))
                return demonstrate(options, api, operator, events)
        except exception.PlacementException as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
