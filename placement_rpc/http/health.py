# SPDX-License-Identifier: Apache-2.0
"""``/healthcheck``: what an operator configured, and what the process lacks to answer requests.

oslo.middleware's healthcheck answers by files that an operator creates, and only for the addresses
that may ask. What it calls healthy is then checked: whether the process reaches its database, or,
with the transport ``rpc``, a service. A load balancer sends requests to other processes meanwhile.

What no other process can do better is no matter here, such as events that are not published since
the store has lost some: a metric of the conductor reports it.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg
from oslo_middleware import healthcheck

from placement_rpc import exception

LOG = logging.getLogger(__name__)
PATH = "/healthcheck"
# Seconds for which a result is used again.
_LIFETIME = 1.0
#: Seconds after which a check that has not ended counts as failed: a balancer that asks every two
#: seconds waits for as long.
PATIENCE = 1.5


class Probe:
    """Checks whether the process has what it needs, at most once a second and once at a time.

    A check may take as long as a database that hangs, so it runs in a thread of its own, and
    requests wait for it no longer than :data:`PATIENCE`.

    :param check: raises a PlacementException if something is missing
    """

    def __init__(self, check: Callable[[], Any]):
        self._check = check
        self._changed = threading.Condition()
        self._is_running = False
        self._begun_at = self._ended_at = -_LIFETIME
        self._reasons: list[str] = []

    def reasons(self) -> list[str]:
        """Return what is missing; an empty list if nothing is."""
        with self._changed:
            now = time.monotonic()
            if not self._is_running and now - self._ended_at >= _LIFETIME:
                threading.Thread(target=self._run, name="health", daemon=True).start()
                # After it, since a thread that cannot be started never ends.
                self._is_running, self._begun_at = True, now
            left = self._begun_at + PATIENCE - now
            if self._changed.wait_for(lambda: not self._is_running, max(0.0, left)):
                return self._reasons
            return [f"A check has not ended for {time.monotonic() - self._begun_at:.0f} s"]

    def _run(self):
        try:
            self._check()
            found = []
        except exception.PlacementException as error:
            found = [error.text]
        except Exception:
            LOG.exception("A check of the process failed")
            found = ["A check failed; the log says why"]
        with self._changed:
            self._is_running, self._ended_at, self._reasons = False, time.monotonic(), found
            self._changed.notify_all()


def with_health(conf: cfg.ConfigOpts, application: Callable,
                check: Callable[[], Any] | None) -> Callable:
    """Wrap a WSGI application so that ``/healthcheck`` is answered first.

    :param check: see :class:`Probe`; None if the process can answer without anything else
    """
    health = healthcheck.Healthcheck(application, conf)
    probe = Probe(check) if check is not None else None

    def choose(environ, start_response):
        if environ.get("PATH_INFO") != PATH:
            return application(environ, start_response)
        if probe is None:
            return health(environ, start_response)
        begun: list[tuple] = []
        body = health(environ, lambda *arguments: begun.append(arguments))
        reasons = probe.reasons() if begun[0][0].startswith("2") else []
        if not reasons:
            start_response(*begun[0])
            return body
        return _unhealthy(environ, start_response, reasons)

    return choose


def _unhealthy(environ: dict, start_response: Callable, reasons: list[str]) -> Iterable[bytes]:
    """Answer as oslo.middleware does of what it finds unhealthy itself."""
    if "application/json" in environ.get("HTTP_ACCEPT", ""):
        kind = "application/json"
        text = json.dumps({"detailed": False, "reasons": reasons}, indent=4, sort_keys=True)
    else:
        kind, text = "text/plain", "\n".join(reasons)
    body = b"" if environ["REQUEST_METHOD"] == "HEAD" else text.encode()
    start_response("503 Service Unavailable", [
        ("content-type", f"{kind}; charset=UTF-8"), ("content-length", str(len(body)))])
    return [body]
