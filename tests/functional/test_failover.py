# SPDX-License-Identifier: Apache-2.0
"""When a connection to PostgreSQL is given up, by a server that says what the test wants."""

import socket
import struct
import threading

import psycopg

from placement_rpc.db import failover
from tests import base


def message(kind, body):
    return kind + struct.pack("!I", 4 + len(body)) + body


_ACCEPTED = (message(b"R", struct.pack("!I", 0)) + message(b"K", struct.pack("!II", 7, 7))
             + message(b"Z", b"I"))
_REFUSED = message(b"E", b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0")
_DONE = message(b"C", b"SET\0") + message(b"Z", b"I")


class Server:
    """Accepts one connection, whose statements it answers when told so.

    :ivar refused: threading.Semaphore, released by each further connection
    """

    def __init__(self, more):
        self._more = more
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._connections = []
        self.refused = threading.Semaphore(0)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            connection.recv(1000)
            if self._connections:
                connection.sendall(self._more)
                connection.close()
                self.refused.release()
            else:
                connection.sendall(_ACCEPTED)
                self._connections.append(connection)

    def answer(self):
        self._connections[0].sendall(_DONE)

    def close(self):
        for each in (self._listening, *self._connections):
            each.close()


class ConnectionTest(base.TestCase):

    def connect(self, more):
        server = Server(more)
        self.addCleanup(server.close)
        connection = failover.Connection.connect(
            host="127.0.0.1", port=server.port, user="u", dbname="d", sslmode="disable",
            gssencmode="disable", autocommit=True)
        self.addCleanup(connection.close)
        connection.answer_timeout = 0.2
        return server, connection

    def test_a_server_that_refuses_another_connection_answers(self):
        server, connection = self.connect(_REFUSED)

        def answer_late():
            for _ in range(2):
                server.refused.acquire()
            server.answer()

        thread = threading.Thread(target=answer_late, daemon=True)
        thread.start()
        connection.execute("SET x = 1")
        thread.join()
        self.assertFalse(connection.closed)

    def test_a_proxy_without_a_server_does_not_answer(self):
        _, connection = self.connect(b"")
        self.assertRaises(psycopg.OperationalError, connection.execute, "SET x = 1")
        self.assertTrue(connection.closed)
