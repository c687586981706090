# SPDX-License-Identifier: Apache-2.0
"""The sum of several runs of the soak, and its tables."""

from tests import base
from tests.soak import report

RUN = {
    "form": "galera", "seed": 1, "counts": {"accepted": 10, "refused": 2, "unknown": 1},
    "lost": 0, "doubled": 0, "over_committed": 0, "unknown_that_happened": 1,
    "young_queues_kept_percent": [], "stopped_brokers": {},
    "memory_mib": {"conductor 0": [90, 100]},
    "faults": {"queue leader killed": {"times": 1, "goal": 10, "gap": 4.2, "p99": None}},
    "wrong": []}
OTHER = {
    **RUN, "seed": 2, "lost": 1, "young_queues_kept_percent": [0],
    "stopped_brokers": {"restarted": 2},
    "memory_mib": {"conductor 0": [90, 95]}, "wrong": ["lost"],
    "faults": {"queue leader killed": {"times": 2, "goal": 10, "gap": 12.25, "p99": 0.5}}}


class ReportTest(base.TestCase):

    def test_the_sum_of_runs(self):
        single = {**RUN, "form": "none", "seed": 3}
        both, alone = report.add([RUN, OTHER, single])
        self.assertEqual(("galera", [1, 2], 26, 1, ["lost"]), (
            both["form"], both["seed"], report.sent(both), both["lost"], both["wrong"]))
        self.assertEqual({"times": 3, "goal": 10, "gap": 12.25, "p99": 0.5},
                         both["faults"]["queue leader killed"])
        self.assertEqual([90, 100], list(both["memory_mib"]["conductor 0"]))
        self.assertEqual(([0], {"restarted": 2}),
                         (both["young_queues_kept_percent"], both["stopped_brokers"]))
        self.assertEqual(("none", 13), (alone["form"], report.sent(alone)))
        # The runs themselves are as they were.
        self.assertEqual(1, RUN["faults"]["queue leader killed"]["times"])

    def test_the_text_says_what_is_late_and_what_is_wrong(self):
        self.assertIn("nothing is wrong", report.text(RUN))
        self.assertNotIn("(late)", report.text(RUN))
        found = report.text(OTHER)
        self.assertIn("WRONG: lost", found)
        self.assertIn("12.25 s    10   0.50 s (late)", found)
        self.assertIn("kept these percentages of their messages: [0]", found)
        self.assertIn("were stopped came back: 2 restarted", found)

    def test_a_table_for_the_documentation(self):
        rule, head, _, *rows, end = report.rst([RUN, OTHER]).splitlines()
        self.assertEqual((rule, 2), (end, len(rows)))
        self.assertTrue(head.startswith("engines  fault"))
        self.assertIn("12.2", rows[1])
