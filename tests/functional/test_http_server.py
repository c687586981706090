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

    def refused(self, *parts):
        """Only one answer comes, and nothing after a malformed request is taken for another."""
        answer = self.talk(*parts, b"DELETE /smuggled HTTP/1.1\r\nhost: x\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 400"), (parts, answer))
        self.assertEqual(1, answer.count(b"HTTP/1.1 "), (parts, answer))
        self.assertNotIn("Traceback", self.log.output)

    def test_malformed_request_lines(self):
        for line in (b"GET //[ HTTP/1.1", b"GET http://[ HTTP/1.1", b"GET //[::1 HTTP/1.1",
                     b"GET //[x]y HTTP/1.1", b"OPTIONS //[ HTTP/1.1", b"GET / HTTP/1.x",
                     b"GET /", b"GET", b"\x00\xff HTTP/1.1", b"GET / a HTTP/1.1",
                     b"GET //\xff[ HTTP/1.1", b"GET /%zz[#a HTTP/1.1"):
            self.refused(line + b"\r\nhost: x\r\n\r\n")

    def test_lengths_that_are_none(self):
        for headers in ((b"content-length: -1",), (b"content-length: +5",),
                        (b"content-length: 1_0",), (b"content-length: 0x5",),
                        (b"content-length:",), (b"content-length: 5, 5",),
                        (b"content-length: 5 5",), (b"content-length: \xb2",),
                        (b"content-length: " + b"1" * 5000,),
                        (b"content-length: 2", b"content-length: 2"),
                        (b"content-length: 2", b"Content-Length: 5"),
                        (b"content-length: 2", b"transfer-encoding: chunked"),
                        (b"transfer-encoding: chunked", b"transfer-encoding: chunked"),
                        (b"host: y",)):
            self.refused(b"\r\n".join((
                b"POST / HTTP/1.1", b"host: x", *headers, b"", b"{}")))

    def test_a_length_that_is_one(self):
        answer = self.talk(b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 02\r\n"
                           b"content-type: application/json\r\n\r\n{}"
                           b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        self.assertEqual(2, answer.count(b"HTTP/1.1 200"), answer)

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
