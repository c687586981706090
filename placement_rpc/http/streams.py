# SPDX-License-Identifier: Apache-2.0
"""Server-sent events for many clients: two threads serve all of them.

A WSGI server needs a thread for as long as it sends an answer. The embedded server hands the
socket of a stream over to :class:`EventStreams` instead, after it has sent the headers. One thread
reads events, once for all clients that are at the same position; the other sends.
"""

import collections
import contextlib
import json
import logging
import selectors
import socket
import threading
import time

from placement_rpc import exception

LOG = logging.getLogger(__name__)

#: Key of the WSGI environment: a callable of a :class:`Client`, with which the server takes the
#: stream of an answer out of its thread. Only the embedded server sets it.
HAND_OVER = "placement_rpc.hand_over"
#: Events that are read at a time.
PAGE = 500
#: Seconds between keep-alive comments: proxies close connections that stay silent.
KEEP_ALIVE = 15
# Seconds in which a client has to take a part of what waits for it.
_PATIENCE = 15
# Seconds after which the threads look for slow clients, and for clients that caught up.
_LOOK = 0.5
# Seconds to wait for clients to take what they have.
_PAUSE = 0.05


def opening(page):
    """Return the beginning of a stream: the position before its first event.

    It is sent first, so that the client can continue if the connection breaks before any event.
    """
    begin = page.events[0]["position"] - 1 if page.events else page.position
    return f": events follow\nid: {begin}\n\n".encode()


def encoded(events):
    """Return events as they are sent."""
    return "".join(
        f"id: {event['position']}\nevent: {event['event_type']}\ndata: {json.dumps(event)}\n\n"
        for event in events).encode()


def failure(error):
    """Return the last event of a stream that an error ends."""
    data = json.dumps({"code": error.code, "detail": error.text})
    return f"event: error\ndata: {data}\n\n".encode()


def chunk(data, chunked):
    """Return data as a chunk of HTTP/1.1, or as it is; nothing is the last chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data) if chunked else data


class Client:
    """The client of one stream.

    :param streams: :class:`EventStreams`
    :param place: context manager, the place that it holds
    :param page: :class:`placement_rpc.objects.event_page.EventPage`, the first to send
    """

    def __init__(self, streams, place, page):
        self._streams = streams
        self._place = place
        self._first = encoded(page.events)
        self.position = page.position
        self.socket = None
        self.chunked = self.ending = False
        # Whether it has not taken all that it is to get so far.
        self.busy = bool(self._first)
        # Parts of what is not sent yet, shared by all clients that it goes to.
        self.pending = collections.deque()
        self.moved = time.monotonic()

    def begin(self, socket_, chunked):
        """Send from now on.

        :param socket_: :class:`socket.socket`, which belongs to the client from now on
        :param chunked: bool, whether the answer is sent in chunks
        """
        self.socket, self.chunked = socket_, chunked
        # It is not quiet yet: the thread that sends may not know it before it looks.
        self.moved = time.monotonic()
        socket_.setblocking(False)
        self._streams.add(self, self._first)

    def release(self):
        """Close the socket, and give the place back."""
        if self.socket is not None:
            self.socket.close()
        self._place.close()


class EventStreams:
    """Sends events to the clients of all streams of a process.

    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param follower: :class:`placement_rpc.http.follower.Follower`, which waits for new events
    :param places: :class:`placement_rpc.http.follower.Places`
    :param patience: seconds in which a client has to take a part of what waits for it
    """

    def __init__(self, api, follower, places, patience=_PATIENCE):
        self._patience = patience
        self._api = api
        self._follower = follower
        self._places = places
        self._changed = threading.Condition()
        self._clients = set()
        # Parts for the thread that sends: pairs of a client and data, None for a new client.
        self._orders = collections.deque()
        self._selector = self._waker = self._woken = None
        # The functions whose threads are to be started.
        self._unstarted = [self._read, self._send]
        self._closed = False

    @property
    def clients(self):
        """int, how many clients follow"""
        return len(self._clients)

    def client(self, user, page):
        """Return the client of a new stream, which holds a place.

        :param user: str, the user whose request it is
        :param page: the first events
        :raises TooManyWaiting: if all places, or those of the user, are taken
        """
        place = contextlib.ExitStack()
        place.enter_context(self._places.place(user))
        return Client(self, place, page)

    def add(self, client, data):
        """Send data to a client, and the events after it; from any thread."""
        with self._changed:
            if self._closed:
                _end(client)
                client.release()
                return
            self._start()
            self._clients.add(client)
            self._changed.notify_all()
        self._order(client, None)
        if data:
            self._order(client, data)

    def close(self):
        """End all streams."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._wake()

    def _start(self):
        if self._selector is None:
            self._waker, self._woken = socket.socketpair()
            self._waker.setblocking(False)
            self._woken.setblocking(False)
            self._selector = selectors.DefaultSelector()
            self._selector.register(self._woken, selectors.EVENT_READ)
        while self._unstarted:
            threading.Thread(
                target=self._unstarted[-1], name="event streams", daemon=True).start()
            # Removed once it runs, so that a start that fails is repeated for the next client.
            self._unstarted.pop()

    def _order(self, client, data):
        self._orders.append((client, data))
        self._wake()

    def _wake(self):
        if self._waker is not None:
            # A full buffer wakes the thread, too.
            with contextlib.suppress(OSError):
                self._waker.send(b"x")

    # -- the thread that reads events -----------------------------------------------------

    def _read(self):
        while (groups := self._waiting()) is not None:
            # A client that has not read the last events gets no more, and delays no other client.
            if groups and not self._follower.wait(min(groups), _LOOK):
                continue
            if not [each for each in groups.items() if self._extend(*each)]:
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, _PAUSE)

    def _waiting(self):
        """Return the clients that took everything, by position; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._clients or self._closed)
            if self._closed:
                return None
            groups = collections.defaultdict(list)
            for client in self._clients:
                if not client.busy:
                    groups[client.position].append(client)
            return groups

    def _extend(self, position, clients):
        """Give clients the events after a position; return whether there are any."""
        try:
            page = self._api.list_events(None, position, PAGE)
            data = encoded(page.events)
        except Exception as error:
            # The thread goes on for the other clients, and for those that come.
            if not isinstance(error, exception.PlacementException):
                LOG.exception("Events cannot be read")
                error = exception.ServiceUnavailable(reason="the events cannot be read")
            LOG.warning("Ending %d streams of events: %s", len(clients), error)
            for client in clients:
                client.busy = client.ending = True
                self._order(client, failure(error))
            return True
        for client in clients:
            client.position = page.position
            if data:
                client.busy = True
                self._order(client, data)
        return page.position > position

    # -- the thread that sends ------------------------------------------------------------

    def _send(self):
        looked = time.monotonic()
        while not self._closed:
            for key, ready in self._selector.select(_LOOK):
                if key.data is not None:
                    self._serve(key.data, ready)
            self._drain()
            if time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                self._look()
        for client in list(self._clients):
            _end(client)
            self._drop(client)
        self._selector.close()

    def _drain(self):
        with contextlib.suppress(BlockingIOError):
            while self._woken.recv(4096):
                pass
        while self._orders:
            client, data = self._orders.popleft()
            if client not in self._clients:
                continue
            if data is None:
                self._selector.register(client.socket, selectors.EVENT_READ, client)
            else:
                self._append(client, data)

    def _append(self, client, data):
        if not client.pending:
            client.moved = time.monotonic()
        client.pending.append(memoryview(chunk(data, client.chunked)))
        if client.ending:
            client.pending.append(memoryview(chunk(b"", client.chunked)))
        self._write(client)

    def _serve(self, client, ready):
        if ready & selectors.EVENT_READ:
            try:
                # A client sends nothing after its request.
                gone = not client.socket.recv(4096)
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                self._drop(client)
                return
        if ready & selectors.EVENT_WRITE:
            self._write(client)

    def _write(self, client):
        try:
            while client.pending:
                part = client.pending[0]
                sent = client.socket.send(part)
                client.moved = time.monotonic()
                if sent == len(part):
                    client.pending.popleft()
                else:
                    client.pending[0] = part[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        if client.ending and not client.pending:
            self._drop(client)
            return
        client.busy = bool(client.pending)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.pending else 0)
        self._selector.modify(client.socket, events, client)

    def _look(self):
        """Drop slow clients, and keep the connections of quiet ones."""
        now = time.monotonic()
        for client in list(self._clients):
            if client.pending and now - client.moved > self._patience:
                LOG.info("A stream of events is ended: its client took nothing for %d s",
                         self._patience)
                self._drop(client)
            elif not client.pending and now - client.moved > KEEP_ALIVE:
                self._append(client, b": nothing new\n\n")

    def _drop(self, client):
        with self._changed:
            self._clients.discard(client)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.socket)
        client.release()


def _end(client):
    """Tell a client that its stream is complete."""
    with contextlib.suppress(OSError):
        client.socket.send(chunk(b"", client.chunked))
