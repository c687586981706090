# SPDX-License-Identifier: Apache-2.0
"""A process of clients under load: ``python -m tests.soak.client`` with JSON on its input.

Each thread claims, alone and in batches, replaces, moves, swaps and releases, has the service
find what to claim, and reads, by calls and by casts. Everything is recorded in a history. At the
end the process prints as JSON what each of its consumers must hold, and what it counted.
"""

import collections
import json
import os
import random
import sys
import threading
import time
import uuid

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from tests.soak.history import ACCEPTED, REFUSED, UNKNOWN, Operation, Read, Recorder

# A client with more consumers than this only releases; it keeps the providers nearly full.
_MOST_HELD = 360
# How many claims a batch has, or how many consumers are released together: a few, and more than a
# conductor settles in one transaction.
_BATCHES = (2, 4, 16, 64, 256)
# How many providers a batch claims of: a batch that needs all of them would wait for every other.
_OF_BATCH = 4
# Seconds for which outcomes are asked for after the load.
_RESOLVE = 90


class Client:
    """One thread's share of the load.

    :param number: int, different for each thread of the process
    """

    def __init__(self, remote, order, recorder, number):
        self._api, self._order, self._recorder = remote, order, recorder
        self._name = f"{order['seed']}-{number}"
        self._chance = random.Random(self._name)
        #: Consumer to dict of provider to dict of class name to amount.
        self.held = {}
        #: Consumers of requests with an unknown outcome: each holds what it held, or what it was
        #: to hold.
        self.uncertain = []
        self.counts = collections.Counter()
        self.failures = []
        # Requests with an unknown outcome and their ids.
        self._unknown = []

    def run(self, requests=float("inf")):
        """Work until the file is there that ends the load, or for a number of requests."""
        while requests > 0 and not os.path.exists(self._order["until"]):
            self._act()
            requests -= 1

    def report(self):
        """Return what the process prints of this thread, as JSON values."""
        return {"held": self.held, "uncertain": self.uncertain, "counts": self.counts,
                "failures": self.failures}

    def _act(self):
        dice = self._chance.random()
        if self.held and (dice < 0.1 or len(self.held) > _MOST_HELD):
            self._release_some()
        elif self.held and dice < 0.18:
            self._release(self._any())
        elif self.held and dice < 0.22:
            self._move(self._any())
        elif len(self.held) > 1 and dice < 0.27:
            self._swap()
        elif dice < 0.43:
            self._batch()
        elif dice < 0.49:
            self._find()
        elif dice < 0.58:
            self._read()
        elif self.held and dice < 0.66:
            self._claim("replace", self._any())
        else:
            self._claim("claim", str(uuid.uuid4()))

    def _any(self):
        return self._chance.choice(list(self.held))

    def _allocations(self, of=None):
        providers = self._chance.sample(of or self._order["providers"],
                                        self._chance.choice([1, 1, 2]))
        return {provider: {"VCPU": self._chance.randint(1, 4),
                           "MEMORY_MB": 512 * self._chance.randint(1, 4)}
                for provider in providers}

    # -- what it does ------------------------------------------------------------------------

    def _claim(self, kind, consumer):
        wanted = self._allocations()
        if not _differ(self.held.get(consumer, {}), wanted):
            return
        after = {consumer: wanted}
        self._change(kind, after, lambda how: self._make(
            "claim_allocations", _claim(consumer, wanted), how))

    def _release(self, consumer):
        self._change("release", {consumer: {}}, lambda how: self._make(
            "release_allocations", consumer, how))

    def _release_some(self):
        """Release several consumers in one transaction."""
        number = min(self._chance.choice(_BATCHES), len(self.held))
        after = {consumer: {} for consumer in self._chance.sample(list(self.held), number)}
        self._change("set", after, lambda how: _generations(self._api.set_allocations(
            None, [_claim(consumer, {}) for consumer in after], **how)))

    def _move(self, consumer):
        target = str(uuid.uuid4())
        after = {consumer: {}, target: self.held[consumer]}
        # A move changes each provider twice: once for the source, once for the target.
        self._change("move", after, lambda how: self._api.move_allocations(
            None, consumer, target, **how).generations, steps=2)

    def _swap(self):
        one, other = self._chance.sample(list(self.held), 2)
        if not _differ(self.held[one], self.held[other]):
            return
        after = {one: self.held[other], other: self.held[one]}
        self._change("set", after, lambda how: _generations(self._api.set_allocations(
            None, [_claim(*each) for each in after.items()], **how)))

    def _find(self):
        """Have the service choose the providers of two groups, for a new consumer."""
        wanted = api.CandidatesRequest(group_policy="isolate", groups=[
            api.CandidateGroup(suffix="_A", resources={"VCPU": self._chance.randint(1, 4)}),
            api.CandidateGroup(resources={"MEMORY_MB": 512})])
        consumer = str(uuid.uuid4())
        after = {consumer: {}}

        def find(how):
            done = self._api.claim_by_request(None, wanted, _claim(consumer), **how)
            after[consumer] = done.allocations
            return done.generations

        self._change("find", after, find)

    def _batch(self):
        all_ = self._order["providers"]
        providers = self._chance.sample(all_, min(_OF_BATCH, len(all_)))
        wanted = {str(uuid.uuid4()): self._allocations(providers)
                  for _ in range(self._chance.choice(_BATCHES))}
        start, how = time.monotonic(), {"request_id": str(uuid.uuid4())}
        try:
            results = self._api.claim_batch(
                None, [_claim(*each) for each in wanted.items()], **how)
        except Exception as error:
            if self._note(error):
                for consumer, allocations in wanted.items():
                    self._forget(_Change("batch", start, {consumer: allocations}, {}), None)
            return
        for (consumer, allocations), result in zip(wanted.items(), results, strict=True):
            change = _Change("batch", start, {consumer: allocations}, {})
            if isinstance(result, exception.ClaimRefused):
                self._refused(change)
            elif isinstance(result, exception.PlacementException):
                self._note(result)
                self._forget(change, None)
            else:
                self._accepted(change, result.generations)

    def _read(self):
        provider, start = self._chance.choice(self._order["providers"]), time.monotonic()
        try:
            usages = self._api.get_usages(None, provider)
        except exception.ReadTimedOut:
            self.counts["reads timed out"] += 1
            return
        except Exception as error:
            self._note(error)
            return
        self.counts["reads"] += 1
        self._recorder.operation(Operation(
            "read", ACCEPTED, start, time.monotonic(), {}, {}, 1,
            {provider: Read(usages.generation, {
                each.resource_class: each.used for each in usages.objects})}, self._name))

    def _make(self, method, argument, how):
        """Make a change by a call or, at random, by a cast; return the generations."""
        if self._chance.random() >= self._order["casts"]:
            return getattr(self._api, method)(None, argument, **how).generations
        getattr(self._api, method)(None, argument, cast=True, **how)
        self.counts["casts"] += 1
        how["confirmed"] = True
        return self._outcome(how["request_id"], self._order["deadline"]).generations

    def _outcome(self, request_id, seconds):
        """Wait until the outcome of a request is stored; return it."""
        deadline, pause = time.monotonic() + seconds, 0.05
        while True:
            try:
                return self._api.get_request_result(None, request_id).result()
            except (exception.RequestNotFound, exception.ReadTimedOut):
                if time.monotonic() > deadline:
                    raise
                time.sleep(pause)
                # Without longer pauses these questions were half of the load.
                pause = min(2 * pause, 0.25)

    # -- what becomes of it --------------------------------------------------------------------

    def _change(self, kind, after, make, steps=1):
        """Make a change, and record it.

        :param after: dict of consumer to what it is to hold
        :param make: callable of keyword arguments of the call, which returns the generations
        """
        change = _Change(kind, time.monotonic(), after,
                         {consumer: self.held.get(consumer, {}) for consumer in after}, steps)
        how = {"request_id": str(uuid.uuid4())}
        try:
            generations = make(how)
        except exception.ClaimRefused:
            self._refused(change)
        except Exception as error:
            if self._note(error):
                self._forget(change, how)
        else:
            self._accepted(change, generations)

    def _note(self, error):
        """Note an error that must not occur; return whether the request may have been done."""
        if isinstance(error, exception.RequestNotFound | exception.RequestExpired) or (
                isinstance(error, exception.PlacementException) and error.retryable):
            return True
        self.failures.append(f"{type(error).__name__}: {error}"[:500])
        return False

    def _accepted(self, change, generations):
        self.counts["accepted"] += 1
        self.counts[change.kind] += 1
        self._record(change, ACCEPTED, generations)
        for consumer, allocations in change.after.items():
            if allocations:
                self.held[consumer] = allocations
            else:
                self.held.pop(consumer, None)

    def _refused(self, change):
        self.counts["refused"] += 1
        # Which providers a search had is not known.
        self._record(change._replace(after={}) if change.kind == "find" else change, REFUSED, {})

    def _record(self, change, outcome, generations):
        self._recorder.operation(Operation(
            change.kind, outcome, change.start, None if outcome == UNKNOWN else time.monotonic(),
            change.writes(), generations, change.steps, None, self._name))

    def _forget(self, change, how):
        """Leave the consumers of a request with an unknown outcome alone from now on."""
        self.counts["unknown"] += 1
        for consumer in change.after:
            self.held.pop(consumer, None)
        self._unknown.append((change, how))

    def resolve(self):
        """After the load, record the requests with an unknown outcome."""
        for change, how in self._unknown:
            confirmed = how is not None and "confirmed" in how
            if confirmed or change.kind == "find":
                change = self._resolved(change, how["request_id"], confirmed)
            self._record(change, UNKNOWN, {})
            for consumer, after in change.after.items():
                self.uncertain.append((consumer, change.before.get(consumer, {}), after))

    def _resolved(self, change, request_id, confirmed):
        """Return a change with what a search found; of a cast, the outcome must be known."""
        try:
            done = self._outcome(request_id, _RESOLVE if confirmed else 0)
        except (exception.RequestNotFound, exception.ReadTimedOut):
            if confirmed:
                self.failures.append(f"the cast {request_id} was confirmed and has no outcome")
        except exception.ClaimRefused:
            return change
        else:
            if change.kind == "find":
                return change._replace(after=dict.fromkeys(change.after, done.allocations))
        return change


class _Change(collections.namedtuple("_Change", "kind start after before steps", defaults=(1,))):
    """A change, with what its consumers hold before and after it."""

    def writes(self):
        """Return what the consumers hold of each provider afterwards, as in an operation."""
        found = {}
        for consumer, after in self.after.items():
            before = self.before.get(consumer, {})
            for provider in before.keys() | after.keys():
                if before.get(provider) != after.get(provider):
                    found.setdefault(provider, {})[consumer] = after.get(provider, {})
        return found


def _differ(before, after):
    """Whether no provider has the same of both; it would not raise its generation."""
    return not any(before.get(provider) == amounts for provider, amounts in after.items())


def _claim(consumer, allocations=None):
    more = {} if allocations is None else {"allocations": allocations}
    return api.Claim(consumer_uuid=consumer, project_id="project", user_id="user", **more)


def _generations(results):
    return {provider: generation for each in results
            for provider, generation in each.generations.items()}


def main():
    order = json.load(sys.stdin)
    conf = configuration.new_config(
        config_files=[], placement_client__deadline=order["deadline"],
        placement_client__attempt_timeout=order["attempt_timeout"])
    recorder = Recorder(order["history"])
    with api.PlacementAPI(conf=conf, transport_url=order["transport_url"]) as remote:
        clients = [Client(remote, order, recorder, number) for number in range(order["threads"])]
        for phase in ("run", "resolve"):
            threads = [threading.Thread(target=getattr(each, phase)) for each in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    recorder.close()
    json.dump([each.report() for each in clients], sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
