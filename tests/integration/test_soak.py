# SPDX-License-Identifier: Apache-2.0
"""A short form of ``make soak``: nothing is lost, and nothing done twice, while parts fail."""

import testscenarios

from tests import base
from tests.soak import report, run

# The faults of the short form: those that end a process, each once.
_SHORT = ("conductor killed", "relay killed", "broker killed", "database killed")


class SoakTest(testscenarios.WithScenarios, base.TestCase):
    """Each of the servers is killed once; in full, those of clusters too, and in every way."""

    # Three brokers and three databases need minutes to start beside other tests.
    time_limit = 1200
    scenarios = [(form, {"form": form}) for form in (run.FORMS if base.FULL else ("none",))]

    def test_nothing_is_lost_and_nothing_done_twice(self):
        # Few enough clients to leave some of the processors to the tests that run meanwhile.
        soak = self.useFixture(run.Soak(
            self.form, seed=7, threads=8 if base.FULL else 3, snapshot_period=10))
        if base.FULL:
            soak.run(seconds=120)
        else:
            soak.run(seconds=0, every=5, only=_SHORT, least=500)
        result = soak.figures()
        self.assertEqual([], result["wrong"], report.text(result))
        for name in ("casts", "batch", "move", "set", "find", "reads", "refused"):
            self.assertGreater(result["counts"].get(name, 0), 3, name)
        self.assertGreater(result["counts"]["accepted"], 300)
        self.assertGreater(result["counts"]["poison"], 0)
