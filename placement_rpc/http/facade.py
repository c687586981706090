# SPDX-License-Identifier: Apache-2.0
"""What all requests share: the client of the service, the policy, and who waits for events."""

from placement_rpc import policy
from placement_rpc.http import app, auth
from placement_rpc.http.follower import Follower
from placement_rpc.telemetry.metrics import CONTENT_TYPE, Metrics


class Facade:
    """The HTTP facade on a service.

    ``application`` is the WSGI callable.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param is_remote: bool, whether the service is another process, that checks the policy again
    :param metrics: :class:`placement_rpc.telemetry.metrics.Metrics` of the service, where it is
        this process
    """

    def __init__(self, conf, api, is_remote=False, metrics=None):
        self.conf = conf
        self.api = api
        self.metrics = metrics or Metrics()
        self.follower = Follower(api, conf.api.max_waiting)
        self._policy = policy.Enforcer(conf)
        self._is_remote = is_remote
        identity, protect = auth.strategy(conf)
        self.application = _with_health(
            conf, _behind_proxy(conf, protect(app.build(self, identity))))
        if conf.metrics.http:
            self.application = _with_metrics(self.metrics, self.application)

    def authorize(self, caller, rule):
        """Check one rule; a service in another process is told which it was.

        :raises Forbidden:
        """
        self._policy.authorize(caller, rule)
        if self._is_remote:
            caller.rule = rule

    def close(self):
        """Let everybody go who waits."""
        self.follower.close()


def _with_health(conf, application):
    """Answers ``/healthcheck`` before anything else is looked at (oslo.middleware)."""
    from oslo_middleware import healthcheck
    health = healthcheck.Healthcheck(application, conf)

    def choose(environ, start_response):
        if environ.get("PATH_INFO") == "/healthcheck":
            return health(environ, start_response)
        return application(environ, start_response)

    return choose


def _with_metrics(metrics, application):
    """Answers ``/metrics`` before anything else is looked at."""
    def choose(environ, start_response):
        if environ.get("PATH_INFO") != "/metrics" or environ["REQUEST_METHOD"] != "GET":
            return application(environ, start_response)
        body = metrics.show()
        start_response("200 OK", [
            ("content-type", CONTENT_TYPE), ("content-length", str(len(body)))])
        return [body]

    return choose


def _behind_proxy(conf, application):
    """Takes a proxy's word for the address that was asked for, where that is configured."""
    from oslo_middleware import http_proxy_to_wsgi
    proxied = http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)
    return proxied if conf.oslo_middleware.enable_proxy_headers_parsing else application
