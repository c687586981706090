# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage audit-log``: who changed what, as lines of JSON in a file."""

import signal

from placement_rpc.amqp.broker import Broker
from placement_rpc.notifications.audit_log import AuditLog
from placement_rpc.notifications.queue import QueueListener
from placement_rpc.notifications.sequence import SavedPosition


def run(options, conf):
    """Write lines until a signal, or until no event came for a while; return the exit code.

    :raises InvalidInput: if there is no RabbitMQ
    """
    broker = Broker.needed(conf, "only RabbitMQ has events for a queue")
    listener = QueueListener(conf, options.queue, AuditLog(options.file), broker,
                             SavedPosition(f"{options.file}.position"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_signal: listener.stop())
    listener.run(options.idle)
    return 0
