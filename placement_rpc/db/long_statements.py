# SPDX-License-Identifier: Apache-2.0
"""Statements that take long on MariaDB or MySQL, and servers that do not answer.

The kernel of a machine whose server is stopped still acknowledges what is sent to it, so only the
time without an answer ends the wait. A server that is at work gives no sign of it either.
:mod:`placement_rpc.db.failover` is the same for PostgreSQL.
"""

from pymysql import connections, cursors, err
from pymysql.constants import CR, ER

# Which server it is: another one, behind the same address, knows nothing of the statement. A node
# of Galera that refuses all else answers this.
_SERVER = "SHOW VARIABLES WHERE variable_name IN ('hostname', 'port')"

# Commits that wait for other nodes, and statements that wait for locks of whole tables or of a
# backup, count as unanswered, since they may wait for a day.
_RUNS = ("SELECT 1 FROM information_schema.processlist WHERE id = %s AND command <> 'Sleep'"
         " AND COALESCE(info, '') <> 'COMMIT'"
         " AND COALESCE(state, '') NOT LIKE 'Waiting for%%lock'")

# Errors of a server that answers, although it has no room for one more connection.
_HAS_NO_ROOM = frozenset((ER.CON_COUNT_ERROR, ER.TOO_MANY_USER_CONNECTIONS,
                          ER.USER_LIMIT_REACHED))
# Each answer on the second connection may take this share of ``read_timeout``, and at least so
# many seconds.
_SHARE, _LEAST = 1 / 3, 2


class Connection(connections.Connection):
    """A connection that ends when its server does not answer.

    After each ``read_timeout`` seconds of a statement without an answer, another connection asks
    the server whether the statement still runs there. A long statement is therefore not
    interrupted; one of a server that is frozen, or that another one has replaced behind the same
    address, is.

    :param parameters: those of PyMySQL
    """

    _server = None

    def __init__(self, **parameters):
        self._parameters = parameters
        super().__init__(**parameters)
        self._server = _rows(self, _SERVER)

    def _read_bytes(self, num_bytes):
        """As that of PyMySQL, but what was read before a time-out is kept."""
        pieces = []
        while num_bytes:
            self._wait()
            # Only what is buffered.
            pieces.append(self._rfile.read1(num_bytes))
            num_bytes -= len(pieces[-1])
        return b"".join(pieces)

    def _wait(self):
        """Wait until something is buffered.

        :raises OperationalError: if the connection is lost, or the server does not answer
        """
        while True:
            try:
                # It reads at most once, and only if nothing is buffered.
                if not self._rfile.peek(1):
                    raise EOFError("closed by the server")
                return
            except TimeoutError as error:
                if not self._runs():
                    self._lose(error)
                # It would refuse to read after a time-out; nothing is buffered.
                self._rfile.close()
                self._rfile = self._sock.makefile("rb")
            except (OSError, EOFError) as error:
                self._lose(error)
            except BaseException:
                # Such as the time-out of a green thread: an answer is still to come.
                self._force_close()
                raise

    def _lose(self, error):
        self._force_close()
        raise err.OperationalError(
            CR.CR_SERVER_LOST, f"Lost connection to MySQL server during query ({error})"
        ) from error

    def _runs(self):
        """Return whether the server says that the statement still runs."""
        if self._server is None:
            return False
        seconds = max(_LEAST, round(self._read_timeout * _SHARE))
        limits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
        try:
            with connections.Connection(**self._parameters | limits) as inquiry:
                return _rows(inquiry, _SERVER) == self._server and bool(
                    _rows(inquiry, _RUNS, self.thread_id()))
        except err.MySQLError as error:
            return bool(error.args) and error.args[0] in _HAS_NO_ROOM


def _rows(connection, statement, *values):
    with cursors.Cursor(connection) as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall()
