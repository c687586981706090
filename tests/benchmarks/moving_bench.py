# SPDX-License-Identifier: Apache-2.0
"""How long a cloud takes to move over from OpenStack Placement, and back."""

import contextlib
import pathlib
import subprocess
import sys
import threading
import time

import psutil

from placement_rpc.testing import servers
from tests import moving_under_load, placement_cloud
from tests.benchmarks import moving_cloud

_ROOT = pathlib.Path(__file__).parents[2]
_FULL = moving_cloud.Size(10_000, 200_000)
_QUICK = moving_cloud.Size(1_000, 20_000)
# Hosts on which clients claim during the move.
_CLAIMED = 100
_PAUSE = 0.05


class _Bench:
    """The servers, which wait for the disk, and what is measured on them.

    :param stack: :class:`contextlib.ExitStack`
    :param kept: :class:`tests.benchmarks.bench.Report`
    """

    def __init__(self, stack, kept):
        self.kept = kept
        kept.say("Starting MariaDB and PostgreSQL ...")
        self._mariadb = stack.enter_context(servers.MariaDB(durable=True))
        self._postgresql = stack.enter_context(servers.PostgreSQL(durable=True))
        self._stack = stack

    def cloud(self, size=None):
        """Return a database of Placement on MariaDB, filled if a size is given."""
        url = self._mariadb.create_database()
        cloud = self._stack.enter_context(placement_cloud.PlacementCloud("mariadb", url=url))
        if size is not None:
            self.kept.say(f"Filling Placement with {size.computes} computes ...")
            moving_cloud.fill(cloud, size)
        return cloud

    def store(self):
        """Return the URL of an empty database on PostgreSQL."""
        return self._postgresql.create_database()

    def run(self, name, size, *arguments):
        """Run ``placement-rpc-manage``, and keep its seconds, and its memory at the most."""
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", *arguments],
            cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        memory = _Memory(process.pid)
        said, _ = process.communicate()
        seconds = time.monotonic() - started
        if process.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {said}")
        if name:
            note = f"at most {memory.stop() / 2 ** 20:.0f} MiB of memory"
            self.kept.keep(f"{name}, {size.computes} computes", seconds, "s", note)
            self.kept.say(f"{name}: {seconds:.1f} s, {note}")


class _Memory:
    """The most memory that a process had."""

    def __init__(self, pid):
        self._process, self._most, self._ended = psutil.Process(pid), 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        with contextlib.suppress(psutil.NoSuchProcess):
            while not self._ended.wait(_PAUSE):
                self._most = max(self._most, self._process.memory_info().rss)

    def stop(self):
        """Return the bytes."""
        self._ended.set()
        self._thread.join()
        return self._most


def _bench_commands(bench, size):
    """Measure each command of a move, without load."""
    cloud, store, back = bench.cloud(size), bench.store(), bench.cloud()
    of_store = ("--database", store)
    source = ("--from", cloud.url)
    bench.run(None, size, *of_store, "db", "sync")
    for name, arguments in (
            ("rehearsed import", ("import", *source, "--dry-run")),
            ("first import", ("import", *source)),
            ("import without changes", ("import", *source)),
            ("verify", ("verify", *source)),
            ("last import", ("import", *source, "--finish")),
            ("first export", ("export", "--to", back.url)),
            ("export without changes", ("export", "--to", back.url))):
        bench.run(name, size, *of_store, "placement", *arguments)


def _bench_under_load(bench, size):
    """Measure how long clients wait while a cloud moves."""
    hosts = [moving_cloud.host(number) for number in range(_CLAIMED)]
    with moving_under_load.UnderLoad(bench.cloud(size), bench.store(), hosts) as load:
        moved = load.move()
    for name, seconds in (("changes", moved.silent), ("reads", moved.unread)):
        bench.kept.keep(f"move under load, {size.computes} computes: without answers to {name}",
                        seconds, "s", f"the last import took {moved.passes[-1]:.1f} s")
    failures = [failure for client in moved.clients for failure in client.failures]
    if failures:
        raise RuntimeError(f"Clients have failed: {failures}")


def bench_moving(kept, quick):
    """Measure a move from MariaDB to PostgreSQL.

    :param kept: :class:`tests.benchmarks.bench.Report`
    :param quick: bool, whether it is a small cloud only
    """
    with contextlib.ExitStack() as stack:
        bench = _Bench(stack, kept)
        # The memory of a small and of a large cloud is compared.
        for size in (_QUICK,) if quick else (_QUICK, _FULL):
            _bench_commands(bench, size)
        _bench_under_load(bench, _QUICK if quick else _FULL)
