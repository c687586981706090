# SPDX-License-Identifier: Apache-2.0
"""Fifteen clients that claim, and one that runs away, in processes of their own."""

import datetime
import statistics
import time
from typing import NamedTuple

import fixtures
import sqlalchemy as sa

from placement_rpc.db import models
from tests import base
from tests.benchmarks.bench import percentile
from tests.benchmarks.module_process import ModuleProcess

#: The threads of the client that runs away.
THREADS = 64
# The processes of the good clients, and how many each has.
_GOOD = (5, 5, 5)
# Seconds between two calls of a good client.
_PAUSE = 0.02
# Seconds for which the runaway client begins earlier, and ends later.
_MARGIN = 0.5
# On a machine of few processors, that of the client is taken from the service. It runs on what is
# left over, as on a machine of its own.
_NICE = 19


class Round(NamedTuple):
    """What good clients saw: alone, and beside the other one.

    The durations are in order, in seconds. ``passed`` is how many claims of the runaway client
    were committed during each claim of a good one, ``done`` and ``refused`` how many of its calls
    were answered and refused.
    """

    alone: list
    beside: list
    failed: int
    passed: list
    done: int
    refused: int


class FairClients(fixtures.Fixture):
    """The processes.

    :param road: ``bus`` or ``http``
    :param address: str, the transport URL, or that of the facade
    :param database: :class:`placement_rpc.db.api.Database` of the service
    :param providers: uuids of two providers, of the good clients and of the other one
    """

    def __init__(self, road, address, database, providers):
        super().__init__()
        self._where = {"road": road, "address": address}
        self._database = database
        self._providers = providers

    def _setUp(self):
        good, many = self._providers
        self._good = [self._start(clients=number, provider=good, nice=0, name=f"good{place}-")
                      for place, number in enumerate(_GOOD)]
        self._runaway = self._start(clients=1, provider=many, nice=_NICE, name="many")
        # The first calls of each open connections.
        self._claim(1)
        self._tell(self._runaway, "claim", 1, THREADS)
        self._runaway.hear()

    def _start(self, **given):
        process = self.useFixture(ModuleProcess("fair_client"))
        process.tell({**self._where, **given})
        return process

    @staticmethod
    def _tell(process, work, seconds, threads=1, pause=0.0):
        process.tell({"work": work, "seconds": seconds, "threads": threads, "pause": pause})

    def _claim(self, seconds):
        for process in self._good:
            self._tell(process, "claim", seconds, pause=_PAUSE)
        answers = [process.hear() for process in self._good]
        return ([call for answer in answers for call in answer["calls"]],
                sum(answer["refused"] for answer in answers))

    def measure(self, work, seconds):
        """Have the good clients claim alone, and then beside the other one; return a Round.

        :param work: ``claim`` or ``find``, what the other one does
        :param seconds: of each half
        """
        alone, failed = self._claim(seconds)
        self._tell(self._runaway, work, seconds + 2 * _MARGIN, THREADS)
        time.sleep(_MARGIN)
        beside, more = self._claim(seconds)
        runaway = self._runaway.hear()
        committed = self._committed(min(began for began, _ in beside))
        return Round(_durations(alone), _durations(beside), failed + more,
                     [sum(began <= each <= ended for each in committed)
                      for began, ended in beside],
                     len(runaway["calls"]), runaway["refused"])

    def _committed(self, since):
        """Return when claims of the runaway client were made, in seconds since the epoch."""
        table = models.events
        first = datetime.datetime.fromtimestamp(since, datetime.UTC).replace(tzinfo=None)
        with self._database.reader() as tx:
            found = tx.execute(sa.select(table.c.occurred_at).where(
                table.c.occurred_at >= first,
                table.c.payload.contains(self._providers[1]))).scalars().all()
        return [each.replace(tzinfo=datetime.UTC).timestamp() for each in found]


def _durations(calls):
    return sorted(ended - began for began, ended in calls)


def ratios(rounds, share):
    """Return the ratio of each round: a percentile beside the other client to that alone."""
    return [percentile(each.beside, share) / percentile(each.alone, share) for each in rounds]


def summary(rounds):
    """Return what was measured as a line of text."""
    texts = []
    for share in (0.5, 0.99):
        alone, beside = (statistics.median(percentile(getattr(each, half), share)
                                           for each in rounds) for half in ("alone", "beside"))
        texts.append(f"p{share * 100:.0f} {alone:.0f} ms alone, {beside:.0f} ms beside "
                     f"(x{statistics.median(ratios(rounds, share)):.2f})")
    return "; ".join([*texts, f"of the other one {sum(each.done for each in rounds)} done, "
                              f"{sum(each.refused for each in rounds)} refused"])


def make_providers(api):
    """Return the uuids of two providers with room for all claims, for :class:`FairClients`."""
    uuids = [api.create_provider(None, name).uuid for name in ("of the good", "of the other")]
    for uuid in uuids:
        api.set_inventory(None, uuid, [base.inventory("VCPU", 10 ** 6)])
    return uuids
