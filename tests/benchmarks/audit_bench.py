# SPDX-License-Identifier: Apache-2.0
"""Audits of large clouds by the program, and the pages that other programs read.

The program is a process of its own.
"""

import contextlib
import json
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid

import psutil
import sqlalchemy as sa

from placement_rpc.accounting import summaries
from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.objects.class_names import STANDARD_IDS
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers
from tests.benchmarks import fleet

_ROOT = pathlib.Path(__file__).parents[2]
_NODES = 10_000
_CONSUMERS = (10_000, 100_000)
_AT_ONCE = 5000
_HELD = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}


def fill(database, nodes, consumers):
    """Add compute nodes, and consumers with three allocations each, until there are so many.

    :returns: list of the new consumers, as nova's command line client prints servers
    """
    for size in range(_AT_ONCE // 5, nodes + 1, _AT_ONCE // 5):
        # MariaDB takes no more in one statement.
        fleet.grow(database, size, analyse=False)
    at = bulk.now()
    times = {"created_at": at, "updated_at": at}
    with database.writer() as tx:
        known = tx.execute(sa.select(
            models.resource_providers.c.id, models.resource_providers.c.name)).all()
        there = tx.execute(sa.select(sa.func.count()).select_from(models.consumers)).scalar()
    draw, listed = random.Random(there), []
    for start in range(there, consumers, _AT_ONCE):
        some = [(str(uuid.UUID(int=draw.getrandbits(128), version=4)), draw.choice(known))
                for _ in range(min(_AT_ONCE, consumers - start))]
        listed += [_listed(each, node.name) for each, node in some]
        with database.writer() as tx:
            tx.execute(sa.insert(models.consumers), [
                {"uuid": each, "project_id": f"project {number % 100}", "user_id": "user",
                 "generation": 1, **times} for number, (each, _) in enumerate(some)])
            ids = dict(tx.execute(sa.select(models.consumers.c.uuid, models.consumers.c.id).where(
                models.consumers.c.uuid.in_([each for each, _ in some]))).all())
            tx.execute(sa.insert(models.allocations), [
                {"consumer_id": ids[each], "resource_provider_id": node.id,
                 "resource_class_id": STANDARD_IDS[name], "used": used, **times}
                for each, node in some for name, used in _HELD.items()])
    held, inventories = models.allocations, models.inventories
    with database.writer() as tx:
        tx.execute(sa.update(inventories).values(used=sa.func.coalesce(sa.select(
            sa.func.sum(held.c.used)).where(
                held.c.resource_provider_id == inventories.c.resource_provider_id,
                held.c.resource_class_id == inventories.c.resource_class_id).scalar_subquery(),
            0)))
    if database.dialect == "postgresql":
        with database.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    return listed


def _listed(server, host):
    """Return a server as ``openstack server list --long`` prints it, with all its columns."""
    return {"ID": server, "Name": f"server {server}", "Status": "ACTIVE", "Task State": None,
            "Power State": "Running", "Networks": {"private": ["10.10.10.10", "fd00::10"]},
            "Image Name": "ubuntu-24.04", "Image ID": server, "Flavor": "m1.medium",
            "Availability Zone": "nova", "Host": host, "Properties": {"role": "web"},
            "Project ID": "project"}


def audited(url, path, *arguments):
    """Run the program.

    :returns: tuple of seconds, of seconds of processor time, of MiB of its largest memory, and
        of the summary that it printed
    """
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", "--database", url,
             "audit", "--servers", str(path), "--margin", "0", "--format", "json", *arguments],
            stdout=out, cwd=_ROOT)
        # What the system reports of its largest memory includes this process, which forked it.
        seen, memory = psutil.Process(process.pid), 0
        while process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = max(memory, seen.memory_info().rss)
            time.sleep(0.05)
        seconds, after = time.perf_counter() - begun, resource.getrusage(
            resource.RUSAGE_CHILDREN)
        worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        out.seek(0)
        return seconds, worked, memory / 2 ** 20, json.load(out)["summary"]


def bench_audit(kept, quick):
    """Measure audits of 10,000 compute nodes on PostgreSQL and on MariaDB."""
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind, start in (("PostgreSQL", servers.PostgreSQL), ("MariaDB", servers.MariaDB)):
            kept.say(f"Starting {kind} ...")
            url = stack.enter_context(start()).create_database()
            database = stack.enter_context(placement_fixtures.Store(url)).database
            listed = []
            for consumers in _CONSUMERS[:1] if quick else _CONSUMERS:
                listed += fill(database, _NODES, consumers)
                _measure(kept, directory, kind, url, listed)
            _pages(kept, kind, database)


def _measure(kept, directory, kind, url, listed):
    path = directory / "servers.json"
    # A tenth of a per cent of them is not known.
    wrong = len(listed) // 1000
    path.write_text(json.dumps(listed[wrong:], indent=2))
    size = f"{len(listed):,} consumers on {_NODES:,} nodes, {kind}"
    seconds, worked, memory, found = audited(url, path)
    kept.keep(f"audit, {size}", seconds, "s",
              f"{worked:.1f} s of processor time, {found['findings']['orphaned']} orphaned")
    kept.keep(f"largest memory, {size}", memory, "MiB")
    seconds, *_, found = audited(url, path, "--fix", "--yes", "--most", "100")
    kept.keep(f"audit with corrections, {size}", seconds, "s", f"{found['corrected']} corrected")
    del listed[:wrong]


def _pages(kept, kind, database):
    """Measure the pages of a large project and of one with few consumers, and of providers."""
    for name, read in (
            ("all providers", lambda marker: summaries.provider_page(database, marker, 1000)),
            ("all consumers", lambda marker: summaries.consumer_page(database, marker, 1000)),
            ("consumers of a project", lambda marker: summaries.consumer_page(
                database, marker, 1000, project_id="project 7"))):
        begun, pages, rows, marker = time.perf_counter(), 0, 0, None
        while True:
            page = read(marker)
            pages, rows = pages + 1, rows + len(page.objects)
            if not page.more:
                break
            marker = page.objects[-1].uuid
        kept.keep(f"a page of {name}, {kind}", 1000 * (time.perf_counter() - begun) / pages, "ms",
                  f"{rows} in {pages} pages")
