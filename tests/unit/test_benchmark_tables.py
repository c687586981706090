# SPDX-License-Identifier: Apache-2.0
"""The tables that the documentation takes from the results of the benchmark of candidates."""

from tests import base
from tests.benchmarks import candidates_tables


def _result(name, value, unit, note=""):
    return {"name": name, "value": value, "unit": unit, "note": note}


class TablesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.text = candidates_tables.tables([
            _result("plain, 1000 trees: processor time", 9.123, "ms", "goal 10; service 9.1"),
            _result("plain, 10000 trees: processor time", 12.5, "ms", "goal 15; service 12.5"),
            _result("placement_rpc over rpc: plain, 1000 trees: processor time", 44.4, "ms"),
            _result("openstack-placement: plain, 1000 trees: processor time", 420.4, "ms"),
            _result("plain, 1000 trees: openstack-placement to placement_rpc", 46.1, "ratio",
                    "goal 30"),
            _result("load of the index, 1000 trees", 0.234, "s"),
            _result("placement_rpc: 16 schedulers, 10000 nearly full trees", 210.0, "claims/s",
                    "500 claims of 500 places"),
            _result("placement_rpc: 16 schedulers, 10000 nearly full trees: processor time of a "
                    "claim", 9.5, "ms")])
        self.rows = [line.split("  ") for line in self.text.splitlines()]

    def _cells(self, first):
        """Return the cells of every row that begins with a text."""
        return [[cell.strip() for cell in row[1:] if cell.strip()]
                for row in self.rows if row[0].strip() == first]

    def test_processor_times_have_a_table_for_each_service(self):
        self.assertEqual([["9.1 (10)", "12.5 (15)"], ["44.4"], ["420", "46.1 (30)"]],
                         self._cells("plain"))
        self.assertEqual([["1,000", "10,000"]], self._cells("local"))
        self.assertEqual([["1,000", "ratio"]], self._cells("openstack-placement"))

    def test_the_index_and_the_schedulers(self):
        self.assertEqual([["0.23"]], self._cells("load of the index [s]"))
        self.assertEqual([["210", "9.5", "500 claims of 500 places"]],
                         self._cells("placement_rpc"))

    def test_what_was_not_measured_has_no_table(self):
        self.assertEqual("", candidates_tables.tables([]).strip())
