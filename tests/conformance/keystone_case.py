# SPDX-License-Identifier: Apache-2.0
"""The base of the tests with a real keystone: servers behind gunicorn that check its tokens."""

import functools

import fixtures
import requests

from tests import base, keystone_server
from tests.conformance import peer_process, web

OURS, PEER, ON_THE_BUS = "placement_rpc", "openstack-placement", "placement_rpc on the bus"
_TIMEOUT = 60


class Servers(fixtures.Fixture):
    """Servers that check tokens with one keystone; ``urls`` is a dict of name to address.

    :param keystone: :class:`tests.keystone_server.Keystone`
    :param names: the servers
    :param policy: str, the content of the policy file of each; None for none
    :param oslo_policy: dict of options of ``[oslo_policy]``
    :param middleware: options of ``[keystone_authtoken]`` besides those that it needs
    """

    def __init__(self, keystone, names=(OURS, PEER), policy=None, oslo_policy=(), **middleware):
        super().__init__()
        self._keystone, self._names, self._policy = keystone, names, policy
        self._options = {
            "api": {"auth_strategy": "keystone"}, "oslo_policy": dict(oslo_policy),
            "keystone_authtoken": keystone.middleware(**middleware)}

    def _setUp(self):
        self.urls = {name: self._start(name).url for name in self._names}

    def _start(self, name):
        if name == PEER:
            return self.useFixture(web.Upstream(
                durable=False, options=self._options, policy=self._policy))
        if name == ON_THE_BUS:
            return self.useFixture(peer_process.OnRealServers(
                self._options, self._policy, self._keystone.token("nova", "service")))
        return self.useFixture(peer_process.Facade(self._options, self._policy))


@functools.cache
def shared():
    """Return the :class:`Servers` of this test process, with the defaults; started when needed."""
    return keystone_server.started(Servers(keystone_server.shared()))


class KeystoneTest(base.TestCase):
    """A test of servers that check tokens."""

    # Each starts several programs.
    time_limit = 300
    version = "1.39"

    def setUp(self):
        super().setUp()
        self.connections = requests.Session()
        self.addCleanup(self.connections.close)

    def send(self, url, request, token=None, body=None, version=None, **headers):
        """Send a request.

        :param url: str, the address of the server
        :param request: str, method and path separated by a space
        :returns: :class:`requests.Response`
        """
        method, path = request.split(" ", 1)
        return self.connections.request(method, url + path, json=body, timeout=_TIMEOUT, headers={
            "OpenStack-API-Version": f"placement {version or self.version}",
            **({} if token is None else {"X-Auth-Token": token}),
            **{name.replace("_", "-"): value for name, value in headers.items()}})

    def statuses(self, servers, request, token=None, **how):
        """Return the status of each server's answer: a dict of name to int."""
        return {name: self.send(url, request, token, **how).status_code
                for name, url in servers.urls.items()}

    def check_status(self, status, servers, request, token=None, **how):
        """Check that each server answers a request with a status."""
        self.assertEqual(dict.fromkeys(servers.urls, status),
                         self.statuses(servers, request, token, **how))
