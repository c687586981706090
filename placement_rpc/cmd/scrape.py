# SPDX-License-Identifier: Apache-2.0
"""Figures of the service, from the metrics that its processes serve for Prometheus."""

import http.client
import math
import time
import urllib.request

from prometheus_client import parser

_PREFIX = "placement_rpc_"
# Seconds for an answer.
_PATIENCE = 5
_SHARE = 0.99


class Reading:
    """The metrics of some processes at one time.

    :param texts: list of str, in Prometheus's text format, of each process
    """

    def __init__(self, texts):
        self.at = time.monotonic()
        self._samples = [
            (sample.name.removeprefix(_PREFIX), sample.labels, sample.value)
            for text in texts for family in parser.text_string_to_metric_families(text)
            for sample in family.samples]

    @classmethod
    def of(cls, urls):
        """Read the metrics at some addresses.

        :param urls: list of str
        :raises OSError: if one of them does not answer, or its answer is no metrics
        :raises ValueError: if one of them is no address of HTTP
        """
        texts = []
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"{url!r} is not an address of HTTP, as http://host:port/metrics")
            try:
                with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:  # noqa: S310
                    texts.append(answer.read().decode())
            except (http.client.InvalidURL, UnicodeEncodeError) as error:
                raise ValueError(f"{url!r} is not an address of HTTP: {error}") from error
            except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
                reason = getattr(error, "reason", error)
                raise OSError(f"the metrics at {url} cannot be read: {reason}") from error
        try:
            return cls(texts)
        except ValueError as error:
            raise OSError(f"there are no metrics at {' or '.join(urls)}: {error}") from error

    def by(self, name, label):
        """Return a dict of a label's values to the sum of a metric over all else."""
        sums = {}
        for each, labels, value in self._samples:
            if each == name and label in labels:
                sums[labels[label]] = sums.get(labels[label], 0) + value
        return sums

    def where(self, name, **wanted):
        """Return the sum of a metric over the samples that have some labels."""
        return sum(value for each, labels, value in self._samples
                   if each == name and wanted.items() <= labels.items())

    def buckets(self, method):
        """Return a dict of upper bound in seconds to the number of calls that took no longer."""
        found = {}
        for name, labels, value in self._samples:
            if name == "call_seconds_bucket" and labels["method"] == method:
                bound = float(labels["le"])
                found[bound] = found.get(bound, 0) + value
        return found

    def largest(self, name):
        """Return the largest value of a metric, None if no process has it."""
        return max((value for each, _, value in self._samples if each == name), default=None)


def figures(before, after):
    """Return what happened between two readings, and how it is at the second, as a dict."""
    seconds = max(after.at - before.at, 0.001)
    return {
        "seconds": round(seconds, 1),
        "calls": _calls(before, after, seconds),
        "http_per_second": _rate(before.where("http_requests_total"),
                                 after.where("http_requests_total"), seconds),
        "queues": [{"queue": name, "calls": int(calls),
                    "slots": int(after.where("queue_slots", queue=name))}
                   for name, calls in sorted(after.by("queue_calls", "queue").items())],
        "outbox": {"unsent": after.largest("outbox_unsent"),
                   "oldest_seconds": after.largest("outbox_oldest_unsent_seconds")},
        "index": {name: after.largest(f"index_{name}") for name in (
            "providers", "inventories", "age_seconds", "made")},
    }


def _calls(before, after, seconds):
    """Return the methods that were called, the most frequent first, as a list of dicts."""
    rows, earlier = [], before.by("calls_total", "method")
    for method, count in after.by("calls_total", "method").items():
        done = [reading.where("calls_total", method=method, outcome="done")
                for reading in (before, after)]
        rate = _rate(earlier.get(method, 0), count, seconds)
        if not rate:
            continue
        spent, ended = (
            after.where(name, method=method) - before.where(name, method=method)
            for name in ("call_seconds_sum", "call_seconds_count"))
        rows.append({
            "method": method, "per_second": rate,
            "failed_per_second": round(max(0, rate - _rate(*done, seconds)), 1),
            "mean_ms": round(1000 * spent / ended, 1) if ended > 0 else None,
            "p99_ms": _slowest(before.buckets(method), after.buckets(method))})
    return sorted(rows, key=lambda row: (-row["per_second"], row["method"]))


def _rate(earlier, later, seconds):
    # A process that was started again counts from zero.
    return round(max(0, later - earlier) / seconds, 1)


def _slowest(before, after):
    """Return the milliseconds within which 99 of 100 calls ended, as Prometheus estimates them."""
    counts = sorted((bound, count - before.get(bound, 0)) for bound, count in after.items())
    if not counts or counts[-1][1] <= 0:
        return None
    wanted, lower, below = _SHARE * counts[-1][1], 0.0, 0.0
    for bound, count in counts:
        if count >= wanted:
            # How far calls are beyond the last bound is not known.
            width = 0 if bound == math.inf else bound - lower
            return round(1000 * (lower + width * (wanted - below) / (count - below)), 1)
        lower, below = bound, count
    return None
