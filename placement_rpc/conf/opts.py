# SPDX-License-Identifier: Apache-2.0
"""All options of a client, for registration and for the sample file.

:mod:`placement_rpc.conf.service` adds what only a service has, and
:mod:`placement_rpc.conf.facade` what only its HTTP facade has.
"""

import copy

from oslo_config import cfg
from oslo_log import _options as log_options
from oslo_messaging import opts as messaging_opts
from oslo_messaging._drivers import amqp, impl_rabbit
from oslo_messaging._metrics import client as library_metrics
from oslo_messaging._tracing import client as tracing

from placement_rpc.conf import (
    broker,
    candidates,
    cells,
    claims,
    client,
    compute_nodes,
    conductor,
    headroom,
    http,
    messages,
    metrics,
    notifications,
    placement,
    queues,
    standalone,
    transactions,
    upgrade_levels,
)

_MODULES = (broker, candidates, claims, client, compute_nodes, conductor, headroom, http,
            messages, metrics, notifications, placement, queues, standalone, transactions,
            upgrade_levels)

# oslo.messaging's RPC client reads these two groups on each call, but registers them on the global
# configuration only: on any other configuration the call would fail.
_CALL_GROUPS = {
    "oslo_messaging_tracing": tracing.oslo_messaging_tracing,
    "oslo_messaging_metrics": library_metrics.oslo_messaging_metrics,
}


def register(conf):
    """Register every option on ``conf``."""
    for module in _MODULES:
        # A group object stores the values of its options, so each configuration needs a copy.
        conf.register_group(copy.deepcopy(module.GROUP))
        conf.register_opts(module.OPTS, group=module.GROUP.name)
    for group, options in messaging_opts.list_opts():
        if group in (None, "oslo_messaging_rabbit"):
            conf.register_opts(options, group=group)
    for group, options in _CALL_GROUPS.items():
        conf.register_opts(options, group=group)


def set_library_defaults(conf=None):
    """Replace defaults of libraries that are unsafe for this service.

    By default oslo.messaging's queues do not survive a restart of the broker, and its exchange
    does not match durable ones: see the operator's guide. A configuration file overrides these
    defaults too.

    :param conf: the configuration to set them on; None sets them for the sample generator
    """
    if conf is None:
        cfg.set_defaults(impl_rabbit.rabbit_opts + amqp.amqp_opts, **_RABBIT_DEFAULTS)
        cfg.set_defaults([*log_options.generic_log_opts, *log_options.log_opts], **_LOG_DEFAULTS)
        return
    for group, defaults in (("oslo_messaging_rabbit", _RABBIT_DEFAULTS), (None, _LOG_DEFAULTS)):
        for name, value in defaults.items():
            conf.set_default(name, value, group=group)


_RABBIT_DEFAULTS = {
    "rabbit_quorum_queue": True,
    "amqp_durable_queues": True,
    "rabbit_qos_prefetch_count": 16,
    "rabbit_interval_max": 2,
    "kombu_reconnect_delay": 0.2,
    "kombu_missing_consumer_retry_timeout": 5,
    "heartbeat_timeout_threshold": 4,
}

_LOG_DEFAULTS = {
    # Standard output is for results.
    "use_stderr": True,
    "default_log_levels": [*log_options.DEFAULT_LOG_LEVELS, "alembic=WARN"],
}


def list_opts():
    """Return this project's own groups and options, for ``oslo-config-generator``."""
    return [(module.GROUP, module.OPTS) for module in (*_MODULES, cells)]
