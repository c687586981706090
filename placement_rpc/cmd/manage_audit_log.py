# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage audit-log``: who changed what, as lines of JSON in a file."""

import signal
import threading

from oslo_log import log

from placement_rpc import exception
from placement_rpc.backoff import Backoff
from placement_rpc.cmd import bus
from placement_rpc.notifications.audit_log import AuditLog
from placement_rpc.notifications.queue import QueueListener
from placement_rpc.notifications.sequence import SavedPosition

LOG = log.getLogger(__name__)


def run(options, conf):
    """Write lines until a signal, or until no event came for a while; return the exit code.

    :raises InvalidInput: if there is no RabbitMQ, or a queue of the name is of another kind
    :raises OSError: if the file cannot be written at the start
    :raises ServiceUnavailable: if ``--idle`` is given and the broker cannot be reached; without
        it the program waits for the broker
    """
    broker = bus.needed(conf, "only RabbitMQ has events for a queue")
    audit_log, ended = AuditLog(options.file), threading.Event()
    audit_log.check()
    listener = QueueListener(conf, options.queue, _patient(audit_log, ended), broker,
                             SavedPosition(f"{options.file}.position"))
    try:
        listener.declare()
    except exception.ServiceUnavailable:
        if options.idle is not None:
            raise

    def stop(*_signal):
        ended.set()
        listener.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    listener.run(options.idle)
    return 0


def _patient(audit_log, ended):
    """Return a handler that tries again until the line is written.

    If the handler raised, each event that comes while the disk is full would become a dead letter.

    :param ended: the :class:`threading.Event` that ends the attempts
    """
    def write(event):
        backoff = Backoff(first=1, longest=60)
        while True:
            try:
                return audit_log(event)
            except OSError as error:
                LOG.error("Event %d cannot be written to the audit log; retrying: %s",
                          event.position, error)
                if ended.wait(backoff.next()):
                    raise

    return write
