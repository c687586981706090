# SPDX-License-Identifier: Apache-2.0
"""Which statement of a transaction waits for the other nodes of a cluster."""

import testscenarios

from placement_rpc.db import galera
from tests import base


class Session:
    """A connection and the pool's record of it."""

    def __init__(self, answer):
        self.info, self._answer = {}, answer

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement):
        self.asked = statement

    def fetchone(self):
        return self._answer


def session(answer=("wsrep_on", "ON"), waits=True):
    found = Session(answer)
    galera.connected(found, found)
    galera.wait_for_others(found, waits)
    return found


class WaitsTest(base.TestCase):

    def test_the_first_statement_that_reads(self):
        found = session()
        self.assertEqual([False, True, False], [galera.waits(found, text) for text in (
            "SET TRANSACTION READ ONLY", "(SELECT 1) UNION ALL (SELECT 2)", "SELECT 3")])

    def test_each_transaction(self):
        found = session()
        galera.waits(found, "SELECT 1")
        galera.wait_for_others(found, 1)
        self.assertTrue(galera.waits(found, "SELECT 1"))
        galera.wait_for_others(found, waits=False)
        self.assertFalse(galera.waits(found, "SELECT 1"))

    def test_a_transaction_that_begins_with_a_write_waits_for_nothing(self):
        found = session()
        self.assertEqual([False, False], [galera.waits(found, text) for text in (
            "UPDATE services SET version = 1", "SELECT 1")])


class NoNodeTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [("switched off", {"answer": ("wsrep_on", "OFF")}),
                 ("no such variable", {"answer": None})]

    def test_nothing_waits(self):
        self.assertFalse(galera.is_node(session(self.answer)))
        self.assertFalse(galera.waits(session(self.answer), "SELECT 1"))
