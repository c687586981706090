# SPDX-License-Identifier: Apache-2.0
"""The WSGI application: the steps that every request passes before its resource handles it.

In this order: request id, authentication (401), microversion (400, 406), method (405), address
(404), policy (403), media type of the answer (406), body and query (400, 413, 415), handler.
"""

import datetime
import itertools
import json
import re
import time
import uuid

import falcon
from falcon import mediatypes

from placement_rpc import exception
from placement_rpc.http import bodies, errors, microversion, preconditions, queries, routes
from placement_rpc.http.call import NOW, Call, provider_uuid
from placement_rpc.http.resources.events import LINES, STREAM

#: Addresses that need no token.
PUBLIC = frozenset(route.path for route in routes.ROUTES if route.rule is None)
#: The address of events.
EVENTS = "/events"
_REQUEST_ID = re.compile(
    r"req-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)
_ANY_JSON = frozenset((None, "*/*", "application/json"))
# The first microversion with last-modified and cache-control.
_TIMES = (1, 15)


class _RequestMiddleware:
    """Identify the caller and the microversion before routing; complete every answer's headers."""

    def __init__(self, identity, metrics, turns):
        self._identity = identity
        self._metrics = metrics
        self._turns = turns

    def process_request(self, req, resp):
        context = req.context
        context.began = time.perf_counter()
        context.request_id = f"req-{uuid.uuid4()}"
        context.version = microversion.MIN
        context.caller = context.client = None
        if req.path not in PUBLIC:
            context.caller = self._identify(req, resp)
        context.version = microversion.requested(req.get_header("OpenStack-API-Version"))
        # Requests that wait for events have places of their own.
        if context.caller is not None and req.path != EVENTS:
            client = (context.caller.project_id, context.caller.user_id, req.remote_addr)
            self._turns.begin(client)
            context.client = client

    def process_resource(self, req, resp, resource, params):
        if req.method not in falcon.COMBINED_METHODS:
            # Falcon would refuse the unknown method without naming the ones that are allowed.
            resource.find(req, params)

    def _identify(self, req, resp):
        try:
            caller = self._identity.identify(req, req.context.request_id)
        except errors.Unauthorized:
            if self._identity.challenge is not None:
                resp.set_header("WWW-Authenticate", self._identity.challenge)
            raise
        given = req.get_header("X-Openstack-Request-Id")
        if given and _REQUEST_ID.fullmatch(given):
            caller.global_request_id = given
        return caller

    def process_response(self, req, resp, _resource, _succeeded):
        if req.context.client is not None:
            self._turns.end(req.context.client)
        resp.set_header("x-openstack-request-id", req.context.request_id)
        resp.set_header(
            "openstack-api-version",
            f"{microversion.SERVICE_TYPE} {microversion.text(req.context.version)}")
        resp.append_header("vary", "openstack-api-version")
        self._metrics.requested(
            req.method if req.method in falcon.COMBINED_METHODS else "other",
            req.uri_template or "none", str(resp.status_code),
            time.perf_counter() - req.context.began)


class _CompiledRoute:
    """A route with its schemas compiled."""

    def __init__(self, route):
        self.route = route
        self.body = {since: bodies.compiled(schema)
                     for since, schema in (route.body or {}).items()}
        self.query = {since: bodies.compiled(schema)
                      for since, schema in (route.query or {}).items()}


class _GivenBody:
    """The body of a request before it is validated; it is read once, at the first demand.

    :param req: :class:`falcon.Request`
    :param limits: :class:`placement_rpc.bodies.Limits`
    """

    __slots__ = ("_error", "_is_read", "_limits", "_req", "_value")

    def __init__(self, req, limits):
        self._req, self._limits = req, limits
        self._is_read = False
        self._value = self._error = None

    def read(self):
        """Return the JSON value; the errors are those of :func:`bodies.read`."""
        if not self._is_read:
            self._is_read = True
            try:
                self._value = bodies.read(self._req, self._limits)
            except exception.PlacementException as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._value

    def text(self, name):
        """Return a text of the body; None if it has none of that name, or cannot be read."""
        try:
            body = self.read()
        except exception.PlacementException:
            return None
        value = body.get(name) if isinstance(body, dict) else None
        return value if isinstance(value, str) else None


class _Address:
    """All methods of one address.

    :param facade: :class:`placement_rpc.http.facade.Facade`
    :param its_routes: list of :class:`placement_rpc.http.routes.Route` with the same path
    """

    def __init__(self, facade, its_routes):
        self._facade = facade
        self._limits = bodies.limits(facade.conf)
        self._routes = [_CompiledRoute(route) for route in its_routes]
        self._is_public = all(route.rule is None for route in its_routes)
        self._takes_stream = any(route.path == EVENTS for route in its_routes)

    def answer(self, req, resp, **path):
        """Answer a request with any method."""
        compiled = self.find(req, path)
        route, given = compiled.route, _GivenBody(req, self._limits)
        if route.rule is not None:
            self._authorize(req, path, given, route.rule, route.owner)
            if route.next_owner is not None:
                self._authorize(req, path, given, route.rule, route.next_owner)
        self._check_accept(req, route)
        query = queries.read(req)
        body = self._body(req, compiled, path, given)
        self._check_query(compiled, query, req.context.version)
        call = Call(req, self._facade, route, path, query, body)
        try:
            answer = route.handler(call)
        except exception.ReadTimedOut as error:
            # A read has no unknown outcome, so it answers 503, not 504.
            raise exception.ServiceUnavailable(reason=error.kwargs["reason"]) from None
        except (exception.ConcurrentUpdate, exception.ConsumerConflict) as error:
            if call.is_about_condition(error):
                raise preconditions.failed() from None
            raise
        _write(req, resp, answer, call)

    def _authorize(self, req, path, given, rule, owner):
        """Check a rule; the owner is that of a route."""
        self._facade.authorize(req.context.caller, rule, owner and (
            lambda: owner(self._facade, path, queries.read(req), given)))

    def find(self, req, path):
        """Return the compiled route of a request.

        :raises MethodNotAllowed: if the address lacks the method
        :raises AddressNotFound: if the address does not exist at the microversion
        """
        version = req.context.version
        there = [each for each in self._routes if each.route.since <= version
                 and not (each.route.before and each.route.before <= version)]
        if not all(path.values()):
            raise errors.AddressNotFound()
        named = [each for each in there if each.route.method == req.method]
        if not named:
            # A method that no microversion has for the address is refused at each in the same way.
            known = {each.route.method for each in self._routes}
            if not there and req.method in known:
                raise errors.AddressNotFound()
            raise errors.MethodNotAllowed(method=req.method, allowed=sorted(
                {each.route.method for each in there} if req.method in known else known))
        if len(named) > 1:
            return _variant(named, queries.read(req))
        return named[0]

    def _check_accept(self, req, route):
        accept = req.get_header("Accept")
        if req.method != "GET" and route.spelling.has_generations:
            # OpenStack Placement asks it of reads only.
            return
        if accept in _ANY_JSON or "/" not in accept or _accepts_json(accept):
            return
        if self._takes_stream and req.client_prefers((STREAM, LINES)):
            return
        if self._is_public:
            return
        raise errors.NotAcceptable(offered="application/json")

    def _body(self, req, compiled, path, given):
        validator = microversion.schema_at(compiled.body, req.context.version)
        if validator is None:
            if req.content_length and not req.content_type:
                bodies.check_content_type(req)
            return None
        bodies.check_content_type(req)
        try:
            body = given.read()
            bodies.check(validator, body, "JSON does not validate")
        except errors.BadRequest:
            if compiled.route.provider_first:
                # Nothing else is asked of the service then.
                self._facade.api.get_provider(req.context.caller, provider_uuid(path))
            raise
        return body

    @staticmethod
    def _check_query(compiled, query, version):
        # A route without parameters ignores those that are given.
        validator = microversion.schema_at(compiled.query, version)
        if validator is not None:
            bodies.check(validator, query, "Invalid query string parameters")


for _method in falcon.COMBINED_METHODS:
    setattr(_Address, f"on_{_method.lower()}", _Address.answer)


def _variant(named, query):
    """Return the route that a query selects among those with the same method and path.

    :raises BadRequest: if the parameter that selects one has a value
    """
    for each in named:
        name = each.route.variant
        if name in query:
            if query[name]:
                raise errors.BadRequest(
                    reason=f"Invalid query string parameters: {name} has no value, "
                           f"and {query[name][:80]!r} was unexpected")
            return each
    return named[0]


def _write(req, resp, answer, call):
    resp.status = answer.status
    if req.context.version >= _TIMES and (
            answer.is_json or isinstance(answer.updated_at, str)):
        resp.set_header("cache-control", "no-cache")
        if answer.updated_at is not None:
            resp.last_modified = _time(answer.updated_at)
    if answer.position is not None:
        resp.set_header("placement-position", str(answer.position))
    if answer.etag is not None:
        resp.set_header("etag", answer.etag)
        if req.method == "GET":
            call.check_current(answer.etag)
            if answer.is_fixed and preconditions.is_not_modified(
                    req.get_header("If-None-Match"), answer.etag):
                resp.status = 304
                return
    if answer.location is not None:
        resp.set_header("location", f"{req.scheme}://{req.netloc}{answer.location}")
    if answer.stream is not None:
        resp.content_type = answer.content_type
        resp.stream = answer.stream
    elif answer.body is not None:
        resp.content_type = "application/json"
        resp.data = json.dumps(answer.body).encode()


def _time(updated_at):
    if updated_at is NOW:
        return datetime.datetime.now(datetime.UTC)
    return datetime.datetime.fromisoformat(updated_at)


def build(facade, identity):
    """Make the application.

    :param facade: :class:`placement_rpc.http.facade.Facade`
    :param identity: an authentication strategy of :mod:`placement_rpc.http.auth`
    :returns: a WSGI callable
    """
    # No default media type: an answer without a body must not have a content type.
    app = falcon.App(media_type=None, middleware=[
        _RequestMiddleware(identity, facade.metrics, facade.turns)])
    app.req_options.auto_parse_qs_csv = False
    app.add_error_handler(Exception, errors.on_defect)
    app.add_error_handler(falcon.HTTPError, errors.on_library)
    app.add_error_handler(exception.PlacementException, errors.on_expected)
    by_path = itertools.groupby(
        sorted(routes.ROUTES, key=lambda route: route.path), key=lambda route: route.path)
    for path, its_routes in by_path:
        app.add_route(path, _Address(facade, list(its_routes)))
    return app


def _accepts_json(accept):
    """Return whether an Accept header has JSON; the case of letters does not matter."""
    try:
        return mediatypes.quality("application/json", accept.lower()) > 0
    except ValueError:
        return False
