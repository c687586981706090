# SPDX-License-Identifier: Apache-2.0
"""Metrics for Prometheus, and the log line for a slow call.

Each service in a process has its own registry. No metric has the name of a provider, a consumer or
a user.
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
#: The MIME type of what :meth:`Metrics.show` returns.
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST


class Metrics:
    """The metrics of one service.

    :param slow: float, seconds after which a call is logged as slow; 0 turns it off
    """

    def __init__(self, slow=0):
        self._slow = slow
        self._registry = registry = prometheus_client.CollectorRegistry()
        self._calls = prometheus_client.Counter(
            "placement_rpc_calls", "Calls answered, by method and outcome",
            ("method", "outcome"), registry=registry)
        self._seconds = prometheus_client.Histogram(
            "placement_rpc_call_seconds", "Time from taking up a call to its answer", ("method",),
            buckets=_SECONDS, registry=registry)
        self._together = prometheus_client.Histogram(
            "placement_rpc_settled_together", "Claims settled in one transaction",
            buckets=_SIZES, registry=registry)
        self._requests = prometheus_client.Counter(
            "placement_rpc_http_requests", "HTTP requests answered, by method, route and status",
            ("method", "route", "status"), registry=registry)
        self._request_seconds = prometheus_client.Histogram(
            "placement_rpc_http_request_seconds", "Time from an HTTP request to its answer",
            ("method", "route"), buckets=_SECONDS, registry=registry)
        self._cut = prometheus_client.Counter(
            "placement_rpc_allocation_candidates_cut",
            "Answers that were cut at the maximum number of allocation candidates",
            registry=registry)
        self._refused = prometheus_client.Counter(
            "placement_rpc_refused_overloaded",
            "Calls and HTTP requests refused because their client has too many under way",
            ("queue",), registry=registry)
        self._dead = prometheus_client.Counter(
            "placement_rpc_dead_letters", "Messages that this process put into the dead letters",
            registry=registry)
        # Those about the fleet, which are not shown to everyone, in addition.
        self._with_fleet = prometheus_client.CollectorRegistry()
        for metric in (self._calls, self._seconds, self._together, self._requests,
                       self._request_seconds, self._cut, self._refused, self._dead):
            self._with_fleet.register(metric)
        # Looking a labelled child up costs more than incrementing it.
        self._call = functools.cache(self._calls.labels)
        self._took = functools.cache(self._seconds.labels)
        self._request = functools.cache(self._requests.labels)
        self._request_took = functools.cache(self._request_seconds.labels)

    @contextlib.contextmanager
    def watched(self, method, request_id=None):
        """Count the call that a block answers, and log it if it is slow; a context manager.

        :param method: str, the name of an existing method, since each name is a label
        :param request_id: the caller's request id, of any type, for the log
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
        :param seconds: float, its duration
        :param spent: dict of span name to seconds
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
        """Count a transaction.

        :param count: int, the number of claims that it settled
        """
        self._together.observe(count)

    def candidates_cut(self):
        """Count an answer that was cut at the maximum number of allocation candidates."""
        self._cut.inc()

    def refused(self, queue):
        """Count a call or an HTTP request that is refused because its client has too many.

        :param queue: str, the request queue; ``http`` for HTTP requests
        """
        self._refused.labels(queue).inc()

    def dead_lettered(self):
        """Count a message that is kept as a dead letter."""
        self._dead.inc()

    def requested(self, method, route, status, seconds):
        """Count an HTTP request.

        :param route: str, the template of its address, not the address itself
        """
        self._request(method, route, status).inc()
        self._request_took(method, route).observe(seconds)

    def watch(self, state, of_fleet=False):
        """Add gauges that are read on each scrape.

        :param of_fleet: bool, whether they are about the fleet and not about the service; such
            ones are not shown to everyone
        :param state: callable that yields tuples of a name, a help text, and a dict of labels, a
            tuple of pairs of name and value, to a number
        """
        self._with_fleet.register(_State(state))
        if not of_fleet:
            self._registry.register(_State(state))

    def show(self, with_fleet=False):
        """Return the metrics as bytes in Prometheus's text format.

        :param with_fleet: bool, whether gauges about the fleet are among them
        """
        return prometheus_client.generate_latest(
            self._with_fleet if with_fleet else self._registry)

    def serve(self, host, port):
        """Serve ``/metrics`` on a port of its own.

        :returns: callable that stops the server
        :raises OSError: if the port is in use
        """
        server, thread = prometheus_client.start_http_server(
            port, addr=host, registry=self._with_fleet)

        def end():
            server.shutdown()
            server.server_close()
            thread.join()

        return end


class _State:
    """A collector of gauges that are read on each scrape."""

    def __init__(self, state):
        self._read = state

    def describe(self):
        """Return nothing: the gauges are not read before the first scrape."""
        return ()

    def collect(self):
        for name, text, values in self._read():
            family = core.GaugeMetricFamily(
                f"placement_rpc_{name}", text, labels=[
                    label for label, _ in next(iter(values), ())])
            for labels, value in values.items():
                family.add_metric([text for _, text in labels], value)
            yield family
