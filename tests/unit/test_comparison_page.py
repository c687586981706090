# SPDX-License-Identifier: Apache-2.0
"""The page that compares with OpenStack Placement has no figures of its own."""

import pathlib
import re

from tests import base

_SOURCE = pathlib.Path(__file__).parents[2] / "docs" / "source"
_FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")


def _figures(text):
    return set(_FIGURE.findall(text))


class ComparisonTest(base.TestCase):

    def test_all_figures_are_of_the_performance_page(self):
        """If this fails after a new run, copy its figures."""
        page = (_SOURCE / "comparison.rst").read_text()
        costs = page[page.index("What it costs\n"):]
        measured = _figures((_SOURCE / "performance.rst").read_text()) | _figures(
            (_SOURCE / "candidates-figures.inc").read_text())
        found = {each for each in _figures(costs.replace("1,000", "").replace("10,000", ""))
                 if "." in each or len(each) > 2}
        self.assertGreater(len(found), 20)
        # 4.3 seconds are 4314 ms there; 1.36 is a microversion.
        self.assertIn("4314", measured)
        self.assertEqual(set(), found - measured - {"4.3", "1.36"})
