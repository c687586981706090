# SPDX-License-Identifier: Apache-2.0
"""The bus: transports, what is put on it, and a server that takes in no more than it can do."""

import contextlib
import functools
import inspect
import logging
import re
import uuid

import oslo_messaging
from oslo_messaging.rpc import dispatcher as rpc_dispatcher

from placement_rpc import exception
from placement_rpc.context import versions_of
from placement_rpc.objects import base
from placement_rpc.rpc.serializer import Serializer
from placement_rpc.telemetry.spans import span
from placement_rpc.versions import contract, releases

LOG = logging.getLogger(__name__)
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}", re.ASCII)


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
    :param release: :class:`placement_rpc.versions.releases.Release` that is kept to
    :param callers: :class:`placement_rpc.versions.seen_clients.SeenClients`; None to keep no track
    """

    def __init__(self, endpoint, release=releases.CURRENT, callers=None):
        super().__init__([endpoint], Serializer(), rpc_dispatcher.ExplicitRPCAccessPolicy)
        self._endpoint = endpoint
        self._metrics = getattr(endpoint, "metrics", None)
        self._release = release
        self._callers = callers
        self._pinned = release is not releases.CURRENT
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
        if self._endpoint.call_of(method) is None or (self._pinned and contract.missing(
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
            context.receiver = releases.lower(self._release.versions, context.receiver)
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
            with span("reading"):
                context, arguments = self._arguments(method, ctxt, args, version)
            result = self._endpoint.run(context, method, arguments)
            with span("writing"):
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
