# SPDX-License-Identifier: Apache-2.0
"""Clients that claim in threads of the test, and write down when they were answered."""

import itertools
import threading
import time

from tests import base
from tests.integration.claimer import Claimer

_PROVIDERS, _THREADS = 4, 6


class Client(Claimer):
    """A thread that claims, and records when its requests were answered."""

    def __init__(self, client, providers, number):
        super().__init__(client, {"requests": 10 ** 9, "providers": providers,
                                  "seed": "load"}, number)
        self.answered = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def _is_over(self):
        return self.over.is_set()

    def _answer_of(self, act):
        failures = len(self.failures)
        super()._answer_of(act)
        if len(self.failures) == failures:
            self.answered.append(time.monotonic())


class Load:
    """Clients of a service that claim until :meth:`end`."""

    def __init__(self, client):
        providers = []
        for number in range(_PROVIDERS):
            uuid = client.create_provider(None, f"provider {number}").uuid
            client.set_inventory(None, uuid, [
                base.inventory("VCPU", 10_000), base.inventory("MEMORY_MB", 5_000_000)])
            providers.append(uuid)
        self.clients = [Client(client, providers, number) for number in range(_THREADS)]
        for each in self.clients:
            each.thread.start()

    def answered_since(self, moment):
        """Return when requests were answered after a moment: sorted seconds after it."""
        return sorted(at - moment for each in self.clients for at in each.answered if at > moment)

    def end(self):
        for each in self.clients:
            each.over.set()
        for each in self.clients:
            each.thread.join()

    def survive(self, fault):
        """Let something fail, and wait until requests are answered as before.

        :param fault: callable that returns once the service can work again
        :returns: tuple of what it returned, and of the most seconds without an answer
        """
        base.wait_until(lambda: len(self.answered_since(0)) > 50)
        began = time.monotonic()
        result = fault()
        back = time.monotonic()
        base.wait_until(lambda: len(self.answered_since(back)) > 100, 120)
        times = [0.0, *self.answered_since(began)]
        return result, max(after - before for before, after in itertools.pairwise(times))

    @property
    def reports(self):
        return [{"held": each.held, "sent": each.sent, "failures": each.failures,
                 **each.outcomes} for each in self.clients]
