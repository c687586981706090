# SPDX-License-Identifier: Apache-2.0
"""The reconnect loop of everything that reads from RabbitMQ."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.amqp.tls import HandshakeFailed

LOG = logging.getLogger(__name__)
# Seconds after which a session counts as one that worked.
_STEADY = 1.0


class Reconnect:
    """Connects, and reconnects whenever the connection is lost::

        for session in Reconnect("Casts", broker, stopped).sessions():
            with session as connection:
                ...

    A connection that worked for a second or more is replaced at once. Pauses come between further
    attempts, so that neither a broker that is away nor a session that fails at its beginning
    makes a busy loop. An outage is logged as one warning, or as one error if TLS failed;
    repetitions are logged for debugging.

    :param name: what log lines begin with
    :param broker: where to connect
    :param stopped: ends the loop, and its pauses, once it is set
    :param survives: errors that end a session and not the loop, in addition to those of the
        connection; each of them is a defect, and logged with its trace
    :param options: arguments of :meth:`placement_rpc.amqp.broker.Broker.connect`
    """

    def __init__(self, name: str, broker: Broker, stopped: threading.Event,
                 survives: tuple[type[Exception], ...] = (), **options: Any) -> None:
        self._name = name
        self._broker = broker
        self._stopped = stopped
        self._survived = (*FAILURES, Unconfirmed, *survives)
        self._options = options
        self._backoff = broker.backoff()
        self._pause = 0.0
        self._logged: type[BaseException] | None = None
        #: The last error of a connection; None before the first.
        self.failure: Exception | None = None

    def sessions(self, until: Callable[[], bool] = lambda: False) -> Iterator[
            contextlib.AbstractContextManager[Connection]]:
        """Yield sessions, until stopped: each is a context manager with an open connection.

        The block of a session ends when it is done, or with an error of the connection, which
        the session handles. Any other error is raised.

        :param until: called before each attempt to connect; the loop ends when it returns true
        """
        while not (self._stopped.is_set() or until()):
            self._pause = 0.0
            try:
                connection = self._broker.connect(**self._options)
            except self._survived as error:
                # Also what the library raises about a handshake that it cannot parse.
                self._failed(error)
            else:
                yield self._session(connection)
            self._stopped.wait(self._pause)

    @contextlib.contextmanager
    def _session(self, connection):
        began = time.monotonic()
        try:
            yield connection
        except self._survived as error:
            connection.drop()
            if time.monotonic() - began < _STEADY:
                self._failed(error)
            else:
                self._backoff.reset()
                self._logged = None
                self._log(error)
        except BaseException:
            # A graceful close would block if it is broken.
            connection.drop(lost=False)
            raise
        else:
            connection.close()

    def _failed(self, error):
        self._pause = self._backoff.next()
        self._log(error)

    def _log(self, error):
        self.failure = error
        if not isinstance(error, (*FAILURES, Unconfirmed)):
            LOG.error("%s: a session failed; reconnecting", self._name, exc_info=error)
            return
        level = logging.ERROR if isinstance(error, HandshakeFailed) else logging.WARNING
        LOG.log(logging.DEBUG if self._logged is type(error) else level,
                "%s: no connection to the broker; reconnecting: %s: %s", self._name,
                type(error).__name__, error)
        self._logged = type(error)
