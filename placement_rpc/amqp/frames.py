# SPDX-License-Identifier: Apache-2.0
"""Access to py-amqp's connections below their public methods.

The public methods of kombu and py-amqp are made for one thread: they reconnect silently when a
connection is lost, read before they write, and wait without limit for the rest of a frame. The
functions here do none of that. All private names of both libraries that the project uses stand in
this module; ``tests/unit/test_library_names.py`` fails when a new version lacks one of them.
"""

import contextlib
import select
import socket
from struct import unpack_from
from typing import Any

import amqp
import kombu
from amqp import exceptions as amqp_exceptions
from amqp import spec, transport
from kombu import exceptions as kombu_exceptions

#: The errors that a connection or a channel can end with. Callers reconnect in any case, so
#: whether the library calls an error recoverable makes no difference.
FAILURES = (amqp_exceptions.AMQPError, kombu_exceptions.KombuError, OSError)
#: The errors that end a channel and leave its connection open.
CHANNEL_FAILURES = (amqp_exceptions.ChannelError,)
_METHOD_FRAME, _HEARTBEAT_FRAME = 1, 8


class Unreadable(amqp_exceptions.RecoverableConnectionError):
    """A message with properties that cannot be decoded.

    The connection cannot be read any further. ``channel`` is the number of the channel and
    ``delivery_tag`` the tag of the message on it; both are None if the frame was no delivery.
    """

    def __init__(self, channel: int | None, delivery_tag: int | None, error: Exception) -> None:
        super().__init__(f"a message cannot be read: {error}")
        self.channel = channel
        self.delivery_tag = delivery_tag


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
    """Limit how long a read or a write of a part of a frame may block.

    The library's own time-outs do not end the wait for the rest of a frame.

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
    transport = opened(connection)._transport
    socket_ = transport.sock
    pending = getattr(socket_, "pending", None)
    if transport._read_buffer or (pending and pending()):
        return True
    sockets = [socket_] if waker is None else [socket_, waker]
    try:
        return _readable(sockets, seconds)
    except ValueError as error:
        raise amqp_exceptions.RecoverableConnectionError("the socket is closed") from error


def _readable(sockets, seconds):
    """Return whether the first socket is readable."""
    if not hasattr(select, "poll"):
        # eventlet removes it.
        return sockets[0] in select.select(sockets, [], [], seconds)[0]
    # Unlike select, it takes file descriptors above 1023.
    poller = select.poll()
    for each in sockets:
        poller.register(each, select.POLLIN)
    wanted = sockets[0].fileno()
    return any(number == wanted for number, _ in poller.poll(1000 * seconds))


def read_event(connection: kombu.Connection) -> None:
    """Read one event, which may have arrived in part only, and run its callbacks.

    A heartbeat is an event too: the library itself would wait for a frame that is not one.

    :raises Unreadable: if a message has properties that cannot be decoded
    :raises FAILURES: if the connection is lost
    """
    found, channel, delivery_tag = opened(connection), None, None
    while True:
        frame = found._transport.read_frame()
        if frame[0] == _METHOD_FRAME and unpack_from(">HH", frame[2]) == spec.Basic.Deliver:
            channel, delivery_tag = frame[1], _delivery_tag(frame[2])
        try:
            done = found.on_inbound_frame(frame)
        except FAILURES:
            raise
        except Exception as error:
            raise Unreadable(channel, delivery_tag, error) from error
        if done or frame[0] == _HEARTBEAT_FRAME:
            return


def _delivery_tag(payload):
    # The method is followed by the consumer's tag, which begins with its length.
    return unpack_from(">Q", payload, 5 + payload[4])[0]


def reject_unreadable(connection: kombu.Connection, error: Unreadable) -> None:
    """Reject a message for good: requeueing would loop for ever.

    :raises FAILURES: if the connection is lost
    """
    opened(connection).channels[error.channel].basic_reject(error.delivery_tag, requeue=False)


def beat(connection: kombu.Connection) -> None:
    """Send a heartbeat.

    :raises FAILURES: if the connection is lost
    """
    opened(connection).send_heartbeat()


def check(connection: kombu.Connection) -> None:
    """Check that the broker sends anything, and send a heartbeat if one is due.

    Only for the thread that reads, after it has read what was there.

    :raises FAILURES: if the broker was silent for too long, or the connection is lost
    """
    opened(connection).heartbeat_tick()


def shut(connection: kombu.Connection) -> None:
    """End a connection from any thread: the thread that reads gets an error.

    For a thread that failed to write and may have left half a frame.
    """
    found = connection._connection
    transport = found and found._transport
    if transport is not None and transport.sock is not None:
        with contextlib.suppress(OSError):
            transport.sock.shutdown(socket.SHUT_RDWR)


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


def publish(channel: amqp.Channel, message: amqp.Message, exchange: str, routing_key: str,
            mandatory: bool = False) -> None:
    """Send a message; the library's ``basic_publish`` would read first.

    :param mandatory: whether the broker returns a message that reaches no queue
    """
    channel.send_method(
        spec.Basic.Publish, "Bssbb", (0, exchange, routing_key, mandatory, False), message)
