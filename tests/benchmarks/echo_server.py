# SPDX-License-Identifier: Apache-2.0
"""What the service is measured against: an RPC server of the library that does nothing."""

import signal
import sys

import oslo_messaging

from placement_rpc import bus
from placement_rpc import conf as configuration


class Echo:
    """Answers with what it was sent."""

    target = oslo_messaging.Target(version="1.0")

    def echo(self, context, claim, request_id):
        return claim


def main(transport_url, name):
    # The library's server and its default number of threads, on the same kind of queues.
    conf = configuration.new_config(config_files=[], transport_url=transport_url)
    server = oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(conf),
        oslo_messaging.Target(exchange=bus.EXCHANGE, topic="echo", server=name), [Echo()],
        executor="threading")
    server.start()
    signal.sigwait([signal.SIGTERM])
    server.stop()
    server.wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    main(*sys.argv[1:])
