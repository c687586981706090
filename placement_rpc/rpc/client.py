# SPDX-License-Identifier: Apache-2.0
"""How a client makes a call: attempts under one request id until the deadline."""

import copy
import functools
import random
import time
import uuid

from oslo_context import context as oslo_context

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.context import RequestContext
from placement_rpc.objects.fields import RequestId
from placement_rpc.rpc import command_publisher, routing, senders
from placement_rpc.rpc.server import get_transport
from placement_rpc.versions import contract, pins, releases

# The wait before an attempt is repeated: doubled each time up to the cap, with jitter.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
# What a cast spends on finding out who answers, before it is sent in words that all know.
_PIN_TIMEOUT = 2.0


def new_request_id():
    """:returns: str, a request id that nobody else makes"""
    return f"req-{uuid.uuid4()}"


class Client:
    """Makes calls; :class:`placement_rpc.api.PlacementAPI` says which there are."""

    def __init__(self, transport="rpc", conf=None, transport_url=None, manager=None,
                 pin=None, object_versions=None, topic=routing.TOPIC, deadline=None):
        self.conf = conf or configuration.new_config()
        options = self.conf.placement_client
        self._deadline = options.deadline if deadline is None else deadline
        self._attempt_timeout = options.attempt_timeout
        self._is_remote = transport == "rpc"
        self._given_pin, self._object_versions = pin, object_versions
        chosen = pins.fixed(pin or self.conf.upgrade_levels.placement)
        if transport == "local":
            if manager is None:
                raise ValueError("the local transport needs a manager")
            self._caller = senders.LocalSender(manager)
            self._caster = command_publisher.CallingPublisher(self._caller)
        elif transport == "rpc":
            broker = Broker.of(self.conf, transport_url)
            if broker is None:
                self._caller = senders.LibrarySender(
                    get_transport(self.conf, transport_url), options.max_concurrent_calls,
                    topic)
                self._caster = command_publisher.CallingPublisher(self._caller)
            else:
                self._caller = senders.RabbitSender(self.conf, broker, topic)
                self._caster = command_publisher.CommandPublisher(self.conf, broker, topic)
        else:
            raise ValueError(f"transport is 'rpc' or 'local', not {transport!r}")
        self._choose(chosen)

    def _choose(self, chosen):
        """Keep to a release, or to what is found out.

        :param chosen: :class:`placement_rpc.versions.releases.Release`; None for ``auto``
        """
        self._manifest = self._object_versions or (chosen.contract if chosen else (
            contract.RPC_VERSION if self._is_remote else None))
        if chosen is None and self._is_remote:
            self._pin = pins.AutoPin(self._services, self.conf.upgrade_levels.auto_interval)
        else:
            self._pin = pins.FixedPin(chosen or releases.CURRENT)

    def close(self):
        """Give back connections and threads."""
        self._caster.close()
        self._caller.close()

    def reload(self):
        """Read the pin anew, and look anew for the oldest release that answers.

        For a program to call on SIGHUP. A pin that was given to this object stays.
        """
        self.conf.reload_config_files()
        chosen = pins.fixed(self._given_pin or self.conf.upgrade_levels.placement)
        self._choose(chosen)

    def _services(self, seconds):
        """Who answers; asked in words that every release knows."""
        context = RequestContext(deadline=time.time() + seconds, manifest=self._manifest)
        context.release = releases.RELEASES[0]
        try:
            return self._caller.call(context, "get_versions", {}, seconds).objects
        except exception.RequestExpired as error:
            # That this was answered too late says nothing of the call that it is asked for.
            raise exception.ServiceUnavailable(reason=error.text) from None

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def _seconds(self, timeout):
        if timeout is None:
            return self._deadline
        if type(timeout) not in (int, float) or not timeout >= 0:
            raise exception.InvalidInput(
                what="timeout", reason="it is not a number of seconds")
        return timeout

    def _change(self, context, method, request_id, timeout, **arguments):
        return self._call(context, method, timeout,
                          request_id=request_id or new_request_id(), **arguments)

    def _cast(self, context, method, request_id, timeout, **arguments):
        """Have a change kept until it is made; :returns: str, the request's id"""
        request_id = RequestId().coerce(None, "request_id", request_id or new_request_id())
        context = own_context(context)
        context.manifest = self._manifest
        arguments["request_id"] = request_id

        def send(left):
            ends = time.monotonic() + left
            self._said(context, method, arguments, self._release_of_cast(
                method, arguments, left), ends, self._caster.cast)

        self._attempt(send, method, self._seconds(timeout), request_id)
        return request_id

    def _release_of_cast(self, method, arguments, seconds):
        """A cast is kept while nobody answers: then whoever comes must understand it."""
        try:
            return self._pin.release(min(seconds, _PIN_TIMEOUT))
        except exception.PlacementException as error:
            if not error.retryable:
                raise
        return next(
            each for each in releases.RELEASES if not contract.missing(method, arguments, each))

    def _call(self, context, method, timeout, server=None, **arguments):
        seconds = self._seconds(timeout)
        context = own_context(context)
        context.manifest = self._manifest
        context.deadline = time.time() + seconds
        return self._attempt(
            lambda left: self._understood(context, method, arguments, left, server),
            method, seconds, arguments.get("request_id"))

    def _understood(self, context, method, arguments, left, server=None):
        """Make one attempt in a release that whoever answers knows."""
        ends = time.monotonic() + left
        if contract.is_plain(method, arguments):
            # Every release knows it: nobody needs to be asked.
            release = releases.RELEASES[0]
        else:
            release = self._pin.release(left)
        context.service_release = self._pin.last or release
        call = self._caller.call if server is None else functools.partial(
            self._caller.call, server=server)
        return self._said(context, method, arguments, release, ends, call)

    def _said(self, context, method, arguments, release, ends, make):
        """Make it in a release; where it is not understood, in the one that is found out anew.

        :param make: callable of context, method, arguments and the seconds that are left
        """
        spoken = self._say(context, method, arguments, release)
        try:
            return make(spoken, method, arguments, max(0.0, ends - time.monotonic()))
        except (exception.UnsupportedCall, exception.IncompatibleObjectVersion):
            self._pin.forget()
            lower = self._pin.release(max(0.0, ends - time.monotonic()))
            if lower.number >= release.number:
                raise
        spoken = self._say(context, method, arguments, lower)
        return make(spoken, method, arguments, max(0.0, ends - time.monotonic()))

    @staticmethod
    def _say(context, method, arguments, release):
        """Speak in a release.

        :returns: a context of its own: the thread of an attempt that was given up may read it yet
        :raises ServiceTooOld: when the release has no words for the call
        """
        context = copy.copy(context)
        context.release, context.receiver = release, None
        if release is releases.CURRENT:
            return context
        missing = contract.missing(method, arguments, release)
        if missing:
            needed = next(each for each in releases.RELEASES
                          if not contract.missing(method, arguments, each))
            raise exception.ServiceTooOld(
                what=", ".join(missing), needed=needed.contract, found=release.contract,
                who=f"the oldest service or the pin ({release.name})")
        context.receiver = release.versions
        return context

    def _attempt(self, attempt, method, seconds, request_id):
        """Make attempts until one is answered or the time is over.

        :param attempt: callable of the seconds that this one has
        """
        ends = time.monotonic() + seconds
        pause, last = _FIRST_PAUSE, None
        while (left := ends - time.monotonic()) > 0:
            try:
                return attempt(min(self._attempt_timeout, left))
            except (exception.RequestExpired, exception.ServiceTooOld,
                    exception.UnsupportedCall, exception.IncompatibleObjectVersion):
                if last is None:
                    raise
                # An earlier attempt may have been in time, or with somebody who understood.
                break
            except exception.PlacementException as error:
                if not error.retryable:
                    raise
                last = error.text
            wait = random.uniform(pause / 2, pause)  # noqa: S311
            time.sleep(max(0, min(wait, ends - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE)
        raise exception.DeadlineExceeded(
            method=method, seconds=round(seconds, 3), reason=last or "no attempt was made",
            request_id=request_id)


def own_context(context):
    """:returns: a new :class:`RequestContext` of who the caller is"""
    if context is None:
        return RequestContext()
    if not isinstance(context, oslo_context.RequestContext):
        raise exception.InvalidInput(
            what="context", reason=f"a RequestContext was expected, not a "
                                   f"{type(context).__name__}")
    return RequestContext(
        user_id=context.user_id, project_id=context.project_id, roles=context.roles,
        request_id=context.request_id, global_request_id=context.global_request_id,
        system_scope=context.system_scope, rule=getattr(context, "rule", None))
