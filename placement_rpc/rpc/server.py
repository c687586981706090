# SPDX-License-Identifier: Apache-2.0
"""The library's RPC server and client, for transports other than RabbitMQ."""

import concurrent.futures
import threading

import oslo_messaging
from oslo_messaging.rpc import dispatcher as rpc_dispatcher
from oslo_messaging.rpc import server as rpc_server

from placement_rpc import exception
from placement_rpc.rpc.dispatcher import Dispatcher
from placement_rpc.rpc.envelope import ALLOWED_REMOTE_MODULES
from placement_rpc.rpc.routing import EXCHANGE, TOPIC
from placement_rpc.rpc.serializer import Serializer
from placement_rpc.versions import contract, releases


def get_transport(conf, url=None):
    """A connection to the bus.

    :param conf: :class:`oslo_config.cfg.ConfigOpts` made by :mod:`placement_rpc.conf`
    :param url: str, instead of the configured ``transport_url``
    """
    return oslo_messaging.get_rpc_transport(
        conf, url=url, allowed_remote_exmods=ALLOWED_REMOTE_MODULES)


def check_transport(conf):
    """:raises oslo_messaging.DriverLoadFailure: for a kind of bus that there is not

    :raises oslo_messaging.InvalidTransportURL: for an address that is none
    """
    get_transport(conf).cleanup()


class _Expected(rpc_dispatcher.ExpectedException):
    """An error for the client, which the library neither logs nor sends a traceback of."""

    def __init__(self, error):
        error.__cause__ = error.__context__ = None
        self.exc_info = (type(error), error.with_traceback(None), None)


class LibraryDispatcher(rpc_dispatcher.RPCDispatcher):
    """What the library's server calls: hands each message to a :class:`Dispatcher`.

    The library starts a heartbeat thread before it knows whether the method exists, and never
    ends that thread if it does not; here the method is looked up first.
    """

    def __init__(self, endpoint, release, callers):
        super().__init__([endpoint], Serializer(), rpc_dispatcher.ExplicitRPCAccessPolicy)
        self._dispatcher = Dispatcher(endpoint, release, callers)

    def dispatch(self, incoming):
        message = incoming.message
        try:
            if not isinstance(message, dict):
                raise exception.UnsupportedCall(reason="The message is not a mapping")
            return self._dispatcher.answer(
                message.get("version", "1.0"), message.get("method"), incoming.ctxt,
                message.get("args", {}), message.get("namespace"))
        except exception.PlacementException as error:
            raise _Expected(error) from None


class BoundedServer(rpc_server.RPCServer):
    """An RPC server that takes in a bounded number of calls.

    The library acknowledges a message when it arrives and puts it into a queue without end; a
    killed process takes all of them along. Here the thread that reads from the broker waits
    for a free place first, so that what can not be worked on stays in the broker.

    :param places: int, how many calls may be under way
    """

    def __init__(self, transport, target, dispatcher, places):
        super().__init__(transport, target, dispatcher, executor="threading")
        # The library's own pool polls its queue once a second, and ends no sooner.
        self._executor_cls = concurrent.futures.ThreadPoolExecutor
        self._free = threading.Semaphore(places)
        self._counting = threading.Lock()
        #: int, how many calls may be under way
        self.places = places
        #: int, how many are
        self.busy = 0

    def begin(self):
        """Start taking in calls."""
        self.start(override_pool_size=self.places)

    def _on_incoming(self, incoming):
        self._free.acquire()
        self._count(1)
        try:
            self._work_executor.submit(self._process, incoming)
        except BaseException:
            self._done()
            raise

    def _process(self, incoming):
        try:
            self._process_incoming(incoming)
        finally:
            self._done()

    def _done(self):
        self._count(-1)
        self._free.release()

    def _count(self, change):
        with self._counting:
            self.busy += change


def get_server(conf, transport, endpoint, server, topic=TOPIC, release=releases.CURRENT,
               callers=None, threads=None):
    """A server of the contract.

    :param endpoint: :class:`placement_rpc.manager.Manager`
    :param server: str, name of this process among the servers of the topic
    :param release: :class:`placement_rpc.versions.releases.Release` that is kept to
    :param callers: as of :class:`Dispatcher`
    :param threads: int, how many calls it takes in; None for ``[conductor] threads``
    """
    target = oslo_messaging.Target(exchange=EXCHANGE, topic=topic, server=server)
    return BoundedServer(
        transport, target, LibraryDispatcher(endpoint, release, callers),
        threads or conf.conductor.threads)


def get_client(transport, topic=TOPIC):
    """A client of the contract.

    Sending to a topic that nobody ever listened on is an error at once, instead of a time-out.

    """
    target = oslo_messaging.Target(
        exchange=EXCHANGE, topic=topic, version=contract.RPC_VERSION)
    return oslo_messaging.get_rpc_client(
        transport, target, serializer=Serializer(),
        transport_options=oslo_messaging.TransportOptions(at_least_once=True))
