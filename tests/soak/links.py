# SPDX-License-Identifier: Apache-2.0
"""The network between one process and a server, or the nodes of a cluster."""

import contextlib
import re

import fixtures

from tests.integration.proxy import Proxy


class Links(fixtures.Fixture):
    """Proxies in front of the nodes.

    :param url: str, at which the nodes are reached without them
    :param ports: list of int, those of the nodes; empty for nodes without links
    """

    def __init__(self, url, ports):
        super().__init__()
        self._url, self._ports = url, ports

    def _setUp(self):
        self._proxies = [self.useFixture(Proxy(port)) for port in self._ports]
        others = {str(port): str(proxy.port)
                  for port, proxy in zip(self._ports, self._proxies, strict=True)}
        #: The URL at which the nodes are reached over the proxies.
        self.url = self._url
        if others:
            # In a query, %3A precedes a port.
            self.url, found = re.subn(
                rf"(?<=:|A)({'|'.join(others)})\b", lambda port: others[port[0]], self._url)
            if found != len(others):
                raise ValueError(f"{self._url} has not all ports of {self._ports}")

    @contextlib.contextmanager
    def are_cut(self):
        """Forward nothing, and close nothing, within the block."""
        for each in self._proxies:
            each.cut()
        try:
            yield
        finally:
            for each in self._proxies:
                each.mend()

    @contextlib.contextmanager
    def are_delayed(self, seconds):
        """Forward everything later within the block."""
        for each in self._proxies:
            each.delay(seconds)
        try:
            yield
        finally:
            for each in self._proxies:
                each.delay(0)
