# SPDX-License-Identifier: Apache-2.0
"""Dead letters are counted once the broker has confirmed that it keeps them."""

from unittest import mock

from placement_rpc.amqp import rejections
from placement_rpc.amqp.dead_letters import DeadLetterQueue
from placement_rpc.amqp.publisher import ConfirmedChannel, Unconfirmed
from placement_rpc.telemetry.metrics import Metrics
from tests import base


class DeadLetterCountTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.metrics = Metrics()
        self.queue = DeadLetterQueue("dead", 10, 60, self.metrics.dead_lettered)
        self.channel = mock.create_autospec(ConfirmedChannel, instance=True)
        self.message = mock.Mock(
            body=b"{}", body_size=2, raw_header=b"", headers={}, properties={})

    def counted(self):
        line, = (each for each in self.metrics.show().decode().splitlines()
                 if each.startswith("placement_rpc_dead_letters_total"))
        return float(line.split()[-1])

    def test_none_yet(self):
        """An alert on the increase needs the zero before the first."""
        self.assertEqual(0, self.counted())

    def test_one_at_a_time(self):
        self.queue.dead_letter(self.channel, self.message, "commands", "it cannot be read")
        self.assertEqual(1, self.counted())
        self.channel.settle.side_effect = Unconfirmed("no confirm")
        self.assertRaises(Unconfirmed, self.queue.dead_letter, self.channel, self.message,
                          "commands", "it cannot be read")
        self.assertEqual(1, self.counted())

    def test_several_at_a_time(self):
        consumer = mock.Mock(queue_of=lambda message: "calls")
        with mock.patch.object(rejections, "ConfirmedChannel", return_value=self.channel), \
                mock.patch.object(DeadLetterQueue, "declare"):
            rejected = rejections.Rejections(mock.Mock(), consumer, self.queue)
        for _ in range(2):
            rejected.add(self.message, "it cannot be read")
        self.channel.is_settled.return_value = False
        rejected.settle()
        rejected.settle()
        self.assertEqual(0, self.counted())
        self.channel.is_settled.return_value = True
        rejected.settle()
        self.assertEqual(2, self.counted())
