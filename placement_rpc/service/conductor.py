# SPDX-License-Identifier: Apache-2.0
"""The conductor's processes: start, heartbeat, drain, reload."""

import logging
import os
import socket
import uuid

import cotyledon

from placement_rpc import manager
from placement_rpc.accounting import traits
from placement_rpc.amqp.broker import Broker
from placement_rpc.db import api as db
from placement_rpc.db import schema_version, standards
from placement_rpc.notifications.publishers import get_publisher
from placement_rpc.notifications.relay import Relay
from placement_rpc.objects import class_names
from placement_rpc.rpc import batch_server, routing
from placement_rpc.service import collectors, command_consumer, interpreter, readiness
from placement_rpc.service.attempts import Attempts
from placement_rpc.service.fleet_gauges import FleetGauges
from placement_rpc.service.heartbeat import Heartbeat
from placement_rpc.service.housekeeping import StoreHousekeeping
from placement_rpc.upgrade import startup_check
from placement_rpc.versions import contract

LOG = logging.getLogger(__name__)
BINARY = "placement-rpc-conductor"


class Conductor:
    """The parts of the service in one process: RPC servers, database, relay, heartbeat.

    :param conf: :class:`oslo_config.cfg.ConfigOpts` made by :mod:`placement_rpc.conf.service`
    :param worker: int, its number among the workers of this machine
    :param binary: str, the program's name in the services table
    :param topic: str, the topic whose request queues it consumes
    """

    def __init__(self, conf, worker=0, binary=BINARY, topic=routing.TOPIC):
        self.conf = conf
        self.host = conf.conductor.host or socket.gethostname()
        self._binary, self._worker = binary, worker
        self._topic = topic
        # The name under which this process holds leases, different in each process.
        self._holder = f"{self.host}.{uuid.uuid4().hex[:16]}"
        self._broker = Broker.of(conf)
        self.database = self.manager = None
        #: of :mod:`placement_rpc.notifications.publishers`; an embedded service's events are read
        #: from its :class:`~placement_rpc.notifications.publishers.MemoryPublisher`
        self.publisher = get_publisher(conf, routing.EXCHANGE)
        self.relay = self.commands = self._heartbeat = self._housekeeping = None
        #: dict of ``calls`` or a request queue to its server; empty without RabbitMQ
        self.servers = {}
        self._end_metrics = lambda: None

    def start(self):
        """Open the database, check its schema, and begin to answer calls.

        :raises StoreUnavailable: if the database cannot be reached
        :raises SchemaOutdated: if its schema is not that of this release
        :raises ServiceTooOld: if a live service is too old to run alongside this release
        :raises InvalidInput: if two requests of ``[headroom]`` have the same name
        """
        self.database = db.Database(self.conf)
        schema_version.check(self.database)
        startup_check.check(self.conf, self.database)
        standards.insert_missing(self.database, class_names.STANDARD_IDS, traits.STANDARD)
        self.manager = manager.Manager(self.conf, self.database)
        self.manager.candidates.index.prepare()
        self.servers = self._request_servers() if self._broker else {}
        self.relay = Relay(
            self.conf, self.database, self.publisher, self._holder)
        self._show_metrics()
        self.database.after_events(self.relay.wake)
        self._heartbeat = Heartbeat(
            self.conf, self.manager, self._binary, self.host, self._worker)
        self._heartbeat.start()
        for server in self.servers.values():
            server.begin()
        self.relay.start()
        if self._broker is not None:
            self.commands = command_consumer.CommandConsumer(
                self.conf, self._broker, self.manager, self._topic)
            self.commands.start()
        self._housekeeping = StoreHousekeeping(self.conf, self.manager, self._holder)
        self._housekeeping.start()
        LOG.info("Worker %s of %s answers calls", self._worker, self.host)

    def _show_metrics(self):
        self.manager.metrics.watch(
            lambda: collectors.state(self.database, self.manager.candidates.index, self.servers,
                                     self.relay, self.conf.conductor.service_down_time))
        self.manager.metrics.watch(FleetGauges(
            self.manager.candidates.index, self.conf.headroom.request or ()), of_fleet=True)
        options = self.conf.metrics
        if options.port:
            try:
                self._end_metrics = self.manager.metrics.serve(
                    options.host, options.port + self._worker)
            except OSError as error:
                # The worker can answer calls without metrics.
                LOG.error("Cannot serve metrics on port %d: %s",
                          options.port + self._worker, error)

    def _request_servers(self):
        """Return the servers on RabbitMQ: dict of request queue to server."""
        threads = {None: self.conf.conductor.threads, contract.CLAIMS: 0,
                   contract.FLEET: self.conf.conductor.fleet_threads}
        name = f"{self.host}.{self._binary}.{self._worker}"
        names = {queue: [routing.name(self._topic, queue)] for queue in threads}
        # A queue of its own, for calls to this worker only.
        names[None].append(f"{self._topic}.{name}")
        return {queue or "calls": batch_server.BatchServer(
            self.conf, self._broker, self.manager, names[queue], number, Attempts(self.database),
            queue)
            for queue, number in threads.items()}

    def check_database(self):
        """Check that the database can be reached; see :meth:`Heartbeat.check_database`.

        :raises PlacementException: if it cannot
        """
        self._heartbeat.check_database()

    def stop(self):
        """Accept no more calls, finish the accepted ones, and close."""
        consumers = list(self.servers.values())
        if self.commands is not None:
            consumers.append(self.commands)
        # All are stopped before the first is waited for, so that they drain at the same time.
        for consumer in consumers:
            consumer.stop()
        for consumer in consumers:
            consumer.wait()
        if self.relay is not None:
            self.relay.stop()
        self._end_metrics()
        if self._housekeeping is not None:
            self._housekeeping.stop()
        if self.database is not None:
            if self._heartbeat is not None:
                self._heartbeat.stop()
            self.database.close()


class ConductorWorker(cotyledon.Service):
    """A worker process of ``placement-rpc-conductor``.

    On SIGTERM it drains. On SIGHUP it drains too, and the parent starts it again with the
    configuration as it is then.
    """

    name = "worker"

    def __init__(self, worker_id, conf, readiness):
        super().__init__(worker_id)
        self._readiness = readiness
        self.graceful_shutdown_timeout = conf.conductor.drain_timeout
        self._conductor = Conductor(conf, worker=worker_id)

    def run(self):
        self._conductor.start()
        self._readiness.report()

    def terminate(self):
        LOG.info("Draining worker %s", self.worker_id)
        self._conductor.stop()


def run_conductor(conf):
    """Run the conductor's workers until a signal ends them."""
    # The workers inherit it.
    interpreter.prefer_quick_requests()
    workers = cotyledon.ServiceManager(
        graceful_shutdown_timeout=conf.conductor.drain_timeout)
    service_id = workers.add(
        ConductorWorker, workers=conf.conductor.workers or os.cpu_count(),
        args=(conf, readiness.Readiness()))

    def reload():
        LOG.info("Reloading the configuration")
        conf.reload_config_files()
        workers.reconfigure(service_id, conf.conductor.workers or os.cpu_count())

    workers.register_hooks(on_reload=reload)
    workers.run()


def prepare_store(conf):
    """Create the schema or bring it up to this release; for the embedded default."""
    # Alembic takes long to load, and other conductors do without it.
    from placement_rpc.db import migration

    database = db.Database(conf, create=True)
    try:
        return migration.sync(database, class_names.STANDARD_IDS, traits.STANDARD)
    finally:
        database.close()
