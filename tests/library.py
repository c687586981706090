# SPDX-License-Identifier: Apache-2.0
"""Ordinary oslo.messaging clients and servers, which know nothing of this project's."""

import fixtures
import oslo_messaging

from placement_rpc.rpc import envelope, routing


class _Transport(fixtures.Fixture):
    """What both ends need.

    :param conf: configuration made by :mod:`placement_rpc.conf`
    :param topic: str
    :param modules: list of str, the modules whose errors are rebuilt
    """

    def __init__(self, conf, topic, modules=envelope.ALLOWED_REMOTE_MODULES):
        super().__init__()
        self._conf, self._topic, self._modules = conf, topic, modules

    def _setUp(self):
        self._transport = oslo_messaging.get_rpc_transport(
            self._conf, allowed_remote_exmods=self._modules)
        self.addCleanup(self._transport.cleanup)


class Client(_Transport):
    """A client of a topic; ``call``, ``cast`` and ``prepare`` are the library's."""

    def _setUp(self):
        super()._setUp()
        client = oslo_messaging.get_rpc_client(self._transport, oslo_messaging.Target(
            exchange=routing.EXCHANGE, topic=self._topic, version="1.2"))
        self.call, self.cast, self.prepare = client.call, client.cast, client.prepare


class Server(_Transport):
    """A server of a topic, named ``library``, that answers with an endpoint's methods.

    :param endpoint: object whose public methods are called
    """

    def __init__(self, conf, topic, endpoint):
        super().__init__(conf, topic)
        self._endpoint = endpoint

    def _setUp(self):
        super()._setUp()
        server = oslo_messaging.get_rpc_server(
            self._transport, oslo_messaging.Target(
                exchange=routing.EXCHANGE, topic=self._topic, server="library"),
            [self._endpoint], executor="threading")
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        server.start()
