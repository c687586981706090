# SPDX-License-Identifier: Apache-2.0
"""How soon a conductor answers after its start, and a program of operators says something."""

import statistics
import subprocess
import sys
import time

from placement_rpc import api, exception
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests.benchmarks import fleet
from tests.integration import processes

_HOST = "start"
# Seconds between two calls, and to wait for an answer. A call that waits in the queue when the
# conductor begins is answered at once.
_PAUSE, _PATIENCE = 0.01, 5
_PROVIDERS = 1000
_WANTED = ResourceRequest(resources={"VCPU": 1}, limit=1)


def bench_start(bench):
    """Measure from the start of a process to the first answer, in several rounds."""
    bench.say("Starts of a conductor ...")
    bench.broker.rabbitmqctl("add_vhost", _HOST)
    bench.broker.rabbitmqctl("set_permissions", "-p", _HOST, bench.broker.username,
                             ".*", ".*", ".*")
    with placement_fixtures.Store(bench.postgresql.create_database(),
                                  transport_url=bench.broker.url + _HOST) as store:
        fleet.grow(store.database, _PROVIDERS)
        # The first one declares the queues, which remain.
        took = [_ready_after(store.conf) for _ in range(bench.rounds + 1)][1:]
    bench.keep("conductor ready after its start", statistics.median(took), "s",
               f"goal 2; {min(took):.2f} to {max(took):.2f}, one worker, {_PROVIDERS} providers")
    took = [_helped_after() for _ in range(bench.rounds)]
    bench.keep("placement-rpc --help", statistics.median(took), "s",
               f"{min(took):.2f} to {max(took):.2f}")


def _ready_after(conf):
    """Return the seconds until a new conductor answers a call."""
    conductor = processes.Conductor({
        "DEFAULT": {"transport_url": conf.transport_url},
        "database": {"connection": conf.database.connection},
        "conductor": {"workers": 1}})
    with api.PlacementAPI(conf=conf) as client:
        began = time.monotonic()
        with conductor:
            while not _answers(client):
                time.sleep(_PAUSE)
            return time.monotonic() - began


def _answers(client):
    try:
        return bool(client.get_by_request(None, _WANTED, timeout=_PATIENCE).objects)
    except (exception.ServiceUnavailable, exception.DeadlineExceeded):
        return False


def _helped_after():
    began = time.monotonic()
    subprocess.run([sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main", "--help"],
                   check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began
