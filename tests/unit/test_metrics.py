# SPDX-License-Identifier: Apache-2.0
"""The metrics, and the log line of a slow call."""

import threading
import time

from placement_rpc import exception
from placement_rpc.telemetry import spans
from placement_rpc.telemetry.metrics import Metrics
from tests import base


class MetricsTest(base.TestCase):

    def shown(self, metrics):
        lines = metrics.show().decode().splitlines()
        return {name: float(value) for name, _, value in (
            line.rpartition(" ") for line in lines if not line.startswith("#"))}

    def test_calls_by_what_came_out(self):
        metrics = Metrics()
        for _ in range(2):
            with metrics.watched("claim_allocations"):
                pass

        def refused():
            with metrics.watched("claim_allocations"):
                raise exception.NoCandidates(resources="VCPU:1")

        self.assertRaises(exception.NoCandidates, refused)
        shown = self.shown(metrics)
        self.assertEqual(2, shown[
            'placement_rpc_calls_total{method="claim_allocations",outcome="done"}'])
        self.assertEqual(1, shown[
            'placement_rpc_calls_total{method="claim_allocations",'
            f'outcome="{exception.NoCandidates.code}"}}'])
        self.assertEqual(3, shown[
            'placement_rpc_call_seconds_count{method="claim_allocations"}'])

    def test_a_slow_call_has_one_line_that_says_where_its_time_went(self):
        with Metrics(slow=60).watched("get_by_request", "quick"):
            pass
        metrics = Metrics(slow=0.03)
        self.assertNotIn("Slow", self.log.output)
        with (metrics.watched("get_by_request", "a\nforged line"),
              spans.span("candidate index"), spans.span("database")):
            time.sleep(0.04)
        line, = self.log.output.splitlines()
        self.assertRegex(line, r"get_by_request took \d+\.\d+ s \(.*database \d+\.\d+, .*"
                               r"rest \d+\.\d+.*'a\\nforged line'")
        self.assertIn("candidate index 0.", line)

    def test_what_is_read_when_it_is_asked_for(self):
        metrics, depth = Metrics(), [3]
        metrics.watch(lambda: [
            ("queue_calls", "Calls", {(("queue", "claims"),): depth[0]}),
            ("outbox_unsent", "Events", {(): 7})])
        self.assertEqual(3, self.shown(metrics)['placement_rpc_queue_calls{queue="claims"}'])
        depth[0] = 5
        shown = self.shown(metrics)
        self.assertEqual((5, 7), (shown['placement_rpc_queue_calls{queue="claims"}'],
                                  shown["placement_rpc_outbox_unsent"]))

    def test_services_of_one_process_count_for_themselves(self):
        one, other = Metrics(), Metrics()
        one.settled(4)
        self.assertEqual((1, 0), tuple(self.shown(each)["placement_rpc_settled_together_count"]
                                       for each in (one, other)))


class StagesTest(base.TestCase):

    def test_what_is_within_a_stage_is_not_counted_twice(self):
        began = time.perf_counter()
        with spans.collected() as spent:
            with spans.span("outer"):
                time.sleep(0.02)
                with spans.span("inner"):
                    time.sleep(0.04)
            with spans.span("outer"):
                time.sleep(0.01)
        took = time.perf_counter() - began
        self.assertLessEqual(0.04, spent["inner"])
        self.assertLessEqual(0.03, spent["outer"])
        self.assertLessEqual(spent["inner"] + spent["outer"], took)

    def test_threads_and_calls_within_calls_are_apart(self):
        found = []

        def work():
            with spans.collected() as spent, spans.span("other"):
                pass
            found.append(spent)

        with spans.collected() as spent:
            with spans.collected() as inner, spans.span("inner"):
                pass
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            with spans.span("mine"):
                pass
        self.assertEqual((["mine"], ["inner"], ["other"]), (
            list(spent), list(inner), list(found[0])))

    def test_outside_of_a_call_nothing_is_collected(self):
        with spans.span("alone"):
            pass
        with spans.collected() as spent:
            pass
        self.assertEqual({}, spent)
