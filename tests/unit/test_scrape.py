# SPDX-License-Identifier: Apache-2.0
"""The rates and times that ``placement-rpc top`` computes from the metrics of processes."""

from placement_rpc.cmd import scrape
from placement_rpc.telemetry import metrics
from tests import base


class FiguresTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.processes = [metrics.Metrics(), metrics.Metrics()]
        for number, process in enumerate(self.processes):
            process.watch(lambda number=number: iter([
                ("queue_calls", "Calls", {(("queue", "claims"),): 1 + number}),
                ("queue_slots", "Slots", {(("queue", "claims"),): 16}),
                ("outbox_unsent", "Events", {(): 7}),
                ("index_age_seconds", "Age", {(): number})]))

    def read(self, at):
        reading = scrape.Reading([process.show().decode() for process in self.processes])
        reading.at = at
        return reading

    def test_rates_are_of_all_processes_between_two_readings(self):
        self.processes[0].answered("claim", "done", 100)
        before = self.read(10)
        for process in self.processes:
            for _ in range(10):
                process.answered("claim", "done", 0.02)
            process.answered("claim", "conflict", 0.02)
            process.requested("GET", "/", 200, 0.01)
        found = scrape.figures(before, self.read(12))
        self.assertEqual(
            [{"method": "claim", "per_second": 11.0, "failed_per_second": 1.0, "mean_ms": 20.0}],
            [{key: value for key, value in row.items() if key != "p99_ms"}
             for row in found["calls"]])
        # Between the bounds of the bucket that all of them are in.
        self.assertTrue(10 < found["calls"][0]["p99_ms"] <= 25)
        self.assertEqual(1.0, found["http_per_second"])

    def test_a_state_that_processes_share_is_not_added_up(self):
        found = scrape.figures(self.read(10), self.read(12))
        self.assertEqual([{"queue": "claims", "calls": 3, "slots": 32}], found["queues"])
        self.assertEqual({"unsent": 7, "oldest_seconds": None}, found["outbox"])
        self.assertEqual(1, found["index"]["age_seconds"])
        self.assertEqual([], found["calls"])

    def test_a_process_that_started_again_has_no_negative_rate(self):
        self.processes[0].answered("claim", "done", 1)
        before = self.read(10)
        self.processes = [metrics.Metrics()]
        self.assertEqual([], scrape.figures(before, self.read(12))["calls"])

    def test_times_beyond_all_bounds_are_the_last_bound(self):
        before = self.read(10)
        self.processes[0].answered("claim", "done", 100)
        self.assertEqual(10_000, scrape.figures(before, self.read(12))["calls"][0]["p99_ms"])

    def test_only_http_is_read(self):
        self.assertRaises(ValueError, scrape.Reading.of, ["file:///etc/hostname"])
