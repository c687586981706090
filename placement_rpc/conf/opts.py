# SPDX-License-Identifier: Apache-2.0
"""All options in one place, for registration and for the sample file."""

import copy

from oslo_config import cfg
from oslo_db import options as db_options
from oslo_log import _options as log_options
from oslo_messaging import opts as messaging_opts
from oslo_messaging._drivers import amqp, impl_rabbit
from oslo_messaging._metrics import client as library_metrics
from oslo_messaging._tracing import client as tracing
from oslo_policy import opts as policy_opts

from placement_rpc.conf import (
    candidates,
    claims,
    client,
    compute_nodes,
    conductor,
    http,
    metrics,
    notifications,
    queues,
    standalone,
    upgrade_levels,
)

_MODULES = (candidates, claims, client, compute_nodes, conductor, http, metrics, notifications,
            queues, standalone, upgrade_levels)

# A call of an RPC client reads these two groups, which the library registers on the global
# configuration alone: without them it fails on any other.
_CALL_GROUPS = {
    "oslo_messaging_tracing": tracing.oslo_messaging_tracing,
    "oslo_messaging_metrics": library_metrics.oslo_messaging_metrics,
}


def register(conf):
    """Register every option on ``conf``."""
    for module in _MODULES:
        # A group keeps the values of its options: each configuration has its own.
        conf.register_group(copy.deepcopy(module.GROUP))
        conf.register_opts(module.OPTS, group=module.GROUP.name)
    conf.register_opts(db_options.database_opts, group="database")
    for group, options in messaging_opts.list_opts():
        if group in (None, "oslo_messaging_rabbit"):
            conf.register_opts(options, group=group)
    policy_opts.set_defaults(conf)
    for group, options in _CALL_GROUPS.items():
        conf.register_opts(options, group=group)


def set_library_defaults(conf=None):
    """Defaults of libraries that are unsafe for this service, made safe.

    Queues that die with their broker, an exchange that does not match them, and a database
    pool larger than a server's default number of connections: see the operator's guide. A
    configuration file still has the last word.

    :param conf: the configuration to set them on; None sets them for the sample generator
    """
    if conf is None:
        cfg.set_defaults(impl_rabbit.rabbit_opts + amqp.amqp_opts, **_RABBIT_DEFAULTS)
        cfg.set_defaults(db_options.database_opts, **_DATABASE_DEFAULTS)
        cfg.set_defaults([*log_options.generic_log_opts, *log_options.log_opts], **_LOG_DEFAULTS)
        return
    for group, defaults in (("oslo_messaging_rabbit", _RABBIT_DEFAULTS),
                            ("database", _DATABASE_DEFAULTS), (None, _LOG_DEFAULTS)):
        for name, value in defaults.items():
            conf.set_default(name, value, group=group)


_RABBIT_DEFAULTS = {
    "rabbit_quorum_queue": True,
    "amqp_durable_queues": True,
    "rabbit_qos_prefetch_count": 16,
    "rabbit_interval_max": 5,
    "kombu_reconnect_delay": 0.2,
    "kombu_missing_consumer_retry_timeout": 5,
    "heartbeat_timeout_threshold": 30,
}

_DATABASE_DEFAULTS = {
    "max_pool_size": 8,
    "max_overflow": 0,
    "pool_timeout": 30,
    # A call is retried by its client, with the same request id; a thread that waits minutes
    # for a database that is away would only hold the intake.
    "max_retries": 1,
}

_LOG_DEFAULTS = {
    # Standard output is for answers.
    "use_stderr": True,
    "default_log_levels": [*log_options.DEFAULT_LOG_LEVELS, "alembic=WARN"],
}


def list_opts():
    """For ``oslo-config-generator``: this project's own groups and options."""
    return [(module.GROUP, module.OPTS) for module in _MODULES]
