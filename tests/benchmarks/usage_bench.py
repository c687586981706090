# SPDX-License-Identifier: Apache-2.0
"""How long a report of usage takes to read a long stream of events."""

import collections
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

from placement_rpc import api
from placement_rpc.db.queries import events
from placement_rpc.notifications import envelope
from tests import base
from tests.benchmarks import bare_publisher

_EVENTS, _FEW = 1_000_000, 100_000
# Events that are published at a time.
_SLICE = 20_000
# Claims that are held at a time: each is released after as many others.
_HELD = 10_000
_STREAM = "usage.stream"
_ROOT = pathlib.Path(__file__).parents[2]


def bench_usage(bench, quick, providers):
    """Measure ``usage-report`` over a stream of claims and of their releases."""
    size = _FEW if quick else _EVENTS
    bench.say(f"Publishing {size} events ...")
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    bodies = []
    for row in _rows(*_examples(bench, providers[0]), began, size):
        bodies.append(envelope.sealed(row))
        if len(bodies) == _SLICE or row.position == size:
            bare_publisher.publish(bench.address, bodies, 1000, _STREAM)
            bodies = []
    bench.say(f"A report of {size} events ...")
    started = time.monotonic()
    report = _report(bench, began)
    took = time.monotonic() - started
    if not report["complete"] or report["position"] != size:
        raise RuntimeError(f"the report is of {report['position']} events, not of {size}")
    bench.keep(f"usage-report over {size} events", took, "s",
               "goal 30 for 1000000; was 12 for 77000")


def _examples(bench, provider):
    """Return the rows of the events of a claim and of its release."""
    wanted = base.claim({provider: {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 5}})
    with api.PlacementAPI(conf=bench.store.conf) as client:
        client.claim_allocations(None, wanted)
        client.release_allocations(None, wanted.consumer_uuid)
    bench.settle()
    with bench.store.database.reader() as tx:
        last = events.status(tx)["published_position"]
        found = [row for row in events.after(tx, max(0, last - 100), 100)
                 if wanted.consumer_uuid in row.payload]
    created, deleted = found
    return created, deleted


def _rows(created, deleted, began, size):
    """Yield rows of events, a claim and a release in turns, one in a millisecond."""
    held = collections.deque()
    consumer = json.loads(created.payload)["placement_object.data"]["consumer_uuid"]
    for position in range(1, size + 1):
        if len(held) > _HELD and position % 2:
            row, subject = deleted, held.popleft()
        else:
            row, subject = created, str(uuid.uuid4())
            held.append(subject)
        event_id = str(uuid.uuid4())
        time_ = began + datetime.timedelta(milliseconds=position)
        values = json.loads(row.payload)
        data = values["placement_object.data"]
        data |= {"event_id": event_id, "position": None, "occurred_at": time_.isoformat()}
        yield events.Row(**{
            **row._mapping, "event_id": event_id, "position": position,
            "occurred_at": time_.replace(tzinfo=None),
            "payload": json.dumps(values).replace(consumer, subject)})


def _report(bench, begin):
    """Return the report that the program writes, a dict."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "placement-rpc.conf")
        path.write_text(f"[DEFAULT]\ntransport_url = {bench.broker.url}\n"
                        f"[notifications]\nstream = {_STREAM}\nsnapshot_period = 0\n")
        return json.loads(subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main", "--config-file",
             str(path), "usage-report", "--from", begin.isoformat(), "--format", "json"],
            cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
