# SPDX-License-Identifier: Apache-2.0
"""The server of ``standalone`` on a socket, with requests of misbehaving clients."""

import contextlib
import json
import socket

from placement_rpc.conf import service as configuration
from placement_rpc.service.http import Application
from placement_rpc.testing.facade import Facade
from tests import base, http


class SocketTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.facade = self.useFixture(Facade(api__max_body=4096))
        self.port = int(self.facade.url.rpartition(":")[2])

    def talk(self, *parts):
        """Send bytes, and return everything received until the server ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            # The server may have closed the connection before it read everything.
            with contextlib.suppress(OSError):
                for part in parts:
                    connection.sendall(part)
                connection.shutdown(socket.SHUT_WR)
            found = b""
            try:
                while part := connection.recv(65536):
                    found += part
            except ConnectionResetError:
                return found
        return found

    def post(self, *headers, body=b"", token=b"x-auth-token: admin"):
        return self.talk(b"\r\n".join([
            b"POST /resource_providers HTTP/1.1", b"host: x", token,
            b"content-type: application/json", *headers, b"", b""]) + body)

    def test_chunks(self):
        chunk = json.dumps({"name": "a"}).encode()
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(chunk), chunk)
        answer = self.post(b"transfer-encoding: chunked", body=body)
        self.assertTrue(answer.startswith(b"HTTP/1.1 201"), answer)

    def test_broken_chunks_are_a_bad_request(self):
        for body in (b"zz\r\n{}\r\n", b"5\r\n{}", b"2\r\n{}XX0\r\n\r\n"):
            answer = self.post(b"transfer-encoding: chunked", body=body)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400"), answer)
        self.assertNotIn("Incident", self.log.output)

    def test_what_was_not_read_is_no_request(self):
        answer = self.talk(
            b"GET / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
            b"DELETE /smuggled HTTP/1.1\r\nhost: x\r\n\r\n")
        self.assertEqual(1, answer.count(b"HTTP/1.1 "), answer)

    def test_a_body_that_stops(self):
        answer = self.post(b"content-length: 400", body=b"{")
        self.assertFalse(answer.startswith(b"HTTP/1.1 2"), answer)
        self.assertNotIn("Incident", self.log.output)

    def test_limits_hold_without_a_token(self):
        answer = self.post(b"content-length: 100000000", body=b"x" * 100_000, token=b"a: b")
        self.assertIn(answer[:12], (b"HTTP/1.1 413", b""))
        answer = self.talk(b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"x" * 1_000_000 + b"\r\n\r\n")
        self.assertIn(answer[:12], (b"HTTP/1.1 413", b""))


class UnopenedTest(base.TestCase):

    def test_a_store_that_is_not_there_yet(self):
        application = Application(configuration.new_config(
            config_files=[], database__connection="sqlite:////nowhere/at/all"))
        for _ in range(2):
            answer = http.request(application, "GET", "/resource_providers")
            self.assertEqual(503, answer.status_code)
            error, = answer.json["errors"]
            self.assertEqual("placement.store.unavailable", error["code"])
            self.assertNotIn("nowhere", answer.text)
