# SPDX-License-Identifier: Apache-2.0
"""A running HTTP facade, as a fixture."""

import fixtures

from placement_rpc.http.facade import Facade as HTTPFacade
from placement_rpc.http.server import Server
from placement_rpc.testing.fixtures import RunningService


class Facade(fixtures.Fixture):
    """A whole service in this process, with an HTTP facade on a free port.

    :param overrides: further options, see :func:`placement_rpc.conf.new_config`
    :ivar url: str, its address
    :ivar running: :class:`RunningService`, whose ``api`` and ``database`` are set here too
    """

    def __init__(self, **overrides):
        super().__init__()
        self._overrides = {"api__auth_strategy": "noauth2", "api__bind_port": 0,
                           "api__threads": 8, "api__max_waiting": 8, **overrides}

    def _setUp(self):
        self.running = self.useFixture(RunningService(**self._overrides))
        self.api, self.database = self.running.api, self.running.database
        self.facade = HTTPFacade(
            self.running.conf, self.api, metrics=self.running.conductor.manager.metrics)
        self.application = self.facade.application
        server = Server(self.facade)
        self.addCleanup(server.stop)
        server.start()
        self.url = server.url
