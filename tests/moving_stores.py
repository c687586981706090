# SPDX-License-Identifier: Apache-2.0
"""Stores that a cloud is moved to, and the commands that move it."""

import json

import fixtures
import webob

from placement_rpc.cmd import manage
from placement_rpc.testing import facade
from placement_rpc.testing import fixtures as placement_fixtures
from tests import programs, servers
from tests.placement_cloud import LATEST_MINOR, Refused


class MovedTo(fixtures.Fixture):
    """An empty store of this service; ``url`` is its SQLAlchemy URL, ``database`` is open.

    :param kind: one of :data:`tests.servers.DATABASES`
    """

    def __init__(self, kind="sqlite"):
        super().__init__()
        self._kind = kind

    def _setUp(self):
        store = self.useFixture(placement_fixtures.Store(servers.new_database(self._kind)))
        self.url, self.database = store.conf.database.connection, store.database

    def run(self, *arguments):
        """Run ``placement-rpc-manage placement`` with this store; return its result.

        :returns: :class:`tests.programs.Done`
        """
        return programs.run(manage, "--database", self.url, "placement", *arguments)

    def done(self, *arguments, code=0):
        """Run a command as :meth:`run` does, and return what it has printed.

        :raises AssertionError: if its exit code is another one
        """
        done = self.run(*arguments)
        if done.code != code:
            raise AssertionError(
                f"{' '.join(arguments)}: exit code {done.code}\n{done.stdout}\n{done.stderr}")
        return done.stdout + done.stderr


class Serving(fixtures.Fixture):
    """This service, in this process, on a store that others have written.

    :param url: str, SQLAlchemy URL of the store
    """

    def __init__(self, url):
        super().__init__()
        self._url = url

    def _setUp(self):
        self._application = self.useFixture(facade.Facade(
            database_url=self._url)).application

    def send(self, method, path, body=None, minor=LATEST_MINOR):
        """Send a request and return the document of its answer.

        :raises Refused: if its status is an error
        """
        request = webob.Request.blank(path, method=method, headers={
            "x-auth-token": "admin", "openstack-api-version": f"placement 1.{minor}"})
        if body is not None:
            request.content_type, request.body = "application/json", json.dumps(body).encode()
        answer = request.get_response(self._application)
        if answer.status_int >= 400:
            raise Refused(f"{method} {path}: {answer.status_int} {answer.text}")
        return json.loads(answer.body) if answer.body else None
