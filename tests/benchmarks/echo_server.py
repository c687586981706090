# SPDX-License-Identifier: Apache-2.0
"""The baseline of the benchmark: a server of oslo.messaging that only echoes."""

import signal
import sys
import uuid

import oslo_messaging

from placement_rpc import conf as configuration
from placement_rpc.context import RequestContext
from placement_rpc.objects.resource_provider import ResourceProvider, ResourceProviderList
from placement_rpc.rpc import routing, serializer


class Echo:
    """Answers with the payload that it receives."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self):
        self._found = {}

    def echo(self, context, claim, request_id):
        return claim

    def echo_found(self, context, wanted, count):
        """Return as many bytes as an answer with ``count`` candidates has."""
        if count not in self._found:
            found = ResourceProviderList(more=True, position=1_000_000, objects=[ResourceProvider(
                uuid=str(uuid.uuid4()), name=f"node {number}", generation=5,
                free={"VCPU": 99_998, "MEMORY_MB": 99_998_000, "DISK_GB": 999_990})
                for number in range(count)])
            found.forget_changes()
            self._found[count] = serializer.Serializer().serialize_entity(RequestContext(), found)
        return self._found[count]


def main(transport_url, name):
    # The library's server and its default number of threads, on the same kind of queues.
    conf = configuration.new_config(config_files=[], transport_url=transport_url)
    server = oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(conf),
        oslo_messaging.Target(exchange=routing.EXCHANGE, topic="echo", server=name), [Echo()],
        executor="threading")
    server.start()
    signal.sigwait([signal.SIGTERM])
    server.stop()
    server.wait()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    main(*sys.argv[1:])
