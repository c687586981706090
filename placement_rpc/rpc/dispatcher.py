# SPDX-License-Identifier: Apache-2.0
"""The dispatcher: finds the method that a message calls, runs it, and renders its result."""

import contextlib
import functools
import inspect
import logging
import re
import uuid
from collections.abc import Callable
from typing import Any

from placement_rpc import exception
from placement_rpc.context import RequestContext, versions_of
from placement_rpc.objects import base
from placement_rpc.rpc.serializer import Serializer
from placement_rpc.telemetry.spans import span
from placement_rpc.versions import contract, releases
from placement_rpc.versions.releases import Release
from placement_rpc.versions.seen_clients import SeenClients

LOG = logging.getLogger(__name__)
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}", re.ASCII)


class Dispatcher:
    """Runs calls on an endpoint; every failure is one of the project's errors.

    :param endpoint: object whose ``exposed`` methods may be called
    :param release: the release whose calls and object versions are accepted
    :param seen_clients: records the versions that clients speak; None to record nothing
    """

    def __init__(self, endpoint: Any, release: Release = releases.CURRENT,
                 seen_clients: SeenClients | None = None):
        self.serializer = Serializer()
        self._endpoint = endpoint
        self._metrics = getattr(endpoint, "metrics", None)
        self._release = release
        self._seen_clients = seen_clients
        self._pinned = release is not releases.CURRENT

    def arguments(self, version: Any, method: Any, ctxt: Any, args: Any,
                  namespace: Any = None) -> tuple[RequestContext, dict[str, Any]]:
        """Read and check the call in a message, without running it.

        :param version: contract version that the message was made in
        :param method: name of the method
        :param ctxt: the context as it travels
        :param args: dict of argument name to value, as they travel
        :param namespace: namespace of the method; only None is served
        :returns: the context and the deserialized arguments
        :raises UnsupportedCall: if there is no such call, or it has other arguments
        :raises InvalidInput: if the context or an argument cannot be read
        """
        self._check_version(version, namespace)
        self._find(method)
        try:
            return self._arguments(method, ctxt, args, version)
        except RecursionError:
            raise _too_deep() from None

    def answer(self, version: Any, method: Any, ctxt: Any, args: Any,
               namespace: Any = None) -> Any:
        """Run the call in a message; parameters as in :meth:`arguments`.

        :returns: the result, as it travels
        :raises PlacementException: and no other error
        """
        self._check_version(version, namespace)
        return self.invoke(method, ctxt, args, version)

    def invoke(self, method: Any, ctxt: Any, args: Any, version: Any = None) -> Any:
        """Run one call.

        :param method: name of an exposed method
        :param ctxt: the context as it travels; or that of a client in this process, made for this
            call
        :param args: dict of argument name to value, as they travel
        :param version: contract version that the call was made in; None for this release's
        :returns: the result, as it travels; to a client in this process, of the same release, the
            object that a read has made
        :raises PlacementException: and no other error
        """
        self._find(method)
        with self._watched(method, args):
            return self._invoke(method, ctxt, args, version)

    def _check_version(self, version, namespace):
        if namespace is not None:
            raise exception.UnsupportedCall(
                reason=f"There is no namespace {str(namespace)[:64]!r}; calls have none")
        if not self._is_served(str(version)):
            raise exception.UnsupportedCall(
                reason=f"Version {str(version)[:16]} of the contract is not supported here; "
                       f"{self._release.contract} is the newest")

    def _is_served(self, version):
        if not _VERSION.fullmatch(version):
            return False
        asked, newest = releases.number(version), self._release.number
        return asked[0] == newest[0] and asked <= newest

    def _find(self, method) -> Callable:
        """Return the function of an exposed method.

        :raises UnsupportedCall: if the endpoint, or the release it is pinned to, has none
        """
        if self._endpoint.call_of(method) is None or (
                self._pinned and contract.missing(method, {}, self._release)):
            raise exception.UnsupportedCall(reason=f"There is no method {str(method)[:64]!r}")
        return getattr(type(self._endpoint), method)

    def _arguments(self, method, ctxt, args, version=None):
        context = ctxt if isinstance(ctxt, RequestContext) else (
            self.serializer.deserialize_context(ctxt))
        if context.manifest is None and version is not None:
            # A client that does not name the versions it reads gets those of its contract.
            context.manifest = str(version)
            context.receiver = versions_of(context.manifest)
        if not isinstance(args, dict):
            raise exception.InvalidInput(what="args", reason="they are not a mapping")
        if self._seen_clients is not None:
            self._seen_clients.note(context.manifest)
        if self._pinned:
            if newer := contract.newer_arguments(method, args, self._release):
                raise exception.UnsupportedCall(
                    reason=f"The service is pinned to release {self._release.name}, which has no "
                           f"{', '.join(newer)}")
            context.receiver = releases.lower(self._release.versions, context.receiver)
            base.check_versions(args, self._release.versions)
        arguments = {name: self.serializer.deserialize_entity(context, value)
                     for name, value in args.items()}
        _check_arguments(self._find(method), method, arguments)
        return context, arguments

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
            if ctxt is context and context.receiver is None and "request_id" not in arguments:
                # What a change returns may be kept, as a stored outcome.
                return result
            with span("writing"):
                return self.serializer.serialize_entity(context, result)
        except exception.PlacementException:
            raise
        except RecursionError:
            raise _too_deep() from None
        except Exception as error:
            incident = str(uuid.uuid4())
            LOG.exception("Incident %s: %s failed", incident, method)
            raise exception.RemoteFailure(method=method, incident=incident) from error


def _too_deep():
    return exception.InvalidInput(what="args", reason="they are nested too deeply")


@functools.cache
def _signature(function):
    """Return the signature of a method, and the names of all and of the required arguments."""
    signature = inspect.signature(function)
    # Without self and the context.
    parameters = list(signature.parameters.values())[2:]
    return signature, {each.name for each in parameters}, {
        each.name for each in parameters if each.default is inspect.Parameter.empty}


def _check_arguments(function, method, arguments):
    signature, names, required = _signature(function)
    if required <= arguments.keys() <= names:
        return
    try:
        signature.bind(None, None, **arguments)
    except TypeError as error:
        raise exception.UnsupportedCall(reason=f"{method}: {error}") from None
