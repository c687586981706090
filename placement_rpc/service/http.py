# SPDX-License-Identifier: Apache-2.0
"""A process of the HTTP facade: its client of the service, its database and its heartbeat."""

import atexit
import logging
import os
import socket
import threading

from placement_rpc import api, exception, manager
from placement_rpc.db import api as db
from placement_rpc.db import schema_version
from placement_rpc.http import errors, health
from placement_rpc.http.facade import Facade
from placement_rpc.service import interpreter
from placement_rpc.service.fleet_gauges import FleetGauges
from placement_rpc.service.heartbeat import Heartbeat
from placement_rpc.service.housekeeping import Housekeeping
from placement_rpc.upgrade import startup_check

LOG = logging.getLogger(__name__)
BINARY = "placement-rpc-api"


class HTTPService:
    """The resources that a process of the HTTP facade has open.

    The errors occur with the local transport only.

    :param conf: :class:`oslo_config.cfg.ConfigOpts` made by :mod:`placement_rpc.conf.facade`
    :raises StoreUnavailable: if the database cannot be reached
    :raises SchemaOutdated: if its schema is not that of this release
    :raises ServiceTooOld: if a live service is too old to run alongside this release
    :raises InvalidInput: if two requests of ``[headroom]`` have the same name
    """

    def __init__(self, conf):
        interpreter.prefer_quick_requests()
        self.conf = conf
        self._is_closed = False
        self._database = self._heartbeat = self._housekeeping = self._manager = None
        if conf.api.transport == "rpc":
            self._api = api.PlacementAPI(conf=conf, deadline=conf.api.deadline)
        else:
            self._api = api.PlacementAPI(
                "local", conf, manager=self._open(), deadline=conf.api.deadline)
        self.facade = Facade(conf, self._api, is_remote=conf.api.transport == "rpc",
                             metrics=self._manager and self._manager.metrics,
                             check=self._check)
        if self._heartbeat is not None:
            self._heartbeat.start()
            self._heartbeat.forget_others()
            # Requests are answered meanwhile, except those that need the index.
            self._manager.candidates.index.begin()
            self._housekeeping.start()

    def _open(self):
        self._database = db.Database(self.conf)
        try:
            schema_version.check(self._database)
            startup_check.check(self.conf, self._database)
            self._manager = manager.Manager(self.conf, self._database)
            self._manager.metrics.watch(FleetGauges(
                self._manager.candidates.index, self.conf.headroom.request or ()), of_fleet=True)
        except BaseException:
            self._database.close()
            raise
        self._heartbeat = Heartbeat(
            self.conf, self._manager, BINARY, self.conf.conductor.host or socket.gethostname(),
            os.getpid())
        self._housekeeping = Housekeeping(self.conf, self._manager.candidates.index)
        return self._manager

    def _check(self):
        """Check that requests can be answered now.

        :raises PlacementException: if the database cannot be reached; or, with the transport
            ``rpc``, if no service answers
        """
        if self._heartbeat is not None:
            self._heartbeat.check_database()
        else:
            # It ends before the request for the result does, so that its reason is known.
            self._api.ping(None, timeout=0.8 * health.PATIENCE)

    def close(self):
        """Close everything."""
        if self._is_closed:
            return
        self._is_closed = True
        self.facade.close()
        self._api.close()
        if self._database is not None:
            # First, so that the process does not count as alive while its last step ends.
            self._heartbeat.stop()
            self._housekeeping.stop()
            self._database.close()


class Application:
    """A WSGI callable that opens its service at the first request of each process.

    Servers load an application before they fork, and neither threads nor connections survive a
    fork.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """

    def __init__(self, conf):
        self._conf = conf
        self._opening = threading.Lock()
        self._pid = self._service = None

    def __call__(self, environ, start_response):
        if self._pid != os.getpid():
            try:
                self._open()
            except exception.PlacementException as error:
                LOG.warning("Cannot open the service yet: %s", error)
                return errors.unopened(error, start_response)
        return self._service.facade.application(environ, start_response)

    def _open(self):
        with self._opening:
            if self._pid == os.getpid():
                return
            self._service = HTTPService(self._conf)
            atexit.register(self._service.close)
            self._pid = os.getpid()
