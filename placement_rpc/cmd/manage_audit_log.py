# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage audit-log``: who changed what, as lines of JSON in a file."""

import signal

from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.notifications.audit_log import AuditLog
from placement_rpc.notifications.queue import QueueListener
from placement_rpc.notifications.sequence import SavedPosition


def run(options, conf):
    """Write lines until a signal, or until no event came for a while; return the exit code.

    :raises InvalidInput: if there is no RabbitMQ
    :raises OSError: if the file cannot be written
    :raises ServiceUnavailable: if the broker cannot be reached, and it is to end without events;
        otherwise it waits for the broker, and its log says so
    """
    broker = Broker.needed(conf, "only RabbitMQ has events for a queue")
    audit_log = AuditLog(options.file)
    # An event for which it fails would become a dead letter.
    audit_log.check()
    if options.idle is not None:
        _check(broker)
    listener = QueueListener(conf, options.queue, audit_log, broker,
                             SavedPosition(f"{options.file}.position"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_signal: listener.stop())
    listener.run(options.idle)
    return 0


def _check(broker):
    """Check that the broker can be reached.

    :raises ServiceUnavailable: if it cannot
    """
    try:
        with broker.connected():
            pass
    except FAILURES as error:
        raise exception.ServiceUnavailable(reason=f"RabbitMQ: {error}") from error
