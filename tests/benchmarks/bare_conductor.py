# SPDX-License-Identifier: Apache-2.0
"""A conductor that writes no events, on a topic of its own: what the outbox costs is the
difference. It measures; it is not an option of the service."""

import signal
import sys

from placement_rpc import conf as configuration
from placement_rpc import service
from placement_rpc.notifications.relay import Relay
from placement_rpc.objects.journal import Journal

TOPIC = "placement-without-outbox"


def main(transport_url, database, worker):
    Journal._add = lambda self, event_type, payload: None
    Journal.rows = lambda self, tx, *others, used=None: []
    Relay.start = lambda self: None
    conductor = service.Conductor(
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
