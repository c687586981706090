# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL after a failover: connections to a server that is frozen or no longer the primary.

The kernel of a machine whose server is stopped still acknowledges what is sent to it, so no limit
of TCP ends the wait for an answer.
"""

import time

import psycopg
import sqlalchemy as sa

from placement_rpc.db import errors

# SQLSTATEs of a server that is a standby now, or is stopping or starting: its other connections
# are of no use either.
_OF_SERVER = frozenset(("25006", "57P01", "57P02", "57P03"))

# A commit that waits for standbys which are away counts as unanswered, since it may wait for ever.
_RUNS = ("SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
         " AND wait_event IS DISTINCT FROM 'SyncRep'")

# Of a connection that a server refuses, libpq has no SQLSTATE, only the server's message with this
# severity. In the languages that translate it a server without room counts as unanswering.
_REFUSAL = "FATAL"


def prepare(engine):
    """Drop all pooled connections of an engine when one shows that its server cannot be used.

    :param engine: :class:`sqlalchemy.Engine`
    """
    sa.event.listen(engine, "handle_error", _drop_all, insert=True)


def _drop_all(context):
    if errors.sqlstate(context.original_exception) in _OF_SERVER:
        context.is_disconnect = True


class Connection(psycopg.Connection):
    """A connection that ends when its server does not answer.

    After each ``answer_timeout`` seconds of a statement without an answer, another connection
    asks the server whether the statement still runs there. A long statement is therefore not
    interrupted; one of a server that is frozen, or that another one has replaced behind the same
    address, is.
    """

    #: Seconds; None for no limit.
    answer_timeout: float | None = None

    def wait(self, gen, *arguments, **options):
        """As :meth:`psycopg.Connection.wait`.

        :raises psycopg.OperationalError: if the server does not answer
        """
        return super().wait(self._limited(gen) if self.answer_timeout else gen,
                            *arguments, **options)

    def _limited(self, gen):
        """Pass on what a generator waits for; psycopg sends it a false value from time to time."""
        heard_at = time.monotonic()
        try:
            waits_for = next(gen)
            while True:
                ready = yield waits_for
                now = time.monotonic()
                if ready:
                    heard_at = now
                elif now - heard_at > self.answer_timeout:
                    self._check_server()
                    heard_at = time.monotonic()
                waits_for = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _check_server(self):
        """Check that the statement still runs.

        :raises psycopg.OperationalError: if not; the connection is closed
        """
        parameters = self.info.get_parameters() | {
            "password": self.info.password or None, "host": self.info.host,
            "port": self.info.port, "hostaddr": self.info.hostaddr or None,
            "connect_timeout": max(2, round(self.answer_timeout / 3))}
        parameters.pop("target_session_attrs", None)
        try:
            with _Inquiry.connect(**parameters, autocommit=True) as inquiry:
                inquiry.answer_timeout = self.answer_timeout / 3
                if inquiry.execute(_RUNS, (self.info.backend_pid,)).fetchone():
                    return
        except psycopg.OperationalError as error:
            if error.sqlstate is not None or _REFUSAL in str(error):
                # It answers, although it has no room for one more connection.
                return
        self.pgconn.finish()
        raise psycopg.OperationalError(
            f"the server has not answered for {self.answer_timeout:g} seconds")


class _Inquiry(Connection):
    """The connection that asks; it is given up without asking again."""

    def _check_server(self):
        self.pgconn.finish()
        raise psycopg.OperationalError("the server does not answer")
