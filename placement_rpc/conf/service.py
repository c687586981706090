# SPDX-License-Identifier: Apache-2.0
"""The configuration of a service: a client's, and options of libraries that clients do not have.

A client installs none of these libraries, so no module that it loads imports this one.
"""

from oslo_config import cfg
from oslo_db import options as db_options
from oslo_policy import opts as policy_opts

from placement_rpc import conf as client
from placement_rpc.conf import PROJECT, opts, parse

# The default pool is larger than the default number of connections of a database server.
_DATABASE_DEFAULTS = {
    "max_pool_size": 8,
    "max_overflow": 0,
    "pool_timeout": 30,
    # The client retries the call under the same request id. A thread that waits minutes for an
    # unreachable database would only occupy a place among the calls that a worker takes in.
    "max_retries": 1,
}


def new_config(args=(), config_files=None, prog=PROJECT, **overrides):
    """Make the configuration of a service; see :func:`placement_rpc.conf.new_config`."""
    return parse(unparsed(), args, config_files, prog, **overrides)


def unparsed():
    """Return a configuration on which more options can be registered before it is parsed."""
    return register(client.unparsed())


def register(conf):
    """Add the options of a service to the configuration of a client.

    Registering them a second time changes nothing.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :returns: ``conf``
    """
    policy_opts.set_defaults(conf)
    if "database" not in conf:
        conf.register_opts(db_options.database_opts, group="database")
        for name, value in _DATABASE_DEFAULTS.items():
            conf.set_default(name, value, group="database")
    return conf


def set_sample_defaults():
    """Set the defaults of the libraries of a service, without those of the facade."""
    opts.set_library_defaults()
    cfg.set_defaults(db_options.database_opts, **_DATABASE_DEFAULTS)
