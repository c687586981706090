# SPDX-License-Identifier: Apache-2.0
"""A connection to RabbitMQ that one thread reads and on which many threads write."""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator

import amqp
import kombu

from placement_rpc.amqp import frames
from placement_rpc.amqp.frames import CHANNEL_FAILURES, FAILURES

LOG = logging.getLogger(__name__)
# Seconds between two checks that the broker is alive.
_CHECK = 1.0


class Connection:
    """An open connection: the one place where AMQP is read.

    One thread reads; any thread may write, one at a time. On TLS, reading and writing exclude
    each other too, and so does waiting for the broker's answer to a method. A write that fails or
    is interrupted may leave half a frame, so anything that ends a write early ends the connection:
    an error, KeyboardInterrupt, SystemExit, or the time-out of a green thread. Only an error that
    the broker reports about a channel does not.

    :param connection: an open :class:`kombu.Connection`
    :param tls: whether it is encrypted
    :param on_loss: called by :meth:`drop` of a connection that was lost
    """

    def __init__(self, connection: kombu.Connection, tls: bool = False,
                 on_loss: Callable[[], object] = lambda: None) -> None:
        self._connection = connection
        self._on_loss = on_loss
        # Reentrant only because such a lock knows its owner.
        self._lock = threading.RLock()
        self._reading = self._lock if tls else contextlib.nullcontext()
        self._check_at = 0.0

    @property
    def connected(self) -> bool:
        """Whether the connection is open, as far as this end knows."""
        try:
            return frames.opened(self._connection) is not None
        except FAILURES:
            return False

    def channel(self) -> amqp.Channel:
        """Return a new channel that does not decode bodies.

        A message can name an encoding that its body does not have. Methods of the channel are for
        a block of :meth:`writing`.

        :raises FAILURES: if the connection is lost
        """
        with self.writing():
            return self._channel()

    def _channel(self):
        channel = frames.opened(self._connection).channel()
        channel.auto_decode = False
        return channel

    @contextlib.contextmanager
    def asking(self) -> Iterator[amqp.Channel]:
        """Hold a channel, and the write lock, for a block that waits for the broker's answers.

        An error that the broker reports about the channel leaves the connection open.

        :raises FAILURES: if the connection is lost
        """
        with self.writing():
            channel = self._channel()
            yield channel
            channel.close()

    def read(self, seconds: float, enough: Callable[[], bool] = lambda: False,
             waker: socket.socket | None = None) -> None:
        """Wait for data and read all that has arrived, then check the broker's heartbeats.

        Callbacks of the channels run in this thread. Reading stops after a second, even if more
        messages keep arriving.

        :param seconds: how long to wait if nothing has arrived
        :param enough: called before each read; reading ends when it returns true
        :param waker: a socket that ends the wait when it becomes readable
        :raises FAILURES: if the connection is lost
        """
        ends, is_empty = time.monotonic() + seconds + _CHECK, False
        while not (enough() or is_empty) and time.monotonic() < ends:
            if frames.has_come(self._connection, seconds, waker):
                with self._reading:
                    frames.read_event(self._connection)
            else:
                is_empty = True
            seconds = 0
        # They may be among what is still to be read.
        if is_empty and time.monotonic() >= self._check_at:
            self._check_at = time.monotonic() + _CHECK
            frames.check(self._connection)

    @contextlib.contextmanager
    def writing(self, timeout: float = -1) -> Iterator[None]:
        """Hold the write lock for a block.

        An error in the block ends the connection, unless the broker has closed only a channel.

        :param timeout: seconds to wait for another thread that writes; -1 for no limit
        :raises TimeoutError: if the other thread has not finished by then
        """
        try:
            if not self._lock.acquire(timeout=timeout):
                raise TimeoutError("another thread writes")
        except BaseException:
            # An interrupt can come when the lock is taken and before this code knows it.
            with contextlib.suppress(RuntimeError):
                self._lock.release()
            raise
        try:
            yield
        except CHANNEL_FAILURES:
            # Of an answer of the broker: nothing is half written.
            raise
        except AttributeError as error:
            # The library's error if the thread that reads has just closed the connection.
            self.shut()
            raise amqp.RecoverableConnectionError("the connection is lost") from error
        except BaseException:
            self.shut()
            raise
        finally:
            self._lock.release()

    def heartbeat(self) -> None:
        """Send a heartbeat, from any thread, unless that would block.

        :raises TimeoutError: if another thread writes, which is a sign of life, too, or waits for
            an answer, for ten seconds at most
        :raises FAILURES: if the connection is lost
        """
        with self.writing(timeout=0):
            # What fills the buffer is a sign of life when it gets to the broker.
            if frames.has_room(self._connection):
                frames.beat(self._connection)

    def shut(self) -> None:
        """End the connection from any thread: the thread that reads gets an error."""
        frames.shut(self._connection)

    def close(self) -> None:
        """Close the connection; an error of a connection that is broken is ignored."""
        try:
            with self.writing(timeout=_CHECK):
                self._connection.release()
        except FAILURES:
            frames.drop(self._connection)

    def drop(self, lost: bool = True) -> None:
        """Close the connection without a close handshake, which would block if it is broken.

        :param lost: whether its node may be the reason; if not, the node is used further on
        """
        if lost:
            self._on_loss()
        frames.drop(self._connection)
