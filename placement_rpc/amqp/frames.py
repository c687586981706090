# SPDX-License-Identifier: Apache-2.0
"""A connection of py-amqp that one thread reads, and on which many write.

The library's own ways are made for one thread: they connect anew where a connection is lost,
read before they write, and wait without end for the rest of what has begun.
"""

import contextlib
import select
import socket
from struct import unpack_from

from amqp import exceptions as amqp_exceptions
from amqp import spec
from kombu import exceptions as kombu_exceptions

#: What a connection or a channel may end with. Which of these can be recovered from matters to
#: nobody who starts anew.
FAILURES = (amqp_exceptions.AMQPError, kombu_exceptions.KombuError, OSError)
_METHOD_FRAME, _HEARTBEAT_FRAME = 1, 8


def opened(connection):
    """py-amqp's connection below kombu's.

    kombu's own properties connect anew where it is lost: whoever asked would go on with a
    connection on which nobody listens.

    :param connection: :class:`kombu.Connection` that was open
    :raises: one of :data:`FAILURES` when it is lost
    """
    found = connection._connection
    if found is None or found._transport is None or not found._transport.connected or (
            found._transport.sock is None):
        raise amqp_exceptions.RecoverableConnectionError("the connection is lost")
    return found


def has_come(connection, seconds=0, waker=None):
    """Whether there is something to read.

    To ask the library, with a time-out of 0, is to have it spin while half a frame is there.

    :param seconds: float, how long to wait for it
    :param waker: a socket; that there is something to read of it ends the waiting
    :returns: bool
    :raises: one of :data:`FAILURES`
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
    """:returns: bool, whether there is something to read of the first"""
    if not hasattr(select, "poll"):
        # eventlet takes it away.
        return sockets[0] in select.select(sockets, [], [], seconds)[0]
    # Other than select, it takes file descriptors of any number.
    poller = select.poll()
    for each in sockets:
        poller.register(each, select.POLLIN)
    wanted = sockets[0].fileno()
    return any(number == wanted for number, _ in poller.poll(1000 * seconds))


class Unreadable(amqp_exceptions.RecoverableConnectionError):
    """A message whose properties are none; the connection can not be read any further.

    ``delivery_tag`` is the message's; None where it is not known.
    """

    def __init__(self, delivery_tag, error):
        super().__init__(f"a message can not be read: {error}")
        self.delivery_tag = delivery_tag


def read_event(connection):
    """Read what has come, of which perhaps a part is still on its way.

    A heartbeat is an event, too: the library goes on to wait for the next one that is none.

    :raises Unreadable: and others of :data:`FAILURES`
    """
    found, delivery_tag = opened(connection), None
    while True:
        frame = found._transport.read_frame()
        if frame[0] == _METHOD_FRAME and unpack_from(">HH", frame[2]) == spec.Basic.Deliver:
            delivery_tag = _delivery_tag(frame[2])
        try:
            done = found.on_inbound_frame(frame)
        except FAILURES:
            raise
        except Exception as error:
            raise Unreadable(delivery_tag, error) from error
        if done or frame[0] == _HEARTBEAT_FRAME:
            return


def _delivery_tag(payload):
    # After the method: the consumer's tag, which begins with its length.
    return unpack_from(">Q", payload, 5 + payload[4])[0]


def beat(connection):
    """Send a heartbeat; :raises: one of :data:`FAILURES`"""
    opened(connection).send_heartbeat()


def check(connection):
    """Look whether the broker sends anything, and send a heartbeat where it is time to.

    For who reads: it has to have read what was there.

    :raises: one of :data:`FAILURES`
    """
    opened(connection).heartbeat_tick()


def shut(connection):
    """Make whoever reads find that it is over; for whoever wrote half a frame.

    :param connection: kombu's, or py-amqp's
    """
    found = getattr(connection, "_connection", connection)
    transport = found and found._transport
    if transport is not None and transport.sock is not None:
        with contextlib.suppress(OSError):
            transport.sock.shutdown(socket.SHUT_RDWR)


def publish(channel, message, exchange, routing_key, mandatory=False):
    """Send a message; the library's ``basic_publish`` looks each time whether something came.

    :param message: :class:`amqp.Message`
    :param mandatory: bool, whether it comes back when there is no queue for it
    """
    channel.send_method(
        spec.Basic.Publish, "Bssbb", (0, exchange, routing_key, mandatory, False), message)
