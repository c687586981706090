# SPDX-License-Identifier: Apache-2.0
"""The bus: transports, what is put on it, and a server that takes in no more than it can do."""

import concurrent.futures
import contextlib
import functools
import inspect
import logging
import re
import threading
import uuid

import oslo_messaging
from oslo_messaging.rpc import dispatcher as rpc_dispatcher
from oslo_messaging.rpc import server as rpc_server

from placement_rpc import exception, objects
from placement_rpc.context import RequestContext, versions_of
from placement_rpc.objects import base
from placement_rpc.stages import stage
from placement_rpc.upgrade import contract, manifests

LOG = logging.getLogger(__name__)

_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}", re.ASCII)

EXCHANGE = "placement"
TOPIC = "placement"

# Errors of these modules are rebuilt by the receiver; any other arrives as a RemoteError.
ALLOWED_REMOTE_MODULES = [
    "placement_rpc.exception",
    "oslo_messaging.rpc.dispatcher",
    "oslo_versionedobjects.exception",
]


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


class Serializer(oslo_messaging.Serializer):
    """Objects and contexts, to and from what travels."""

    def __init__(self):
        objects.register_all()
        self._entities = base.Serializer()

    def serialize_entity(self, ctxt, entity):
        return self._entities.serialize_entity(ctxt, entity, ctxt.receiver)

    def deserialize_entity(self, ctxt, entity):
        return self._entities.deserialize_entity(ctxt, entity)

    def serialize_context(self, ctxt):
        return ctxt.to_dict()

    def deserialize_context(self, ctxt):
        return RequestContext.from_dict(ctxt)


class _Expected(rpc_dispatcher.ExpectedException):
    """Carries an error to the caller without logging it, and without any trace of ours."""

    def __init__(self, error):
        error.__cause__ = error.__context__ = None
        self.exc_info = (type(error), error.with_traceback(None), None)


class Dispatcher(rpc_dispatcher.RPCDispatcher):
    """Finds the method, and turns everything that goes wrong into the project's errors.

    The library starts a heartbeat thread before it knows whether there is such a method, and
    never ends it where there is none; here that is settled first.

    :param endpoint: object whose ``exposed`` methods may be called
    :param release: :class:`placement_rpc.upgrade.manifests.Release` that is kept to
    :param callers: :class:`placement_rpc.upgrade.callers.Callers`; None where nobody asks
    """

    def __init__(self, endpoint, release=manifests.CURRENT, callers=None):
        super().__init__([endpoint], Serializer(), rpc_dispatcher.ExplicitRPCAccessPolicy)
        self._endpoint = endpoint
        self._metrics = getattr(endpoint, "metrics", None)
        self._release = release
        self._callers = callers
        self._pinned = release is not manifests.CURRENT
        self._target = oslo_messaging.Target(version=release.contract)

    def dispatch(self, incoming):
        message = incoming.message
        try:
            if not isinstance(message, dict):
                raise exception.UnsupportedCall(reason="The message is not a mapping")
            self._check_version(message.get("version", "1.0"), message.get("namespace"))
            self._check_method(message.get("method"))
            if incoming.client_timeout and isinstance(incoming.ctxt, dict):
                incoming.ctxt.setdefault("manifest", message.get("version", "1.0"))
                return super().dispatch(incoming)
            return self.invoke(message["method"], incoming.ctxt, message.get("args", {}),
                               message.get("version", "1.0"))
        except exception.PlacementException as error:
            raise _Expected(error) from None

    def _check_version(self, version, namespace):
        if namespace is not None or not _VERSION.fullmatch(str(version)) or (
                not self._is_compatible(self._target, str(version))):
            raise exception.UnsupportedCall(
                reason=f"Version {str(version)[:16]} of the contract is not supported here; "
                       f"{self._release.contract} is the newest")

    def _check_method(self, method):
        if not isinstance(method, str) or not self.access_policy.is_allowed(
                self._endpoint, method) or (self._pinned and contract.missing(
                    method, {}, self._release)):
            raise exception.UnsupportedCall(reason=f"There is no method {str(method)[:64]!r}")

    def _do_dispatch(self, endpoint, method, ctxt, args):
        return self.invoke(method, ctxt, args)

    def arguments(self, version, method, ctxt, args, namespace=None):
        """What a message asks for, checked but not done.

        :param version: str, of the contract, that the message was made in
        :returns: tuple of :class:`placement_rpc.context.RequestContext` and dict of arguments
        :raises PlacementException: when there is no such call, or it has other arguments
        """
        self._check_version(version, namespace)
        self._check_method(method)
        try:
            return self._arguments(method, ctxt, args, version)
        except RecursionError:
            raise exception.InvalidInput(
                what="args", reason="they are nested too deeply") from None

    def answer(self, version, method, ctxt, args, namespace=None):
        """Run what a message asks for; as of :meth:`arguments` and :meth:`invoke`."""
        self._check_version(version, namespace)
        return self.invoke(method, ctxt, args, version)

    def _arguments(self, method, ctxt, args, version=None):
        context = self.serializer.deserialize_context(ctxt)
        if context.manifest is None and version is not None:
            # Whoever does not say what it reads reads what it speaks.
            context.manifest = str(version)
            context.receiver = versions_of(context.manifest)
        if not isinstance(args, dict):
            raise exception.InvalidInput(what="args", reason="they are not a mapping")
        if self._callers is not None:
            self._callers.note(context.manifest)
        if self._pinned:
            context.receiver = manifests.lower(self._release.versions, context.receiver)
            base.check_versions(args, self._release.versions)
        arguments = {name: self.serializer.deserialize_entity(context, value)
                     for name, value in args.items()}
        _check_arguments(getattr(self._endpoint, method).__func__, method, arguments)
        return context, arguments

    def invoke(self, method, ctxt, args, version=None):
        """Run one call.

        :param method: str, name of an exposed method
        :param ctxt: dict, the context as it travels
        :param version: str, of the contract, that the call was made in; None for this release's
        :param args: dict of argument name to value, as they travel
        :returns: the result, as it travels
        :raises PlacementException: and nothing else
        """
        self._check_method(method)
        with self._watched(method, args):
            return self._invoke(method, ctxt, args, version)

    def _watched(self, method, args):
        if self._metrics is None:
            return contextlib.nullcontext()
        return self._metrics.watched(
            method, args.get("request_id") if isinstance(args, dict) else None)

    def _invoke(self, method, ctxt, args, version):
        try:
            with stage("reading"):
                context, arguments = self._arguments(method, ctxt, args, version)
            result = getattr(self._endpoint, method)(context, **arguments)
            with stage("writing"):
                return self.serializer.serialize_entity(context, result)
        except exception.PlacementException:
            raise
        except RecursionError:
            raise exception.InvalidInput(
                what="args", reason="they are nested too deeply") from None
        except Exception as error:
            incident = str(uuid.uuid4())
            LOG.exception("Incident %s: %s failed", incident, method)
            raise exception.RemoteFailure(method=method, incident=incident) from error


@functools.cache
def _signature(function):
    return inspect.signature(function)


def _check_arguments(function, method, arguments):
    try:
        _signature(function).bind(None, None, **arguments)
    except TypeError as error:
        raise exception.UnsupportedCall(reason=f"{method}: {error}") from None


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


def get_server(conf, transport, endpoint, server, topic=TOPIC, release=manifests.CURRENT,
               callers=None, threads=None):
    """A server of the contract.

    :param endpoint: :class:`placement_rpc.manager.Manager`
    :param server: str, name of this process among the servers of the topic
    :param release: :class:`placement_rpc.upgrade.manifests.Release` that is kept to
    :param callers: as of :class:`Dispatcher`
    :param threads: int, how many calls it takes in; None for ``[conductor] threads``
    """
    target = oslo_messaging.Target(exchange=EXCHANGE, topic=topic, server=server)
    return BoundedServer(
        transport, target, Dispatcher(endpoint, release, callers),
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
