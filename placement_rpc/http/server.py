# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of ``placement-rpc standalone``: threads in the same process (cheroot)."""

import logging
import re
import socket
import threading

import cheroot.server
from cheroot import wsgi

from placement_rpc.http import streams

LOG = logging.getLogger(__name__)

_SHUTDOWN_TIMEOUT = 5
_MAX_HEADERS = 256 * 1024
# cheroot's limit, as a multiple of [api] max_body: below it the application refuses a body that is
# too large, with its own error document.
_BODY_LIMIT_FACTOR = 16

_REASON = re.compile(r"\[Errno -?\d+\] ([^)]+)")
_LENGTH = re.compile(rb"[0-9]{1,18}")
# Headers that say where a request ends, or whom it is for: two of them contradict each other.
_SINGLE = frozenset((b"Content-Length", b"Transfer-Encoding", b"Host"))


class _Headers(dict):
    """The headers of a request; some may be given once only."""

    def __setitem__(self, name, value):
        if name in self and name in _SINGLE:
            raise ValueError(f"{name.decode()} is given twice")
        super().__setitem__(name, value)


class _HeaderReader(cheroot.server.HeaderReader):
    """Refuse headers that leave in doubt where the request ends.

    cheroot takes for a length what Python takes for a number, such as ``-1`` or ``1_0``, and would
    parse what follows as the next request.
    """

    def __call__(self, rfile, hdict=None):
        found = super().__call__(rfile, hdict)
        length = found.get(b"Content-Length")
        if length is not None and not _LENGTH.fullmatch(length):
            raise ValueError("Content-Length is not a whole number")
        if length is not None and b"Transfer-Encoding" in found:
            raise ValueError("Content-Length and Transfer-Encoding are both given")
        return found


class _Request(cheroot.server.HTTPRequest):
    """Answer 400 to a request that cannot be parsed; cheroot then closes the connection."""

    header_reader = _HeaderReader()

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.inheaders = _Headers()

    def read_request_line(self):
        try:
            return super().read_request_line()
        except ValueError:
            # An address such as //[ , which the library's parser refuses.
            self.simple_response("400 Bad Request", "Malformed Request-URI")
            return False


class _Connection(cheroot.server.HTTPConnection):
    RequestHandlerClass = _Request


class _Gateway(wsgi.Gateway_10):
    """Hand streams of events over, and close the connection after a chunked request.

    Otherwise cheroot would parse the unread rest of its body as the next request.
    """

    _client = None

    def get_environ(self):
        return {**super().get_environ(), streams.HAND_OVER: self._hand_over}

    def _hand_over(self, client):
        """Take a client's stream out of this thread, after what the application returns."""
        self._client = client
        self.req.close_connection = True

    def respond(self):
        if self.req.chunked_read:
            self.req.close_connection = True
        try:
            super().respond()
            if self._client is not None:
                # Neither the end of the answer nor of the connection is this thread's.
                chunked, self.req.chunked_write = self.req.chunked_write, False
                self.req.conn.linger = True
                self._client.begin(socket.socket(fileno=self.req.conn.socket.detach()), chunked)
        except BaseException:
            if self._client is not None:
                self._client.release()
            raise


class Server:
    """Serve a facade's application from a pool of threads.

    :param facade: :class:`placement_rpc.http.facade.Facade`
    :ivar url: str, its address, set by :meth:`start`
    """

    def __init__(self, facade):
        options = facade.conf.api
        self._facade = facade
        self._host = options.bind_host
        self._server = wsgi.Server(
            (options.bind_host, options.bind_port), facade.application,
            # Additional threads for the requests that wait for events.
            numthreads=options.threads + options.max_waiting, server_name="placement-rpc",
            shutdown_timeout=_SHUTDOWN_TIMEOUT, request_queue_size=128)
        self._server.gateway = _Gateway
        self._server.ConnectionClass = _Connection
        self._server.max_request_header_size = _MAX_HEADERS
        self._server.max_request_body_size = _BODY_LIMIT_FACTOR * options.max_body
        self._server.error_log = _log
        self._listens, self._failure = threading.Event(), None
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    def start(self):
        """Start to listen.

        :raises OSError: if the port cannot be opened
        """
        self._thread.start()
        self._listens.wait()
        port = self._server.bind_addr[1]
        if self._failure is not None:
            # cheroot's text is a list of the errors of all addresses of the host.
            found = _REASON.search(str(self._failure))
            raise OSError(
                f"cannot listen for HTTP on {self._host}, port {port}: "
                f"{found.group(1) if found else self._failure}; choose another one with [api] "
                "bind_port, or with --http-port of 'placement-rpc standalone' (0 is any free one)")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{host}:{port}"

    def _serve(self):
        try:
            # In this daemon thread, so that the pool's threads are daemons too and do not keep
            # the process alive.
            self._server.prepare()
        except OSError as error:
            self._failure = error
            return
        finally:
            self._listens.set()
        try:
            self._server.serve()
        except Exception:
            LOG.exception("The HTTP server failed")

    def stop(self):
        """Finish the accepted requests and close the port."""
        self._facade.close()
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join()


def _log(message="", level=20, traceback=False):
    # %r, since the message may quote what a client sent.
    LOG.log(level, "%r", message, exc_info=traceback)
