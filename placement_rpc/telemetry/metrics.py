# SPDX-License-Identifier: Apache-2.0
"""What is counted, for Prometheus, and the line in the log that tells of a slow call.

Each service of a process has counters of its own. Names of providers, consumers or people are in
none of them.
"""

import contextlib
import functools
import logging
import time

import prometheus_client
from prometheus_client import core

from placement_rpc import exception
from placement_rpc.telemetry import spans

LOG = logging.getLogger(__name__)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: What :meth:`Metrics.show` returns, as a MIME type.
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST


class Metrics:
    """The counters of one service.

    :param slow: float, seconds above which a call is told of in the log; 0 for never
    """

    def __init__(self, slow=0):
        self._slow = slow
        self._registry = registry = prometheus_client.CollectorRegistry()
        self._calls = prometheus_client.Counter(
            "placement_rpc_calls", "Calls that were answered, by what came out",
            ("method", "outcome"), registry=registry)
        self._seconds = prometheus_client.Histogram(
            "placement_rpc_call_seconds", "How long calls took in the service", ("method",),
            buckets=_SECONDS, registry=registry)
        self._together = prometheus_client.Histogram(
            "placement_rpc_settled_together", "Claims that were settled in one transaction",
            buckets=_SIZES, registry=registry)
        self._requests = prometheus_client.Counter(
            "placement_rpc_http_requests", "Requests over HTTP that were answered",
            ("method", "route", "status"), registry=registry)
        self._request_seconds = prometheus_client.Histogram(
            "placement_rpc_http_request_seconds", "How long requests over HTTP took",
            ("method", "route"), buckets=_SECONDS, registry=registry)
        # To look a child up costs more than to count.
        self._call = functools.cache(self._calls.labels)
        self._took = functools.cache(self._seconds.labels)

    @contextlib.contextmanager
    def watched(self, method, request_id=None):
        """Count a call, and tell of it where it is slow.

        :param method: str, a method that there is
        :param request_id: what the caller gave as that; anything
        """
        began, outcome = time.perf_counter(), "done"
        with spans.collected() as spent:
            try:
                yield
            except exception.PlacementException as error:
                outcome = error.code
                raise
            except BaseException:
                outcome = "failure"
                raise
            finally:
                self.answered(
                    method, outcome, time.perf_counter() - began, spent, request_id)

    def answered(self, method, outcome, seconds, spent=(), request_id=None):
        """Count a call.

        :param outcome: str, ``done`` or the code of an error
        :param spent: dict of stage to seconds
        """
        self._call(method, outcome).inc()
        self._took(method).observe(seconds)
        if self._slow and seconds > self._slow:
            rest = seconds - sum(spent.values()) if spent else seconds
            LOG.warning(
                "Slow call: %s took %.3f s (%s), outcome %s, request %.80r", method, seconds,
                ", ".join(f"{name} {took:.3f}" for name, took in (*sorted(
                    dict(spent).items(), key=lambda each: -each[1]), ("rest", rest))),
                outcome, request_id)

    def settled(self, count):
        """Count a transaction; :param count: int, how many claims it settled"""
        self._together.observe(count)

    def requested(self, method, route, status, seconds):
        """Count a request over HTTP; :param route: str, its template"""
        self._requests.labels(method, route, status).inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def watch(self, state):
        """Show what somebody tells when he is asked.

        :param state: callable that gives tuples of name, help, and a dict of labels' values, each
            a tuple of pairs, to a number
        """
        self._registry.register(_State(state))

    def show(self):
        """:returns: bytes, as Prometheus reads it"""
        return prometheus_client.generate_latest(self._registry)

    def serve(self, host, port):
        """Answer ``/metrics`` on a port of its own.

        :returns: callable that ends it
        :raises OSError: when the port is taken
        """
        server, thread = prometheus_client.start_http_server(
            port, addr=host, registry=self._registry)

        def end():
            server.shutdown()
            server.server_close()
            thread.join()

        return end


class _State:
    """A collector of gauges that are read when they are asked for."""

    def __init__(self, state):
        self._read = state

    def describe(self):
        """Nothing is asked before somebody scrapes."""
        return ()

    def collect(self):
        for name, text, values in self._read():
            family = core.GaugeMetricFamily(
                f"placement_rpc_{name}", text, labels=[
                    label for label, _ in next(iter(values), ())])
            for labels, value in values.items():
                family.add_metric([text for _, text in labels], value)
            yield family
