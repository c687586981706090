# SPDX-License-Identifier: Apache-2.0
"""Messages that cannot be read, in every queue and in the stream of a service under load."""

import threading
import time

from placement_rpc.amqp import dead_letters
from placement_rpc.amqp.broker import Broker
from placement_rpc.rpc import command_queue, routing
from tests import messages

# Seconds between two messages, for each queue.
_PAUSE = 0.5
# Until they are among the dead letters.
_SECONDS = 90


class Poison(threading.Thread):
    """Publishes messages that cannot be read into queues, one after the other, until stopped.

    :param url: of the broker
    :param conf: of the service
    :param seed: int
    """

    def __init__(self, url, conf, seed):
        super().__init__(daemon=True)
        self._generator = messages.Generator(seed)
        self._url = url
        # The command queue survives the death of a broker; those of calls may not.
        self._kept = command_queue.name(routing.TOPIC)
        # Those that the broker confirmed, by queue.
        self._taken = {queue: [] for queue in (
            *(routing.name(routing.TOPIC, queue) for queue in routing.QUEUES),
            self._kept, conf.notifications.stream)}
        self._ended = threading.Event()
        self._poisoner = messages.Poisoner(url)

    @property
    def published(self):
        """How many the broker has confirmed"""
        return sum(map(len, self._taken.values()))

    def run(self):
        while not self._ended.wait(_PAUSE):
            for queue, taken in self._taken.items():
                taken += self._poisoner.publish(queue, [self._generator.poison()])

    def stop(self):
        """Publish no more."""
        self._ended.set()
        self.join()
        self._poisoner.close()

    def faults(self, conf):
        """Return what is wrong with the dead letters, after all that must be there are."""
        found = dead_letters.DeadLetters(
            Broker.at(self._url), command_queue.dead_letter_queue(conf.queues))
        ends = time.monotonic() + _SECONDS
        while True:
            letters = found.all()
            bodies = [letter.body for letter in letters if letter.queue == self._kept]
            missing = [poison for poison in self._taken[self._kept]
                       if not any(poison.mark in body for body in bodies)]
            if not missing or time.monotonic() > ends:
                break
            time.sleep(1)
        if not self._taken[self._kept]:
            return [f"no poison was published to {self._kept}"]
        # Nothing else died: no innocent message is counted with a poisoned one.
        return [f"not among the dead letters: {each}"[:500] for each in missing[:5]] + [
            f"a dead letter: {letter}"[:500] for letter in letters
            if "poison-" not in letter.body]
