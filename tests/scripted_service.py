# SPDX-License-Identifier: Apache-2.0
"""An HTTP service whose answers a test decides."""

import http.server
import json
import threading
from typing import NamedTuple

import fixtures

VERSIONS = {"versions": [{"id": "v1.0", "max_version": "1.39", "min_version": "1.0",
                          "status": "CURRENT", "links": [{"rel": "self", "href": ""}]}]}


class Received(NamedTuple):
    """A request: its method, its target, and its headers by name in lower case."""

    method: str
    target: str
    headers: dict

    @property
    def microversion(self):
        """The value of its microversion header, without the service's name; None for none"""
        header = self.headers.get("openstack-api-version")
        return header and header.removeprefix("placement ")


class ScriptedService(fixtures.Fixture):
    """A service on a port of its own; ``url`` is its address.

    :ivar received: list of :class:`Received`, all requests so far
    :param answer: callable of a :class:`Received` that returns a status, a JSON value or bytes as
        body, and optionally a dict of headers; it answers all addresses but the root
    """

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.received = []

    def _setUp(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        # A client that does not wait for its answer is part of some tests.
        server.handle_error = lambda *_arguments: None
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"

    def targets(self):
        """Return the targets of the requests for other addresses than the root."""
        return [each.target for each in self.received if each.target != "/"]

    def _handler(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                received = Received(self.command, self.path, {
                    name.lower(): value for name, value in self.headers.items()})
                service.received.append(received)
                status, body, *headers = (200, VERSIONS) if self.path == "/" else (
                    service.answer(received))
                self.send(status, body, *headers)

            def send(self, status, body, headers=None):
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {
                        "Content-Type": "application/json",
                        "OpenStack-API-Version":
                            self.headers.get("OpenStack-API-Version", "placement 1.0"),
                        "Content-Length": str(len(content)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments):
                """Print nothing."""

        return Handler
