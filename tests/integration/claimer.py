# SPDX-License-Identifier: Apache-2.0
"""A client process under load: ``python tests/integration/claimer.py`` with JSON on its input.

Run as a file, so that the interpreter of another release can run it as well; it imports only
modules that every release has.

It claims, replaces claims, moves, releases and, if asked to, looks for providers, swaps what
consumers have and has the service find what to claim, at random from several threads, by calls
and by casts. It prints the answers as JSON: the allocations that each of its consumers must have
at the end, the numbers of accepted and refused requests, and the seconds that the longest took.
"""

import json
import os
import random
import sys
import threading
import time
import uuid

from placement_rpc import api, exception
from placement_rpc import conf as configuration


class Claimer:
    """One thread's share of the load."""

    def __init__(self, client, order, number):
        self.client = client
        self.order = order
        self.random = random.Random(f"{order['seed']} {number}")
        self.held = {}
        self.outcomes = {"accepted": 0, "refused": 0, "casts": 0, "moves": 0, "sets": 0,
                         "finds": 0, "reads": 0, "longest": 0.0, "changes": {}}
        self.failures = []
        self.sent = 0

    def run(self):
        while self.sent < self.order["requests"] and not self._is_over():
            act = self._choose()
            if act is None:
                continue
            self.sent += 1
            self._answer_of(act)

    def _answer_of(self, act):
        """Make a request and count its outcome."""
        began = time.monotonic()
        try:
            act()
            self.outcomes["accepted"] += 1
        except exception.ClaimRefused:
            self.outcomes["refused"] += 1
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        self.outcomes["longest"] = max(self.outcomes["longest"], time.monotonic() - began)

    def _is_over(self):
        return "until" in self.order and os.path.exists(self.order["until"])

    def _choose(self):
        """Return the next request; None if it would claim what the consumer holds already."""
        dice = self.random.random()
        if self.held and self.random.random() < self.order.get("sets", 0):
            return self._set
        if self.random.random() < self.order.get("finds", 0):
            return self._find
        if "reads" in self.order and self.random.random() < self.order["reads"]:
            return self._read
        if self.held and dice < 0.15:
            consumer = self.random.choice(list(self.held))
            if dice < 0.1 or not self.order.get("moves", True):
                return lambda: self._release(consumer)
            return lambda: self._move(consumer)
        consumer = self.random.choice(list(self.held)) if self.held and dice < 0.25 else (
            str(uuid.uuid4()))
        providers = self.random.sample(self.order["providers"], self.random.choice([1, 1, 2]))
        allocations = {provider: {"VCPU": self.random.randint(1, 4),
                                  "MEMORY_MB": 512 * self.random.randint(1, 4)}
                       for provider in providers}
        held = self.held.get(consumer, {})
        if any(held.get(provider) == resources for provider, resources in allocations.items()):
            # Equal allocations raise no generation, which would look like a lost change.
            return None
        return lambda: self._claim(consumer, allocations)

    def _release(self, consumer):
        self._changed(self._make("release_allocations", consumer))
        del self.held[consumer]

    def _move(self, consumer):
        target = str(uuid.uuid4())
        result = self.client.move_allocations(None, consumer, target)
        self._changed(result)
        for provider, generation in result.generations.items():
            # A move changes each provider twice: once for the source, once for the target.
            self.outcomes["changes"][provider].append(generation - 1)
        self.held[target] = self.held.pop(consumer)
        self.outcomes["moves"] += 1

    def _set(self):
        """Swap what two consumers hold, or have a new one take what one holds, in one call."""
        one, other = self.random.choice(list(self.held)), self.random.choice(list(self.held))
        if any(self.held[other].get(provider) == resources
               for provider, resources in self.held[one].items()):
            # It would not raise the generation of the provider.
            other = str(uuid.uuid4())
        wanted = {one: self.held.get(other, {}), other: self.held[one]}
        results = self.client.set_allocations(None, [api.Claim(
            consumer_uuid=consumer, allocations=allocations, project_id="project", user_id="user")
            for consumer, allocations in wanted.items()])
        self.held |= wanted
        if not self.held[one]:
            del self.held[one]
        # Both results have the one step of a provider.
        for provider, generation in {
                provider: generation for result in results
                for provider, generation in result.generations.items()}.items():
            self.outcomes["changes"][provider].append(generation)
        self.outcomes["sets"] += 1

    def _claim(self, consumer, allocations):
        self._changed(self._make("claim_allocations", api.Claim(
            consumer_uuid=consumer, allocations=allocations, project_id="project",
            user_id="user")))
        self.held[consumer] = allocations

    def _find(self):
        """Have the service choose the providers of two groups, for a new consumer."""
        wanted = api.CandidatesRequest(group_policy="isolate", groups=[
            api.CandidateGroup(suffix="_A", resources={"VCPU": self.random.randint(1, 4)}),
            api.CandidateGroup(resources={"MEMORY_MB": 512})])
        consumer = str(uuid.uuid4())
        result = self.client.claim_by_request(None, wanted, api.Claim(
            consumer_uuid=consumer, project_id="project", user_id="user"))
        self._changed(result)
        self.held[consumer] = result.allocations
        self.outcomes["finds"] += 1

    def _read(self):
        """Look for providers with room, and read what a consumer has."""
        self.client.get_by_request(None, api.ResourceRequest(resources={"VCPU": 1}))
        for consumer in list(self.held)[:1]:
            self.client.get_allocations(None, consumer)
        self.outcomes["reads"] += 1

    def _make(self, method, argument):
        """Make a change by a call or, at random, by a cast; wait for the outcome of a cast."""
        if self.random.random() >= self.order.get("casts", 0):
            return getattr(self.client, method)(None, argument)
        request_id = getattr(self.client, method)(None, argument, cast=True)
        self.outcomes["casts"] += 1
        deadline = time.monotonic() + self.order.get("deadline", 60)
        while True:
            try:
                return self.client.get_request_result(None, request_id).result()
            except exception.RequestNotFound:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def _changed(self, result):
        """Record the generation of each provider that this change made."""
        for provider, generation in result.generations.items():
            self.outcomes["changes"].setdefault(provider, []).append(generation)


def _client(order):
    options = {"config_files": [], "placement_client__deadline": order.get("deadline", 60),
               "placement_client__attempt_timeout": order.get("attempt_timeout", 5)}
    if "transport_url" in order:
        return api.PlacementAPI(
            conf=configuration.new_config(**options), transport_url=order["transport_url"],
            pin=order.get("pin"))
    return _local(order["database"], options)


def _local(database, options):
    # Imported here, since other releases, whose interpreter may run this file, lack these modules.
    from placement_rpc import manager
    from placement_rpc.conf import service
    from placement_rpc.db import api as db

    conf = service.new_config(database__connection=database, **options)
    return api.PlacementAPI("local", conf, manager=manager.Manager(conf, db.Database(conf)))


def main():
    order = json.load(sys.stdin)
    client = _client(order)
    claimers = [Claimer(client, order, number) for number in range(order["threads"])]
    threads = [threading.Thread(target=each.run) for each in claimers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump([{"held": each.held, "sent": each.sent, "failures": each.failures,
                **each.outcomes} for each in claimers], sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
