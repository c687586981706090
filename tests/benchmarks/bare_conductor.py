# SPDX-License-Identifier: Apache-2.0
"""A conductor that writes no events, on a separate topic, to measure the cost of the outbox.

It exists for the benchmark only and is not an option of the service.
"""

import signal
import sys

from placement_rpc.accounting.outbox import Outbox
from placement_rpc.conf import service as configuration
from placement_rpc.notifications.relay import Relay
from placement_rpc.service.conductor import Conductor

TOPIC = "placement-without-outbox"


def main(transport_url, database, worker):
    Outbox.add = lambda self, event_type, payload: None
    Outbox.add_plain = lambda self, event_type, payload_class, **data: None
    Outbox.rows = lambda self, tx, *others, used=None: []
    Relay.start = lambda self: None
    conductor = Conductor(
        configuration.new_config(
            config_files=[], transport_url=transport_url, database__connection=database,
            notifications__snapshot_period=0),
        worker=int(worker), binary="bare", topic=TOPIC)
    conductor.start()
    signal.sigwait([signal.SIGTERM])
    conductor.stop()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    main(*sys.argv[1:])
