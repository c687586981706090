# SPDX-License-Identifier: Apache-2.0
"""Access to py-amqp's connections below their public methods.

The public methods of kombu and py-amqp are made for one thread: they reconnect silently when a
connection is lost, read before they write, and wait without limit for the rest of a frame. The
functions here do none of that. All private names of both libraries that the project uses stand in
this module; ``tests/unit/test_library_names.py`` fails when a new version lacks one of them.
"""

import contextlib
import functools
import logging
import select
import socket
import time
from collections.abc import Iterable
from typing import Any

import amqp
import kombu
from amqp import exceptions as amqp_exceptions
from amqp import transport
from kombu import exceptions as kombu_exceptions
from kombu.transport import pyamqp

from placement_rpc.amqp import contents
from placement_rpc.amqp.outgoing import FRAME_HEADER, Outgoing

LOG = logging.getLogger(__name__)

#: The errors that a connection or a channel can end with. Callers reconnect in any case, so
#: whether the library calls an error recoverable makes no difference.
FAILURES = (amqp_exceptions.AMQPError, kombu_exceptions.KombuError, OSError)
#: The errors that end a channel and leave its connection open.
CHANNEL_FAILURES = (amqp_exceptions.ChannelError,)


def is_loss(error: BaseException) -> bool:
    """Return whether an error ends the connection that it comes from."""
    return isinstance(error, FAILURES) and not isinstance(error, CHANNEL_FAILURES)


_HEARTBEAT_FRAME, _FRAME_END = 8, 0xce
# Bytes to take from the system at a time.
_CHUNK = 2 ** 16
# The most bytes in a frame; the broker may offer more.
_LARGEST_FRAME = 2 ** 20
# Bytes that are handed to the system at a time.
_LARGEST_WRITE = 2 ** 17
# Seconds within which the broker answers a method. A node that waits for another one, which hangs,
# keeps sending heartbeats and does not answer.
_ANSWER_TIMEOUT = 10.0
#: How many heartbeats the broker may leave out. It sends two in the time that was negotiated.
MISSED_HEARTBEATS = 3


class Malformed(amqp_exceptions.RecoverableConnectionError):
    """The broker sent a frame that cannot be parsed, and the connection cannot be read further."""


class _Received:
    """What has come on a connection and was not read yet.

    The library asks the system for each part of each frame: nine times for a message.
    """

    __slots__ = ("_data", "_start")

    def __init__(self):
        self._data, self._start = b"", 0

    def __bool__(self):
        return self._start < len(self._data)

    def frame(self, transport, largest):
        """Return the next frame; wait for what has not come of it.

        :param largest: the most bytes in its payload
        :returns: tuple of the kind, the channel and the payload
        :raises UnexpectedFrame: if it is larger, or does not end as a frame
        :raises OSError: if the connection is lost
        :raises ValueError: if another thread has shut the TLS socket
        """
        self._await(transport, FRAME_HEADER.size)
        kind, channel, size = FRAME_HEADER.unpack_from(self._data, self._start)
        if size > largest:
            raise amqp_exceptions.UnexpectedFrame(
                f"a frame of {size} bytes, while at most {largest} are allowed")
        self._await(transport, FRAME_HEADER.size + size + 1)
        data, start = self._data, self._start + FRAME_HEADER.size
        end = start + size
        if data[end] != _FRAME_END:
            raise amqp_exceptions.UnexpectedFrame(f"a frame ends with {data[end:end + 1]!r}")
        self._start = end + 1
        return kind, channel, data[start:end]

    def _await(self, transport, size):
        """Wait until there are at least so many unread bytes."""
        if self._start + size > len(self._data):
            self._data = self._with_more(transport, self._data[self._start:], size)
            self._start = 0

    @staticmethod
    def _with_more(transport, data, size):
        pieces, missing = [data], size - len(data)
        while missing > 0:
            piece = transport._quick_recv(max(missing, _CHUNK))
            if not piece:
                raise OSError("the broker closed the connection")
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)


class _Connection(pyamqp.Connection):
    """py-amqp's connection, which reads no frame that is larger than agreed upon.

    The same errors come from the handshake, from waiting for an answer, and from
    :func:`read_event`.
    """

    # Bytes that had come at the last check, and since when there are no more.
    _received: int | None = None
    _received_at = 0.0

    def connect(self, callback=None):
        self.received = _Received()
        try:
            return super().connect(callback)
        except BaseException:
            # The library leaves the socket open after some errors.
            self.collect()
            raise

    def drain_events(self, timeout=None):
        ends = time.monotonic() + _ANSWER_TIMEOUT
        while not self.blocking_read(timeout):
            if time.monotonic() > ends:
                raise TimeoutError(f"the broker did not answer within {_ANSWER_TIMEOUT:.0f} s")

    def check_silence(self):
        """Check that the broker sends anything; the library's check sends heartbeats, too.

        :raises ConnectionForced: if nothing came for so many heartbeats
        """
        now = time.monotonic()
        if self._received != self.bytes_recv:
            self._received, self._received_at = self.bytes_recv, now
        # The library waits for four heartbeats, and so does the broker.
        elif self.heartbeat and now > self._received_at + self.heartbeat / 2 * MISSED_HEARTBEATS:
            raise amqp_exceptions.ConnectionForced(
                f"nothing came from the broker for {MISSED_HEARTBEATS} heartbeats")

    def blocking_read(self, timeout=None):
        with self.transport.having_timeout(timeout):
            frame = _frame(self)
        return _taken(self, frame)

    def _on_tune(self, channel_max, frame_max, server_heartbeat, argsig="BlB"):
        # A client may ask for less than the broker offers.
        super()._on_tune(channel_max, min(frame_max or self.frame_max, _LARGEST_FRAME),
                         server_heartbeat, argsig)


class _Transport(pyamqp.Transport):
    Connection = _Connection


class KombuConnection(kombu.Connection):
    """kombu's connection, to be opened with the arguments that it has there.

    :param largest_body: the most bytes in the body of a message; a message with a longer one is
        marked as unreadable
    """

    def __init__(self, *arguments: Any, largest_body: int = contents.LARGEST_BODY,
                 **options: Any) -> None:
        options["transport_options"] = {
            "frame_handler": functools.partial(contents.Assembler, largest=largest_body),
            **options.get("transport_options", {})}
        super().__init__(*arguments, **options)

    def get_transport_cls(self) -> type[pyamqp.Transport]:
        """Return the transport; the scheme of the URL has no effect."""
        return _Transport


def _frame(connection):
    """Read one frame: what fails here is the socket, or a peer that does not speak AMQP.

    :returns: tuple of the kind, the channel and the payload
    :raises FAILURES: if the connection is lost, or this is no frame
    """
    transport = connection._transport
    try:
        return connection.received.frame(transport, connection.frame_max)
    except ValueError as error:
        # Of a TLS socket that another thread has shut.
        transport.connected = False
        raise amqp_exceptions.RecoverableConnectionError("the socket is closed") from error
    except BaseException:
        # Where the next frame begins is not known any more.
        transport.connected = False
        raise


def _taken(connection, frame):
    """Have a frame parsed and its callbacks called.

    :returns: whether it completed a method or a message
    :raises Malformed: if it cannot be parsed
    :raises FAILURES: if the frame does not belong here, or a channel or the connection ends
    """
    try:
        return connection.on_inbound_frame(frame)
    except FAILURES:
        raise
    except Exception as error:
        LOG.error("A frame cannot be parsed", exc_info=True)
        raise Malformed(f"a frame cannot be parsed: {type(error).__name__}: {error}") from error


def opened(connection: kombu.Connection) -> amqp.Connection:
    """Return py-amqp's connection below kombu's.

    kombu's own properties reconnect silently when it is lost, and the caller would continue on a
    connection that has no consumers.

    :raises FAILURES: if the connection is lost
    """
    found = connection._connection
    if found is None or found._transport is None or not found._transport.connected or (
            found._transport.sock is None):
        raise amqp_exceptions.RecoverableConnectionError("the connection is lost")
    return found


def handshake(address: str, parameters: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Make a TLS handshake as a connection does, without logging in.

    It ends with the broker's first frame: a broker that uses TLS 1.3 refuses the certificate of a
    client after the client's part of the handshake.

    :param address: ``HOST:PORT``
    :param parameters: what py-amqp takes as ``ssl``
    :param timeout: seconds
    :returns: the broker's certificate, as :meth:`ssl.SSLSocket.getpeercert` returns it
    :raises OSError: if the broker cannot be reached, or the handshake fails
    """
    made = transport.Transport(address, connect_timeout=timeout, ssl=parameters)
    made.connect()
    try:
        made.read_frame()
        return made.sock.getpeercert()
    finally:
        made.close()


def set_patience(connection: kombu.Connection, seconds: float) -> None:
    """Limit how long a read of a part of a frame, or one write, may block.

    The library's own time-outs do not end the wait for the rest of a frame. What is published is
    written in parts of at most 128 KiB.

    :raises FAILURES: if the connection is lost
    """
    opened(connection)._transport.sock.settimeout(seconds)


def has_come(connection: kombu.Connection, seconds: float = 0,
             waker: socket.socket | None = None) -> bool:
    """Return whether there is something to read.

    Asking the library instead, with a time-out of 0, spins while half a frame is there.

    :param seconds: how long to wait for it
    :param waker: a socket that ends the wait when it becomes readable
    :raises FAILURES: if the connection is lost
    """
    found = opened(connection)
    socket_ = found._transport.sock
    pending = getattr(socket_, "pending", None)
    if found.received or (pending and pending()):
        return True
    sockets = [socket_] if waker is None else [socket_, waker]
    try:
        return _readable(sockets, seconds)
    except ValueError as error:
        raise amqp_exceptions.RecoverableConnectionError("the socket is closed") from error


def has_room(connection: kombu.Connection) -> bool:
    """Return whether a write of a few bytes would not block.

    :raises FAILURES: if the connection is lost
    """
    socket_ = opened(connection)._transport.sock
    if socket_ is None:
        # Another thread closed it just now.
        raise amqp_exceptions.RecoverableConnectionError("the socket is closed")
    try:
        return _writable(socket_)
    except ValueError as error:
        raise amqp_exceptions.RecoverableConnectionError("the socket is closed") from error


def _writable(socket_):
    if not hasattr(select, "poll"):
        # eventlet removes it.
        return bool(select.select([], [socket_], [], 0)[1])
    poller = select.poll()
    poller.register(socket_, select.POLLOUT)
    return bool(poller.poll(0))


def _readable(sockets, seconds):
    """Return whether the first socket is readable."""
    if not hasattr(select, "poll"):
        return sockets[0] in select.select(sockets, [], [], seconds)[0]
    # Unlike select, it takes file descriptors above 1023.
    poller = select.poll()
    for each in sockets:
        poller.register(each, select.POLLIN)
    wanted = sockets[0].fileno()
    return any(number == wanted for number, _ in poller.poll(1000 * seconds))


def read_event(connection: kombu.Connection) -> None:
    """Read one event, which may have arrived in part only, and run its callbacks.

    A heartbeat is an event too: the library itself would wait for a frame that is not one. A
    message that cannot be read is delivered as any other, see
    :class:`placement_rpc.amqp.contents.IncomingMessage`.

    :raises FAILURES: if the connection is lost
    """
    found = opened(connection)
    while True:
        frame = _frame(found)
        if _taken(found, frame) or frame[0] == _HEARTBEAT_FRAME:
            return


def beat(connection: kombu.Connection) -> None:
    """Send a heartbeat.

    :raises FAILURES: if the connection is lost
    """
    opened(connection).send_heartbeat()


def check(connection: kombu.Connection) -> None:
    """Check that the broker sends anything.

    Only for the thread that reads, after it has read what was there.

    :raises FAILURES: if the broker was silent for too long, or the connection is lost
    """
    # A process that was suspended meanwhile has not read what came.
    if not has_come(connection):
        opened(connection).check_silence()


def shut(connection: kombu.Connection) -> None:
    """End a connection from any thread: the thread that reads gets an error.

    For a thread that failed to write and may have left half a frame.
    """
    found = connection._connection
    transport = found and found._transport
    # Read once: the thread that reads may close it at any moment.
    socket_ = transport and transport.sock
    if socket_ is not None:
        with contextlib.suppress(OSError):
            socket_.shutdown(socket.SHUT_RDWR)


def drop(connection: kombu.Connection) -> None:
    """Close a connection without a close handshake, which would block if it is broken."""
    found = connection._connection
    if found is None:
        return
    socket_ = found._transport and found._transport.sock
    # Closing a TLS socket writes, and may fail.
    with contextlib.suppress(OSError, ValueError):
        found.collect()
    if socket_ is not None:
        socket_.close()


def encoded(channel: amqp.Channel, messages: Iterable[Outgoing], mandatory: bool = False) -> bytes:
    """Return the frames that publish messages.

    :param mandatory: whether the broker returns a message that reaches no queue
    :raises ValueError: if a message cannot be sent as it is
    :raises FAILURES: if the connection is lost
    """
    connection = channel.connection
    if connection is None:
        raise amqp_exceptions.RecoverableConnectionError("the connection is lost")
    return b"".join([message.encoded(channel.channel_id, connection.frame_max, mandatory)
                     for message in messages])


def write(channel: amqp.Channel, data: bytes) -> None:
    """Send the frames of messages; the library's ``basic_publish`` would read before each message.

    :raises FAILURES: if the connection is lost
    """
    connection = channel.connection
    # Its property "transport" would reconnect silently.
    transport = connection and connection._transport
    if transport is None:
        raise amqp_exceptions.RecoverableConnectionError("the connection is lost")
    # The socket's time-out is that of each write.
    for start in range(0, len(data), _LARGEST_WRITE):
        transport.write(memoryview(data)[start:start + _LARGEST_WRITE])


def publish(channel: amqp.Channel, messages: Iterable[Outgoing], mandatory: bool = False) -> None:
    """Send messages; arguments and errors are those of :func:`encoded` and :func:`write`."""
    write(channel, encoded(channel, messages, mandatory))
