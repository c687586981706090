# SPDX-License-Identifier: Apache-2.0
"""The order in which a process tries the nodes of a broker."""

import os

from placement_rpc.amqp.node_order import NodeOrder
from tests import base


class NodeOrderTest(base.TestCase):

    def test_it_has_all_nodes_and_stays(self):
        order = NodeOrder("abc")
        self.assertEqual(["a", "b", "c"], sorted(order.now()))
        self.assertEqual([order.now()] * 20, [order.now() for _ in range(20)])

    def test_processes_differ(self):
        firsts = [NodeOrder("abc").now()[0] for _ in range(300)]
        for node in "abc":
            self.assertTrue(50 < firsts.count(node) < 150, firsts.count(node))

    def test_a_node_that_is_left_comes_last(self):
        order = NodeOrder("abc")
        first, second, third = order.now()
        order.leave(first)
        self.assertEqual([second, third, first], order.now())
        # A connection that ends late changes nothing for the others.
        order.leave(first)
        self.assertEqual([second, third, first], order.now())
        order.leave(second)
        self.assertEqual([third, first, second], order.now())

    def test_a_process_that_was_forked_has_an_order_of_its_own(self):
        orders = set()
        order, pid = NodeOrder("abcdefgh"), os.getpid()
        for number in range(3):
            self.patch(os, "getpid", lambda number=number: pid + number)
            orders.add(tuple(order.now()))
        self.assertGreater(len(orders), 1)
