# SPDX-License-Identifier: Apache-2.0
"""Repeatedly kill every server under load: ``make soak MINUTES=10``.

Clients claim, have the service find what to claim, replace claims, swap, move and release, by
calls and by casts, while conductors are killed with -9, the broker is killed and started again,
and so is the database. Messages that cannot be read are published into every queue and into the
stream all the while. The answers that the clients received are then compared with the store, the
store with the events, and the dead letters with what was published.
"""

import argparse
import collections
import logging
import pathlib
import random
import sys
import threading
import time

import fixtures
import psutil
import sqlalchemy as sa
import testtools

from placement_rpc import api
from placement_rpc.amqp import dead_letters
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import output
from placement_rpc.db import models
from placement_rpc.db.queries import events
from placement_rpc.notifications import listener
from placement_rpc.rpc import command_queue, routing
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, messages
from tests.integration import ledger, processes

DATABASES = {"postgresql": private.PostgreSQL, "mariadb": private.MariaDB}
_CONDUCTORS = 3
KILLS = ("conductors_killed", "broker_killed", "database_killed")
_PROVIDERS = 8
_SAMPLES = 10
_LISTENER = "soak_listener"
# Queues whose messages survive a broker that is killed.
_KEPT = (command_queue.name(routing.TOPIC), _LISTENER)
# Seconds between two messages that cannot be read, for each queue.
_POISON_PAUSE = 0.5


class Poison(threading.Thread):
    """Publishes messages that cannot be read into queues, one after the other, until stopped.

    ``taken`` are those that the broker confirmed: a dict of queue to list.

    :param url: of the broker
    :param queues: list of str
    :param seed: int
    """

    def __init__(self, url, queues, seed):
        super().__init__(daemon=True)
        self._generator = messages.Generator(seed)
        self._poisoner = messages.Poisoner(url)
        self.taken = {queue: [] for queue in queues}
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(_POISON_PAUSE):
            for queue, taken in self.taken.items():
                taken += self._poisoner.publish(queue, [self._generator.poison()])

    def stop(self):
        """Publish no more."""
        self._ended.set()
        self.join()
        self._poisoner.close()


class Soak(fixtures.Fixture):
    """A service on private servers, clients under load, and random kills of processes.

    :param kind: str, ``postgresql`` or ``mariadb``
    :param seed: int, of the order and the times of the kills
    :param tell: callable of a text that reports progress
    """

    def __init__(self, kind, seed=0, tell=lambda text: None):
        super().__init__()
        self._kind = kind
        self._chance, self._seed = random.Random(seed), seed
        self._tell = tell
        self.done = collections.Counter()
        #: list of int, resident MiB of the conductor that is never killed, from a tenth of the
        #: time on
        self.memory = []

    def _setUp(self):
        self.broker = self.useFixture(private.RabbitMQ())
        self.server = self.useFixture(DATABASES[self._kind](durable=True))
        self.store = self.useFixture(placement_fixtures.Store(
            self.server.create_database(), transport_url=self.broker.url))
        self.conductors = [self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "notifications": {"snapshot_period": 10, "lease": 2},
            "conductor": {"host": f"host{number}", "workers": 1, "threads": 8,
                          "report_interval": 1}})) for number in range(_CONDUCTORS)]
        self.client = api.PlacementAPI(conf=self.store.conf)
        self.addCleanup(self.client.close)
        self.client.ping(None, timeout=90)
        self.providers = []
        for number in range(_PROVIDERS):
            uuid = self.client.create_provider(None, f"provider {number}").uuid
            self.client.set_inventory(None, uuid, [
                base.inventory("VCPU", 400), base.inventory("MEMORY_MB", 300_000)])
            self.providers.append(uuid)
        self._listen()
        self._until = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "until")

    def _listen(self):
        """Start a listener with a queue, which is poisoned too."""
        billing = listener.QueueListener(
            self.store.conf, _LISTENER, lambda event: None, broker=self.broker.url)
        thread = threading.Thread(target=billing.run, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(billing.stop)

    def run(self, seconds, kills=3):
        """Run the clients, and kill servers and conductors, for at least so many seconds.

        :param kills: int, how often each of :data:`KILLS` happens at least
        :returns: list of dicts, the reports of the clients' threads
        """
        claimers = processes.Claimers([{
            "transport_url": self.broker.url, "providers": self.providers, "threads": 4,
            "requests": 10_000_000, "until": str(self._until), "deadline": 180, "casts": 0.3,
            "sets": 0.1, "finds": 0.1,
            "attempt_timeout": 4, "seed": f"{number}"} for number in range(3)])
        calls = [routing.name(routing.TOPIC, queue) for queue in routing.QUEUES]
        self.poison = Poison(self.broker.url, [
            *calls, *_KEPT, self.store.conf.notifications.stream], self._seed)
        self.poison.start()
        began = time.monotonic()
        ends, plugs = began + seconds, []
        while time.monotonic() < ends or min(self.done[name] for name in KILLS) < kills:
            if not plugs:
                plugs = [self._kill_conductor, self._kill_conductor, self._kill_broker,
                         self._kill_database]
                self._chance.shuffle(plugs)
            time.sleep(self._chance.uniform(1, 4))
            # On a slow machine recovery takes a while; a service that is never available would
            # test little.
            self.client.get_usages(None, self.providers[0], timeout=120)
            plugs.pop()()
            # The first sample is taken late: memory for imports and connections is not a leak.
            if time.monotonic() > began + seconds * (len(self.memory) + 1) / _SAMPLES:
                self.memory.append(self._resident())
                self._tell(f"{self.memory[-1]} MiB resident")
        time.sleep(2)
        self.memory.append(self._resident())
        self.poison.stop()
        self.done["poison"] = sum(map(len, self.poison.taken.values()))
        self._until.touch()
        reports = claimers.results()
        for name in ("sent", "accepted", "refused", "casts", "moves", "sets", "finds"):
            self.done[name] = sum(report[name] for report in reports)
        return reports

    def _resident(self):
        """Return the resident MiB of the conductor that is never killed."""
        process = psutil.Process(self.conductors[0].process.pid)
        return sum(each.memory_info().rss for each in (
            process, *process.children(recursive=True))) // 2 ** 20

    def _kill_conductor(self):
        number = self._chance.randrange(1, _CONDUCTORS)
        self._tell(f"conductor {number} is killed")
        self.conductors[number].kill()
        self.conductors[number].start()
        self.done["conductors_killed"] += 1

    def _kill_broker(self):
        self._tell("the broker is killed")
        self.broker.stop()
        time.sleep(self._chance.uniform(0, 3))
        self.broker.start()
        self.done["broker_killed"] += 1

    def _kill_database(self):
        self._tell("the database is killed")
        self.server.stop()
        time.sleep(self._chance.uniform(0, 3))
        self.server.start()
        self.done["database_killed"] += 1

    def events(self):
        """Return a list of all events of the stream, after all of them are published."""
        deadline = time.monotonic() + 90
        while True:
            with self.store.database.reader() as tx:
                status = events.status(tx)
            if status["published_position"] == status["events"]:
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all events are published: {status}")
            time.sleep(0.2)
        reader = listener.StreamReader(
            self.broker.url, self.store.conf.notifications.stream, 1)
        found = []
        for event in reader.events(30):
            found.append(event)
            if event.position == status["last_position"]:
                break
        self.done["events"] = len(found)
        return found

    def dead_letters(self):
        """Return the dead letters, after all poison in the queues that are kept is among them.

        :returns: dict of queue to list of dead letters
        """
        found = dead_letters.DeadLetters(
            Broker.at(self.broker.url), command_queue.dead_letter_queue(self.store.conf.queues))
        deadline = time.monotonic() + 90
        while True:
            letters = collections.defaultdict(list)
            for letter in found.all():
                letters[letter.queue].append(letter)
            missing = [(queue, poison) for queue in _KEPT for poison in self.poison.taken[queue]
                       if not any(poison.mark in letter.body for letter in letters[queue])]
            if not missing:
                return letters
            if time.monotonic() > deadline:
                raise TimeoutError(f"not among the dead letters: {missing[:3]}"[:2000])
            time.sleep(1)

    def settled(self):
        """Return the number of requests with a stored outcome."""
        with self.store.database.reader() as tx:
            return tx.execute(sa.select(sa.func.count()).select_from(models.requests).where(
                models.requests.c.method.in_((
                    "claim_allocations", "release_allocations", "move_allocations",
                    "set_allocations", "claim_by_request")))).scalar()


def check(test, soak, reports):
    """Compare the answers to clients with the store, and the store with the events.

    :param test: :class:`testtools.TestCase`
    """
    ledger.check(test, soak.store.database, reports)
    test.assertEqual(soak.done["sent"], soak.settled())
    found = soak.events()
    ledger.check_events(test, soak.store.database, found)
    ledger.check_late_listener(test, soak.store.database, found)
    letters = soak.dead_letters()
    # Nothing else died: no innocent message is counted with a poisoned one.
    test.assertEqual([], [letter for each in letters.values() for letter in each
                          if "poison-" not in letter.body])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--seed", type=int, help="seed of the random kills and of the messages "
                        "that cannot be read; another one each time by default")
    options = parser.parse_args()
    # The kills are reported below; the errors that they cause are expected.
    logging.disable()
    chosen = list(DATABASES) if options.database == "both" else [options.database]
    seed = random.randrange(2 ** 32) if options.seed is None else options.seed
    print(f"--seed {seed}", flush=True)
    rows, code = [], 0
    for kind in chosen:
        print(f"{kind}: {options.minutes / len(chosen):g} minutes", flush=True)
        began = time.monotonic()
        with Soak(kind, seed, lambda text: print(
                f"  {time.monotonic() - began:6.1f} s  {text}", flush=True)) as soak:  # noqa: B023
            reports = soak.run(60 * options.minutes / len(chosen))
            print("  comparing the clients' answers with the store and the events",
                  flush=True)
            verdict = "no differences"
            try:
                check(testtools.TestCase("run"), soak, reports)
            except (AssertionError, TimeoutError) as error:
                verdict, code = str(error), 1
            rows.append({"database": kind, **soak.done, "found": verdict,
                         "resident_mib_early": soak.memory[0],
                         "resident_mib_at_the_end": soak.memory[-1]})
    output.show(rows, ["database", "sent", "accepted", "refused", "casts", "moves", "sets",
                       "finds", "events", "poison", *KILLS, "resident_mib_early",
                       "resident_mib_at_the_end", "found"], "auto")
    return code


if __name__ == "__main__":
    sys.exit(main())
