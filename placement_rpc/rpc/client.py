# SPDX-License-Identifier: Apache-2.0
"""How a client makes a call: attempts under one request id until the deadline."""

import copy
import functools
import time
import uuid
from typing import Any, Self

from oslo_config import cfg
from oslo_context import context as oslo_context

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.backoff import Backoff, spread
from placement_rpc.context import RequestContext
from placement_rpc.objects.fields import RequestId
from placement_rpc.rpc import command_publisher, routing, senders
from placement_rpc.versions import contract, pins, releases

# Seconds before the second attempt; each further pause is longer.
_FIRST_PAUSE = 0.05
# Seconds before the next attempt at most, while the database is busy.
_BUSY_PAUSE = 0.3
# Seconds that a client waits at most before it repeats a call that an overloaded service refused.
_LONGEST_RETRY_AFTER = 60.0
# Errors of which it is known that nothing was done.
_REFUSED = (exception.StoreBusy, exception.ServiceOverloaded)
# Seconds that a cast waits for the service's release, but no more than half of its own time; after
# that it is made in the oldest release that has all of it.
_PIN_TIMEOUT = 2.0
# The most seconds that a call can be given: some thirty years.
_LONGEST = 1_000_000_000


def new_request_id() -> str:
    """Return a new request id."""
    return f"req-{uuid.uuid4()}"


def given_or_new(request_id: str | None) -> str:
    """Return the request id that a caller gives, which is not checked, or a new one for None."""
    return new_request_id() if request_id is None else request_id


class Client:
    """Makes calls; :class:`placement_rpc.api.PlacementAPI` has a method for each.

    ``sender`` makes single attempts: one of :mod:`placement_rpc.rpc.senders`.
    ``command_publisher`` sends casts: one of :mod:`placement_rpc.rpc.command_publisher`. ``pin``
    is the release that both use: one of :mod:`placement_rpc.versions.pins`.
    """

    def __init__(self, transport: str = "rpc", conf: cfg.ConfigOpts | None = None,
                 transport_url: str | None = None, manager: Any = None, pin: str | None = None,
                 object_versions: dict[str, str] | None = None, topic: str = routing.TOPIC,
                 deadline: float | None = None):
        self.conf = conf or configuration.new_config()
        options = self.conf.placement_client
        #: Seconds within which a call ends that is made without a time-out.
        self.deadline = options.deadline if deadline is None else _checked("deadline", deadline)
        self._attempt_timeout = options.attempt_timeout
        self._is_remote = transport == "rpc"
        self._given_pin, self._object_versions = pin, object_versions
        chosen = pins.fixed(pin or self.conf.upgrade_levels.placement)
        # Nothing that travels within one process has to be read by another release.
        self._is_one_release = chosen is None and not self._is_remote
        self.sender: senders.RabbitSender | senders.LocalSender
        self.command_publisher: (
            command_publisher.CommandPublisher | command_publisher.CallingPublisher)
        if transport == "local":
            if manager is None:
                raise ValueError("the local transport needs a manager")
            self.sender = senders.LocalSender(manager)
            self.command_publisher = command_publisher.CallingPublisher(self.sender)
        elif transport == "rpc":
            broker = _broker(self.conf, transport_url)
            self.sender = senders.RabbitSender(self.conf, broker, topic)
            self.command_publisher = command_publisher.CommandPublisher(self.conf, broker, topic)
        else:
            raise ValueError(f"transport is 'rpc' or 'local', not {transport!r}")
        self._choose(chosen)

    def _choose(self, chosen):
        """Make calls in a release; None for the newest that all live services know."""
        self._manifest = self._object_versions or (chosen.contract if chosen else (
            contract.RPC_VERSION if self._is_remote else None))
        if chosen is None and self._is_remote:
            self.pin = pins.AutoPin(self._services, self.conf.upgrade_levels.auto_interval)
        else:
            self.pin = pins.FixedPin(chosen or releases.CURRENT)

    def close(self) -> None:
        """Close connections and end threads."""
        self.command_publisher.close()
        self.sender.close()

    def reload(self) -> None:
        """Read the configured pin again, and forget which release the services speak.

        A program calls this on SIGHUP. A pin that was given to this object stays.
        """
        self.conf.reload_config_files()
        chosen = pins.fixed(self._given_pin or self.conf.upgrade_levels.placement)
        self._choose(chosen)

    def _services(self, seconds):
        """Return the live services; the call is made in the oldest release."""
        context = RequestContext(deadline=time.time() + seconds, manifest=self._manifest)
        context.release = releases.RELEASES[0]
        try:
            return self.sender.call(context, "get_versions", {}, seconds).objects
        except exception.RequestExpired as error:
            # The deadline of this query, not that of the call which needs its answer.
            raise exception.ServiceUnavailable(reason=error.text) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _seconds(self, timeout):
        return seconds_of(timeout, self.deadline)

    def _change(self, context, method, request_id, timeout, **arguments):
        return self._call(context, method, timeout,
                          request_id=given_or_new(request_id), **arguments)

    def _cast(self, context, method, request_id, timeout, **arguments):
        """Queue a change; return its request id."""
        request_id = RequestId().coerce(None, "request_id", given_or_new(request_id))
        context = own_context(context)
        context.manifest = self._manifest
        arguments["request_id"] = request_id

        def send(left):
            ends = time.monotonic() + left
            self._send(context, method, arguments, self._release_of_cast(
                method, arguments, left), ends, self.command_publisher.cast)

        self._attempt(send, method, self._seconds(timeout), request_id)
        return request_id

    def _release_of_cast(self, method, arguments, seconds):
        """Return the release to make a cast in: the oldest that has all of it.

        A cast may wait while no service answers, and while an operator goes back to the release
        before: any service that knows what is asked can process it.
        """
        oldest = next(
            each for each in releases.RELEASES if not contract.missing(method, arguments, each))
        try:
            # A live service that lacks a part of the cast is older: making it then fails.
            return min(oldest, self.pin.release(min(seconds / 2, _PIN_TIMEOUT)),
                       key=lambda each: each.number)
        except exception.PlacementException as error:
            if not error.retryable:
                raise
        return oldest

    def _call(self, context, method, timeout, server=None, **arguments):
        seconds = self._seconds(timeout)
        arguments = contract.sent(method, arguments)
        context = own_context(context)
        context.manifest = self._manifest
        context.deadline = time.time() + seconds
        return self._attempt(
            lambda left: self._try(context, method, arguments, left, server),
            method, seconds, arguments.get("request_id"))

    def _try(self, context, method, arguments, left, server=None):
        """Make one attempt, in a release that every live service knows."""
        ends = time.monotonic() + left
        if not self._is_one_release and contract.is_plain(method, arguments):
            # Every release knows the call, so the services' releases are not needed.
            release = releases.RELEASES[0]
        else:
            release = self.pin.release(left)
        context.service_release = self.pin.last or release
        call = self.sender.call if server is None else functools.partial(
            self.sender.call, server=server)
        return self._send(context, method, arguments, release, ends, call)

    def _send(self, context, method, arguments, release, ends, make):
        """Send in a release; if the service does not know it, retry once in the service's own.

        :param make: callable of context, method, arguments and the seconds that are left
        """
        try:
            return self._make(context, method, arguments, release, ends, make)
        except (exception.UnsupportedCall, exception.IncompatibleObjectVersion):
            self.pin.forget()
            # The call may have waited for its turn longer than the attempt was to take.
            lower = self.pin.release(max(_PIN_TIMEOUT, ends - time.monotonic()))
            if lower.number >= release.number:
                raise
        return self._make(context, method, arguments, lower, ends, make)

    def _make(self, context, method, arguments, release, ends, make):
        arguments = contract.without_implied(method, arguments, release)
        made = self._in_release(context, method, arguments, release)
        return make(made, method, arguments, max(0.0, ends - time.monotonic()))

    @staticmethod
    def _in_release(context, method, arguments, release):
        """Return a copy of the context, for a call that is made in a release.

        A copy, because the thread of an abandoned attempt may still read the other.

        :raises ServiceTooOld: if the release lacks a part of the call
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
        """Make attempts until one is answered or the deadline passes.

        :param attempt: callable of the seconds that the attempt may take
        :param request_id: None for a call that changes nothing
        :raises StoreBusy: if each attempt met concurrent writers: it is known that nothing was
            done, so that the caller may decide again
        :raises ServiceOverloaded: if the service refused each attempt, and no time is left for the
            pause that it asks for; nothing was done
        """
        ends = time.monotonic() + seconds
        backoff, last, busy = Backoff(_FIRST_PAUSE), None, None
        while (left := ends - time.monotonic()) > 0:
            try:
                return attempt(min(self._attempt_timeout, left))
            except senders.NOTHING_DONE:
                if last is None:
                    raise
                # An earlier attempt, in time or at another service, may have succeeded.
                break
            except exception.PlacementException as error:
                if not error.retryable:
                    raise
                busy = error if isinstance(error, _REFUSED) and (last is None or busy) else None
                last = error.text
                pause = _pause(error, backoff)
                if busy is not None and "retry_after" in error.kwargs and (
                        time.monotonic() + pause >= ends):
                    break
            time.sleep(max(0, min(pause, ends - time.monotonic())))
        if busy is not None:
            raise busy
        facts = {"method": method, "seconds": round(seconds, 3),
                 "reason": last or "no attempt was made"}
        if request_id is None:
            raise exception.ReadTimedOut(**facts)
        raise exception.DeadlineExceeded(**facts, request_id=request_id)


def _pause(error, backoff):
    """Return the seconds between an attempt that failed and the next one."""
    after = error.kwargs.get("retry_after")
    if type(after) in (int, float) and after >= 0:
        # Those that are refused together do not return together, and none returns at once.
        return spread(min(max(after, _FIRST_PAUSE), _LONGEST_RETRY_AFTER))
    pause = backoff.next()
    if isinstance(error, exception.StoreBusy):
        # A lock that it waits for is released soon, or its session is ended.
        return min(pause, _BUSY_PAUSE)
    return pause


def seconds_of(timeout: float | None, deadline: float) -> float:
    """Return the seconds within which a call ends.

    :param timeout: as it was given to the call
    :param deadline: seconds for a call that is made without a time-out
    :raises InvalidInput: if the time-out is not a number of seconds
    """
    if timeout is None:
        return deadline
    return _checked("timeout", timeout)


def _checked(what, seconds):
    if type(seconds) not in (int, float) or not 0 <= seconds <= _LONGEST:
        raise exception.InvalidInput(
            what=what, reason=f"it is not a number of seconds between 0 and {_LONGEST}")
    return seconds


def _broker(conf, url):
    broker = Broker.of(conf, url)
    if broker is None:
        raise exception.InvalidInput(
            what="transport_url", reason="inprocess:// reaches no other process; make the client "
            "with transport 'local' and the manager of the embedded service")
    return broker


def own_context(context: oslo_context.RequestContext | None) -> RequestContext:
    """Return a new context with the identity of a given one.

    :raises InvalidInput: if it is not a context
    """
    if context is None:
        return RequestContext()
    if not isinstance(context, oslo_context.RequestContext):
        raise exception.InvalidInput(
            what="context", reason=f"a RequestContext was expected, not a "
                                   f"{type(context).__name__}")
    return RequestContext.of(context)
