# SPDX-License-Identifier: Apache-2.0
"""A process that serves the HTTP facade, and its way to the service."""

import atexit
import logging
import os
import socket
import threading

from placement_rpc import api, exception, manager
from placement_rpc.candidates import search
from placement_rpc.db import api as db
from placement_rpc.db import migration
from placement_rpc.http import errors
from placement_rpc.http.facade import Facade
from placement_rpc.service.heartbeat import Heartbeat
from placement_rpc.upgrade import startup_check

LOG = logging.getLogger(__name__)
BINARY = "placement-rpc-api"


class HTTPService:
    """What a process of the HTTP facade has open.

    :param conf: :class:`oslo_config.cfg.ConfigOpts` made by :mod:`placement_rpc.conf`
    :raises StoreUnavailable: :raises SchemaOutdated: :raises ServiceTooOld: with the local
        transport, where it may not start
    """

    def __init__(self, conf):
        self.conf = conf
        self._ended = threading.Event()
        self._database = self._heartbeat = self._manager = None
        if conf.api.transport == "rpc":
            self._api = api.PlacementAPI(conf=conf, deadline=conf.api.deadline)
        else:
            self._api = api.PlacementAPI(
                "local", conf, manager=self._open(), deadline=conf.api.deadline)
        self.facade = Facade(conf, self._api, is_remote=conf.api.transport == "rpc",
                             metrics=self._manager and self._manager.metrics)
        if self._heartbeat is not None:
            self._heartbeat.beat(started=True)
            self._heartbeat.forget_others()
            threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True).start()

    def _open(self):
        self._database = db.Database(self.conf)
        try:
            migration.check(self._database)
            startup_check.check(self.conf, self._database)
        except BaseException:
            self._database.close()
            raise
        self._manager = manager.Manager(self.conf, self._database)
        self._heartbeat = Heartbeat(
            self.conf, self._manager, BINARY, self.conf.conductor.host or socket.gethostname(),
            os.getpid())
        return self._manager

    def _keep_beating(self):
        self._manager.candidates.try_to_prepare()
        upkeep = search.IndexMaintenance(
            self._manager.candidates, self.conf.candidates.verify_sample)
        while not self._ended.wait(self.conf.conductor.report_interval):
            try:
                self._heartbeat.beat()
                upkeep.step()
            except exception.PlacementException as error:
                LOG.warning("A heartbeat is put off: %s", error)
            except Exception:
                LOG.exception("A heartbeat failed; the next is tried")

    def close(self):
        """Give back what is open."""
        if self._ended.is_set():
            return
        self._ended.set()
        self.facade.close()
        self._api.close()
        if self._database is not None:
            self._heartbeat.goodbye()
            self._database.close()


class Application:
    """A WSGI callable that opens what it needs at the first request of its process.

    Servers load an application and fork then: neither threads nor connections survive that.

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
                LOG.warning("The service can not be opened yet: %s", error)
                return errors.unopened(error, start_response)
        return self._service.facade.application(environ, start_response)

    def _open(self):
        with self._opening:
            if self._pid == os.getpid():
                return
            self._service = HTTPService(self._conf)
            atexit.register(self._service.close)
            self._pid = os.getpid()
