# SPDX-License-Identifier: Apache-2.0
"""The HTTP facade: the state that all requests share, and the WSGI callable."""

from oslo_middleware import cors, http_proxy_to_wsgi

from placement_rpc import policy
from placement_rpc.conf import facade as configuration
from placement_rpc.http import app, auth, health, openapi, routes
from placement_rpc.http.dashboard import Dashboard
from placement_rpc.http.follower import Follower, Places
from placement_rpc.http.streams import EventStreams
from placement_rpc.http.turns import RequestTurns
from placement_rpc.telemetry.metrics import CONTENT_TYPE, Metrics


class Facade:
    """The HTTP facade of a service.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param is_remote: bool, whether the service is another process, which checks the policy again
    :param metrics: :class:`placement_rpc.telemetry.metrics.Metrics` of the service if it runs in
        this process
    :param check: callable that raises a PlacementException if the process lacks what it needs to
        answer requests, for ``/healthcheck``; None if it needs nothing else
    :ivar application: the WSGI callable
    """

    def __init__(self, conf, api, is_remote=False, metrics=None, check=None):
        self.conf = configuration.register(conf)
        self.api = api
        self.metrics = metrics or Metrics()
        self.follower = Follower(api, conf.api.max_waiting, conf.api.user_share)
        self.streams = EventStreams(api, self.follower, Places(
            conf.api.max_followers, conf.api.user_share))
        self.turns = RequestTurns(
            conf.api.requests_per_client, conf.api.threads, conf.api.deadline,
            lambda: self.metrics.refused("http"))
        self._policy = policy.Enforcer(conf)
        self.openapi = openapi.document(routes.ROUTES)
        self._is_remote = is_remote
        identity, protect = auth.strategy(conf)
        protected = protect(app.build(self, identity), app.PUBLIC)
        reached = _behind_proxy(conf, _with_cors(conf, protected))
        self.application = health.with_health(
            conf, Dashboard(conf, reached) if conf.api.ui else reached, check)
        if conf.metrics.http:
            self.application = _with_metrics(
                self.metrics, conf.metrics.http_fleet, self.application)

    def authorize(self, caller, rule, owner=None):
        """Check one rule.

        The context carries the rule to a service in another process, which checks it again.

        :param owner: callable that returns an object with the project_id and the user_id that the
            rule can refer to, or None; None if there is no owner
        :raises Forbidden: if the rule does not allow the caller
        """
        self._policy.authorize(caller, rule, owner and policy.Target(owner))
        if self._is_remote:
            caller.rule = rule

    def close(self):
        """End the requests that wait for events."""
        self.follower.close()
        self.streams.close()


def _with_metrics(metrics, with_fleet, application):
    """Wrap an application so that ``/metrics`` is answered first.

    :param with_fleet: bool, whether it shows metrics about the fleet too
    """
    def choose(environ, start_response):
        if environ.get("PATH_INFO") != "/metrics" or environ["REQUEST_METHOD"] != "GET":
            return application(environ, start_response)
        body = metrics.show(with_fleet)
        start_response("200 OK", [
            ("content-type", CONTENT_TYPE), ("content-length", str(len(body)))])
        return [body]

    return choose


def _with_cors(conf, application):
    """Wrap an application so that pages of ``[cors] allowed_origin`` can read its answers.

    Outside the authentication, since browsers send no token with the question whether they may
    send a request.
    """
    return cors.CORS(application, conf) if conf.cors.allowed_origin else application


def _behind_proxy(conf, application):
    """Wrap an application so that it trusts a proxy's headers, if that is configured."""
    proxied = http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)
    return proxied if conf.oslo_middleware.enable_proxy_headers_parsing else application
