# SPDX-License-Identifier: Apache-2.0
"""Publish messages on RabbitMQ and wait for the broker's confirms."""

import itertools
import logging
import time
from collections.abc import Callable, Iterable

import amqp

from placement_rpc.amqp import frames
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.frames import CHANNEL_FAILURES, FAILURES
from placement_rpc.amqp.outgoing import Outgoing

LOG = logging.getLogger(__name__)
# Seconds after which a broker that does not confirm counts as away.
CONFIRM_TIMEOUT = 30


class Unconfirmed(Exception):
    """The broker is away or did not take every message: all of them have to be sent again."""


class ConfirmedChannel:
    """A channel that publishes many messages, then waits until the broker confirmed all of them.

    A message that reaches no queue counts as not confirmed. For one thread.

    :param connection: an open connection, which this thread reads
    :raises FAILURES: if the connection is lost
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel = connection.channel()
        with connection.writing():
            self._channel.confirm_select()
        self._channel.events["basic_ack"].add(self._confirmed)
        self._channel.events["basic_nack"].add(self._nacked)
        self._channel.events["basic_return"].add(self._returned)
        self._tags = itertools.count(1)
        self._unconfirmed: set[int] = set()
        self._refused: str | None = None

    def send(self, *messages: Outgoing) -> None:
        """Publish messages; :meth:`settle` tells whether the broker took them.

        :raises ValueError: if a message cannot be sent as it is; none is sent
        :raises FAILURES: if the connection is lost
        """
        encoded = frames.encoded(self._channel, messages, mandatory=True)
        self._unconfirmed.update(itertools.islice(self._tags, len(messages)))
        with self._connection.writing():
            frames.write(self._channel, encoded)

    def first(self, declare: Callable[[amqp.Channel], object]) -> None:
        """Declare what the messages that are sent from now on need.

        The broker handles the declarations before the messages.

        :param declare: called with the channel; it must not wait for the broker
        :raises FAILURES: if the connection is lost
        """
        with self._connection.writing():
            declare(self._channel)

    def settle(self, timeout: float = CONFIRM_TIMEOUT,
               still: Callable[[], object] = lambda: None) -> None:
        """Wait until everything that was sent is confirmed.

        :param timeout: seconds
        :param still: called at least twice a second while waiting; an error of it ends the wait
        :raises Unconfirmed: if a message was refused, returned or not confirmed in time; any of
            the others may have been kept
        :raises FAILURES: if the connection is lost
        """
        deadline = time.monotonic() + timeout
        while not self._is_over():
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unconfirmed(f"no confirm within {timeout:.0f} s")
            # First, since the confirms may have come while the caller did something else.
            self._connection.read(min(0.5, left), enough=self._is_over)
            if not self._is_over():
                still()
        self.is_settled()

    def is_settled(self) -> bool:
        """Return whether the broker has confirmed all messages, without waiting.

        :raises Unconfirmed: if a message was refused or returned
        """
        if self._refused:
            refused, self._refused = self._refused, None
            raise Unconfirmed(refused)
        return not self._unconfirmed

    def keep_alive(self) -> None:
        """Read what has arrived, and check the broker's heartbeats.

        :raises FAILURES: if the connection is lost
        """
        self._connection.read(0)

    def _is_over(self):
        return bool(self._refused or not self._unconfirmed)

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


class Publisher:
    """Publishes with confirms on a connection that is kept, and replaced when it is lost.

    For one thread at a time.

    :param broker: where to connect
    :param declare: called with each new connection, to declare what is published to
    :param declare_again: called with the channel before the messages of each :meth:`publish`, as
        of :meth:`ConfirmedChannel.first`
    """

    def __init__(self, broker: Broker, declare: Callable[[Connection], object],
                 declare_again: Callable[[amqp.Channel], object] = lambda channel: None) -> None:
        self._broker = broker
        self._declare = declare
        self._declare_again = declare_again
        self._connection: Connection | None = None
        self._channel: ConfirmedChannel | None = None
        self._backoff = broker.backoff()
        self._retry_at = 0.0

    def publish(self, messages: Iterable[Outgoing], timeout: float = CONFIRM_TIMEOUT,
                still: Callable[[], object] = lambda: None,
                meanwhile: Callable[[], object] = lambda: None) -> None:
        """Publish messages, and return when the broker has confirmed all of them.

        A kept connection may have been lost long ago: then the messages are sent again on a new
        one, once.

        :param timeout: seconds
        :param still: called at least twice a second while waiting; an error of it ends the wait
        :param meanwhile: called each time all are sent, before it waits for the confirms; it
            should not take long, since nothing is read meanwhile
        :raises Unconfirmed: if a message was refused, returned or not confirmed in time, or there
            is no connection; any of the messages may have been kept
        """
        messages, ends = list(messages), time.monotonic() + timeout
        kept = self._channel is not None
        try:
            try:
                self._attempt(messages, ends, still, meanwhile)
            except FAILURES as error:
                if not kept or isinstance(error, CHANNEL_FAILURES):
                    raise
                LOG.info("The connection to the broker was lost; reconnecting: %s", error)
                self.close(lost=True)
                self._attempt(messages, ends, still, meanwhile)
        except FAILURES as error:
            self.close(lost=frames.is_loss(error))
            raise Unconfirmed(f"{type(error).__name__}: {error}") from error
        except Unconfirmed:
            # Also if nothing was confirmed in time.
            self.close(lost=True)
            raise
        except BaseException:
            # Raised by one of the caller's functions: it may no longer be the one to publish.
            self.close()
            raise

    def _attempt(self, messages, ends, still, meanwhile):
        channel = self._open()
        # Connecting may have taken long: the caller may no longer be the one to publish.
        still()
        channel.first(self._declare_again)
        channel.send(*messages)
        meanwhile()
        channel.settle(max(0.1, ends - time.monotonic()), still)

    def keep_alive(self) -> None:
        """Keep the connection open while there is nothing to publish; reconnect if it is lost.

        A connection that was lost is replaced at once. Further attempts come after pauses.

        :raises Unconfirmed: if something that is there cannot be published to
        """
        if self._channel is not None:
            try:
                self._channel.keep_alive()
                return
            except FAILURES as error:
                LOG.info("The broker is away, or closed an idle connection: %s", error)
                self.close(lost=frames.is_loss(error))
        elif time.monotonic() < self._retry_at:
            return
        try:
            self._open()
        except FAILURES as error:
            LOG.info("The broker cannot be reached: %s", error)
            self.close(lost=frames.is_loss(error))
            self._retry_at = time.monotonic() + self._backoff.next()
        else:
            self._backoff.reset()

    def _open(self):
        if self._channel is None:
            self.close()
            self._connection = self._broker.connect()
            self._declare(self._connection)
            self._channel = ConfirmedChannel(self._connection)
        return self._channel

    def close(self, lost: bool = False) -> None:
        """Drop the connection, which may be broken; the next publish opens another.

        :param lost: whether to open it to another node
        """
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            connection.drop(lost)
