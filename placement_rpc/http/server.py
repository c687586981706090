# SPDX-License-Identifier: Apache-2.0
"""The server of ``placement-rpc standalone``: threads of the same process (cheroot)."""

import logging
import threading

from cheroot import wsgi

from placement_rpc import exception

LOG = logging.getLogger(__name__)

_SHUTDOWN_TIMEOUT = 5
_MOST_HEADERS = 256 * 1024
# What is somewhat too large is refused by the application, in its words.
_BODIES = 16


class _Gateway(wsgi.Gateway_10):
    """Ends the connection after a request in chunks.

    What was not read of it would be taken for the next request.
    """

    def respond(self):
        if self.req.chunked_read:
            self.req.close_connection = True
        super().respond()


class Server:
    """Listens, and answers in threads.

    ``url`` is where, once it was started.

    :param facade: :class:`placement_rpc.http.facade.Facade`
    """

    def __init__(self, facade):
        options = facade.conf.api
        self._facade = facade
        self._host = options.bind_host
        self._server = wsgi.Server(
            (options.bind_host, options.bind_port), facade.application,
            # Who waits for events has a thread of his own.
            numthreads=options.threads + options.max_waiting, server_name="placement-rpc",
            shutdown_timeout=_SHUTDOWN_TIMEOUT, request_queue_size=128)
        self._server.gateway = _Gateway
        self._server.max_request_header_size = _MOST_HEADERS
        self._server.max_request_body_size = _BODIES * options.max_body
        self._server.error_log = _log
        self._listens, self._failure = threading.Event(), None
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    def start(self):
        """Begin to listen; :raises ServiceUnavailable: where it can not"""
        self._thread.start()
        self._listens.wait()
        port = self._server.bind_addr[1]
        if self._failure is not None:
            raise exception.ServiceUnavailable(
                reason=f"HTTP on port {port}: {self._failure} ([api] bind_port says which)")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{host}:{port}"

    def _serve(self):
        try:
            # Here, so that its threads end with the process as this one does.
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
        """Finish what was taken in, and close."""
        self._facade.close()
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join()


def _log(message="", level=20, traceback=False):
    # What a client sent may be in it.
    LOG.log(level, "%r", message, exc_info=traceback)
