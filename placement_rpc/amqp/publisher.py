# SPDX-License-Identifier: Apache-2.0
"""Publish messages on RabbitMQ and wait for the broker's confirms."""

import contextlib
import itertools
import time

import amqp

from placement_rpc.amqp import frames

# A broker that does not confirm for so long is as good as away.
CONFIRM_TIMEOUT = 30


class Unconfirmed(Exception):
    """The broker is away, or did not take everything: all of it has to be sent again."""


class ConfirmedChannel:
    """Publishes many messages, and then waits until the broker has confirmed all of them.

    What reaches no queue counts as not taken.

    :param connection: an open :class:`kombu.Connection`
    """

    def __init__(self, connection):
        self.connection = connection
        self.channel = connection.channel()
        self.channel.confirm_select()
        self.channel.events["basic_ack"].add(self._confirmed)
        self.channel.events["basic_nack"].add(self._nacked)
        self.channel.events["basic_return"].add(self._returned)
        self._tags = itertools.count(1)
        self._unconfirmed = set()
        self._refused = None

    def send(self, body, exchange, routing_key, message_id, headers=None):
        """Publish a durable message of JSON.

        :param body: str or bytes
        :param message_id: str; None for none
        :param headers: dict of what else travels beside it
        """
        self._unconfirmed.add(next(self._tags))
        properties = {"message_id": message_id} if message_id else {}
        frames.publish(self.channel, amqp.Message(
            body, delivery_mode=2, content_type="application/json", content_encoding="utf-8",
            application_headers=headers or {}, **properties), exchange, routing_key,
            mandatory=True)

    def settle(self, timeout=CONFIRM_TIMEOUT, still=lambda: None):
        """Wait until everything that was sent is confirmed.

        :param timeout: float, seconds
        :param still: callable that is called while it waits; what it raises ends the waiting
        :raises Unconfirmed: and nothing is known of any message
        """
        deadline = time.monotonic() + timeout
        while self._unconfirmed and not self._refused:
            still()
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unconfirmed(f"no confirm within {timeout:.0f} s")
            with contextlib.suppress(TimeoutError):
                self.connection.drain_events(timeout=min(0.5, left))
        if self._refused:
            refused, self._refused = self._refused, None
            raise Unconfirmed(refused)

    def _confirmed(self, tag, multiple):
        if multiple:
            self._unconfirmed = {each for each in self._unconfirmed if each > tag}
        else:
            self._unconfirmed.discard(tag)

    def _nacked(self, tag, multiple):
        self._confirmed(tag, multiple)
        self._refused = "the broker refused a message"

    def _returned(self, *_arguments):
        self._refused = "a message reached no queue"
