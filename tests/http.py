# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of the HTTP facade."""

import json

from falcon import testing

from placement_rpc.http.facade import Facade
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


def request(application, method, path, query="", headers=None, body=None):
    """Send a request to a WSGI application without changing it.

    Falcon's own client adds a checker, which requires a content type even without a body.

    :returns: :class:`falcon.testing.Result`
    """
    started = testing.StartResponseMock()
    answer = application(testing.create_environ(
        path, query, headers=headers, body=body or "", method=method), started)
    return testing.Result(answer, started.status, started.headers)


class HTTPTest(base.TestCase):
    """A facade on a service in this process; requests go through WSGI without a socket."""

    options = {}
    #: the microversion of requests that do not name one
    version = "1.4"

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService(
            **{"transport": "local", "api__auth_strategy": "noauth2", **self.options}))
        self.api, self.database = self.running.api, self.running.database
        self.configure(self.running.conf)
        self.facade = Facade(self.running.conf, self.api)
        self.addCleanup(self.facade.close)

    def configure(self, conf):
        """Set options that ``options`` cannot set; subclasses override this."""

    def send(self, method, path, body=None, version=None, token="admin", **headers):
        """Send a request; ``body`` is JSON, or bytes as they are.

        :returns: :class:`falcon.testing.Result`
        """
        sent = {"OpenStack-API-Version": f"placement {version or self.version}"}
        if token is not None:
            sent["X-Auth-Token"] = token
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        for name, value in headers.items():
            sent.pop(name.replace("_", "-"), None)
            if value is not None:
                sent[name.replace("_", "-")] = value
        path, _, query = path.partition("?")
        return request(self.facade.application, method, path, query, sent, body)

    def get(self, path, status=200, **how):
        """Send a GET and return the JSON of its answer."""
        answer = self.send("GET", path, **how)
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.json

    def make(self, name=None, **inventories):
        """Create a provider with inventories, each a dict of values; return its uuid."""
        uuid = base.new_uuid()
        self.api.create_provider(None, name or f"provider {uuid}", uuid)
        if inventories:
            self.api.set_inventory(None, uuid, [
                base.inventory(resource_class, values)
                for resource_class, values in inventories.items()])
        return uuid

    def refused(self, status, answer):
        """Check an error's document, and return its only error."""
        self.assertEqual(status, answer.status_code, answer.text)
        self.assertEqual("application/json", answer.headers["content-type"])
        error, = answer.json["errors"]
        self.assertEqual(status, error["status"])
        self.assertEqual(answer.headers["x-openstack-request-id"], error["request_id"])
        for name in ("title", "detail", "code"):
            self.assertTrue(error[name])
        return error
